"""A connection to one host that is kept to ask it again and again what it is."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import asyncpg

from normata.core.db.postgresql.closing import Closing
from normata.core.db.postgresql.committing import warnings_of
from normata.core.db.postgresql.errors import CONNECT_ERRORS, is_lost, words
from normata.core.db.postgresql.hosts import Hosts
from normata.core.db.postgresql.standing import Standing, standing_of
from normata.errors import Unavailable


class Line:
    """Asks one host; ``why`` says why it has last been silent."""

    def __init__(self, hosts: Hosts, address: str, closing: Closing, patience: float) -> None:
        self.address = address
        self.why = ""
        self._hosts = hosts
        self._closing = closing
        self._patience = patience
        self._connection: asyncpg.Connection[Any] | None = None

    async def ask(self, *, commit: bool = False) -> Standing | None:
        """What the host says of itself, and with ``commit`` after it has committed; null where it does not in time."""
        try:
            async with asyncio.timeout(self._patience):
                standing, warnings = await self._asked(commit=commit)
        except asyncpg.InsufficientPrivilegeError as error:
            self.why = f"the login of the service may not ask whether the server is the primary: {words(error)}"
        except (ValueError, Unavailable, *CONNECT_ERRORS) as error:
            self.why = f"{self._hosts.label(self.address)}: {words(error)}"
        else:
            if not warnings:
                return standing
            self.why = warnings[0]  # a commit that was not waited for to its end
        self.drop()
        return None

    async def _asked(self, *, commit: bool) -> tuple[Standing, Sequence[str]]:
        """What the host says, and its warnings; over a new connection where the kept one turns out to be lost."""
        if self._connection is not None:
            try:
                return await self._asked_over(self._connection, commit=commit)
            except CONNECT_ERRORS as error:
                # A server that was restarted is not silent: waiters are not told so because of yesterday's connection.
                if isinstance(error, TimeoutError) or not is_lost(error):
                    raise
                self.drop()
        # Apart from the service's own in `pg_stat_activity`.
        self._connection = await self._hosts.open(self.address, within=self._patience, name="normata heartbeat")
        return await self._asked_over(self._connection, commit=commit)

    async def _asked_over(self, connection: asyncpg.Connection[Any], *, commit: bool) -> tuple[Standing, Sequence[str]]:
        with warnings_of(connection) as warnings:
            return await standing_of(connection, commit=commit, within=self._patience), warnings

    def drop(self) -> None:
        """Ask over a new connection the next time."""
        if self._connection is not None:
            self._closing.close(self._connection)
            self._connection = None
