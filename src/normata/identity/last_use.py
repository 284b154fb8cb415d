"""When a token was last used, without a write on every request."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import structlog
from sqlalchemy import Connection, bindparam, update

from normata.database import Database, Unavailable, format_timestamp
from normata.identity.model import AccessToken

log = structlog.get_logger("normata")

_GRAIN = timedelta(minutes=1)  # finer than that, last use is not told
_TO_THE_MINUTE = len("2026-11-20T09:14")
_PAUSE = 1.0  # seconds between two writes


class LastUse:
    """Gathers the uses of tokens and stores them together, at most once a minute for each.

    A killed process forgets those of its last second: what is lost then is a hint for people, not a record.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._pending: dict[str, str] = {}

    def note(self, token_id: str, last_used_at: str | None, moment: str) -> None:
        """The token is in use at ``moment``; ``last_used_at`` is what is stored so far."""
        if last_used_at is not None and last_used_at[:_TO_THE_MINUTE] == moment[:_TO_THE_MINUTE]:
            return
        if last_used_at is None or last_used_at < format_timestamp(datetime.fromisoformat(moment) - _GRAIN):
            self._pending[token_id] = moment

    async def keep_storing(self) -> None:
        """Store what has gathered, again and again, until cancelled."""
        while True:
            await asyncio.sleep(_PAUSE)
            try:
                await self.store()
            except Exception:  # whatever it is, the next round may go well
                log.exception("last_use_not_stored")

    async def store(self) -> None:
        """Store what has gathered. Where the database is away, it is dropped: the next use brings it up again."""
        if not self._pending:
            return
        gathered, self._pending = self._pending, {}
        try:
            await self._database.write(lambda connection: _write(connection, gathered))
        except Unavailable:
            return


def _write(connection: Connection, uses: dict[str, str]) -> None:
    connection.execute(
        update(AccessToken).where(AccessToken.id == bindparam("token")).values(last_used_at=bindparam("used")),
        [{"token": token_id, "used": moment} for token_id, moment in uses.items()],
    )
