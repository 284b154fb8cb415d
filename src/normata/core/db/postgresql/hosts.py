"""The hosts that a database URL names, and connections to them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import asyncpg
from asyncpg.connect_utils import SessionAttribute

from normata.core.db.database import BadDatabaseUrl
from normata.core.db.postgresql.errors import CONNECT_ERRORS
from normata.errors import Unavailable
from normata.settings import Settings

_WANTED = ("target_session_attrs", "PGTARGETSESSIONATTRS")
_TAKEN = frozenset({"any", "read-write", "primary"})


class Hosts:
    """Opens connections to the hosts of the URL; each has an address of its own in ``addresses``."""

    def __init__(self, settings: Settings, *, serving: bool) -> None:
        self.addresses: Sequence[str] = _addresses(settings.database_url)
        self.timeout = settings.database_timeout
        self._statement_cache = settings.database_statement_cache
        # Of each statement, a ROLLBACK among them: a server that goes without a word may do so between any two.
        self._answer_timeout = self.timeout * 2 if serving else None

    async def open(self, address: str, *, within: float, name: str = "normata") -> asyncpg.Connection[Any]:
        """A new connection to one of the addresses. Raises BadDatabaseUrl and Unavailable."""
        try:
            opened: asyncpg.Connection[Any] = await asyncpg.connect(
                address,
                timeout=within,
                command_timeout=self._answer_timeout,
                statement_cache_size=self._statement_cache,
                server_settings={"application_name": name},
                # asyncpg would go by what a server, or a pooler in its place, told when the connection was made.
                target_session_attrs=SessionAttribute.any,
            )
        except (ValueError, asyncpg.ClientConfigurationError) as error:
            raise BadDatabaseUrl(f"the database URL cannot be used: {error}") from None
        except CONNECT_ERRORS as error:
            raise Unavailable(str(error).splitlines()[0] if str(error) else type(error).__name__) from error
        return opened

    def label(self, address: str) -> str:
        """An address as people may see it: without a password."""
        return urlsplit(address).netloc.rpartition("@")[2] or "the host of the environment"


def _addresses(url: str) -> list[str]:
    """A URL for each host of ``url``. Raises BadDatabaseUrl."""
    parts = urlsplit(url)
    query = parse_qsl(parts.query, keep_blank_values=True)
    given = dict(query)
    wanted = given.get(_WANTED[0]) or os.environ.get(_WANTED[1]) or "any"
    if wanted not in _TAKEN:
        raise BadDatabaseUrl(
            f"target_session_attrs={wanted} cannot be used: Normata takes the server that accepts writes; to read from"
            " a standby with a command, name that server alone"
        )
    kept = [(name, value) for name, value in query if name != _WANTED[0]]
    user, at, hosts = parts.netloc.rpartition("@")
    if hosts:
        same = parts._replace(query=urlencode(kept))
        return [urlunsplit(same._replace(netloc=f"{user}{at}{host}")) for host in hosts.split(",")]
    names = (given.get("host") or os.environ.get("PGHOST") or "").split(",")
    if len(names) == 1:
        return [urlunsplit(parts._replace(query=urlencode(kept)))]
    ports = (given.get("port") or os.environ.get("PGPORT") or "").split(",")
    ports *= len(names) if len(ports) == 1 else 1  # one port is that of all hosts
    rest = [(name, value) for name, value in kept if name not in {"host", "port"}]
    return [
        urlunsplit(parts._replace(query=urlencode([*rest, ("host", name), *([("port", port)] if port else [])])))
        for name, port in zip(names, ports, strict=False)
    ]
