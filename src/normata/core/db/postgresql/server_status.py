"""PostgreSQL servers: the hosts of the URL, connections to them, and their status.

PostgreSQL counts a timeline up with each promotion (its manual, 26.3.6). Of two servers that both accept writes, the
one with the lower timeline is a primary that has been replaced. The state of a pooler or a proxy may be out of date, so
everything is read by SQL.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import asyncpg
from asyncpg.connect_utils import SessionAttribute

from normata.core.db.database import BadDatabaseUrl
from normata.core.db.postgresql.errors import CONNECT_ERRORS, first_line, is_lost
from normata.errors import Unavailable
from normata.settings import Settings

_WANTED = ("target_session_attrs", "PGTARGETSESSIONATTRS")
_TAKEN = frozenset({"any", "read-write", "primary"})

STANDBY = ""  # the timeline of a server in recovery

# The timeline in which the server writes, as eight digits like in the names of WAL files. pg_control has that of the
# last checkpoint, which comes some time after a promotion.
TIMELINE = "CASE WHEN pg_is_in_recovery() THEN '' ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END"

_STATUS_COLUMNS = (
    f"SELECT {TIMELINE} AS timeline, current_setting('transaction_read_only') = 'off' AS takes_writes,"  # noqa: S608 - built from constants
    " system_identifier AS system, pg_backend_pid() AS pid,"
    " CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END - '0/0' AS position"
    "{more} FROM pg_control_system()"
)

_STATUS = _STATUS_COLUMNS.format(more="")
# A message in the WAL gives the transaction an id, and its commit waits for the synchronous standby like that of a
# change. A transaction that only has an id would not wait.
_COMMITTED_STATUS = _STATUS_COLUMNS.format(
    more=", CASE WHEN NOT pg_is_in_recovery() THEN pg_logical_emit_message(true, 'normata', '') END"
)


# --- Hosts, and connections to them


class Hosts:
    """Opens connections to the hosts of the URL; each has an address of its own in ``addresses``."""

    def __init__(self, settings: Settings, *, serving: bool) -> None:
        self.addresses: Sequence[str] = _addresses(settings.database_url)
        self.timeout = settings.database_timeout
        self._statement_cache = settings.database_statement_cache
        # For each statement, including a ROLLBACK, because a server may vanish between any two.
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
                # asyncpg would rely on what a server, or a pooler in front of it, said when the connection was made.
                target_session_attrs=SessionAttribute.any,
            )
        except (ValueError, asyncpg.ClientConfigurationError) as error:
            raise BadDatabaseUrl(f"the database URL cannot be used: {error}") from None
        except CONNECT_ERRORS as error:
            raise Unavailable(str(error).splitlines()[0] if str(error) else type(error).__name__) from error
        return opened

    def label(self, address: str) -> str:
        """An address for people, without a password."""
        return urlsplit(address).netloc.rpartition("@")[2] or "the host of the environment"


def _addresses(url: str) -> list[str]:
    """A URL for each host of ``url``. Raises BadDatabaseUrl."""
    parts = urlsplit(url)
    query = parse_qsl(parts.query, keep_blank_values=True)
    parameters = dict(query)
    wanted = parameters.get(_WANTED[0]) or os.environ.get(_WANTED[1]) or "any"
    if wanted not in _TAKEN:
        raise BadDatabaseUrl(
            f"target_session_attrs={wanted} cannot be used: Normata takes the server that accepts writes; to read from"
            " a standby with a command, name that server alone"
        )
    remaining = [(name, value) for name, value in query if name != _WANTED[0]]
    user, at, hosts = parts.netloc.rpartition("@")
    if hosts:
        same = parts._replace(query=urlencode(remaining))
        return [urlunsplit(same._replace(netloc=f"{user}{at}{host}")) for host in hosts.split(",")]
    names = (parameters.get("host") or os.environ.get("PGHOST") or "").split(",")
    if len(names) == 1:
        return [urlunsplit(parts._replace(query=urlencode(remaining)))]
    ports = (parameters.get("port") or os.environ.get("PGPORT") or "").split(",")
    ports *= len(names) if len(ports) == 1 else 1  # a single port is for all hosts
    rest = [(name, value) for name, value in remaining if name not in {"host", "port"}]
    return [
        urlunsplit(parts._replace(query=urlencode([*rest, ("host", name), *([("port", port)] if port else [])])))
        for name, port in zip(names, ports, strict=False)
    ]


def _nothing() -> None:
    pass


class BackgroundClosing:
    """Closes connections with running statements in the background, each within ``timeout`` seconds.

    A server notices that a client has disconnected only when it next writes or reads, and not while a commit waits for
    its synchronous standby. So a dropped connection can stay open at the server for as long as that standby does not
    answer. asyncpg sends a request to cancel the statement, and `close` waits for it and for the server's answer.
    """

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._tasks: set[asyncio.Task[None]] = set()

    def close(self, connection: asyncpg.Connection[Any], then: Callable[[], None] = _nothing) -> None:
        """Close a connection, and call ``then`` once the server has ended its work, or the time is over."""
        task = asyncio.create_task(self._close(connection, then))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def finish(self) -> None:
        """Wait for all connections that are being closed."""
        if self._tasks:
            await asyncio.wait(tuple(self._tasks))

    async def _close(self, connection: asyncpg.Connection[Any], then: Callable[[], None]) -> None:
        try:
            with suppress(TimeoutError, *CONNECT_ERRORS):
                await connection.close(timeout=self._timeout)
        finally:
            connection.terminate()
            then()


# --- Commits


async def commit(connection: asyncpg.Connection[Any]) -> None:
    """Commit. Raises Unavailable if the server does not confirm it on the standby, and asyncpg's errors.

    A commit that waits for its synchronous standby and is cancelled there, by an administrator for instance, succeeds:
    it is on the primary, and perhaps nowhere else (PostgreSQL's manual, 27.2.8.4). The server only sends a warning.
    """
    with warnings_of(connection) as warnings:
        await connection.execute("COMMIT")
    if warnings:
        raise Unavailable(warnings[0], "unconfirmed")


@contextmanager
def warnings_of(connection: asyncpg.Connection[Any]) -> Iterator[list[str]]:
    """The server's warnings during the block."""
    found: list[str] = []

    def take(_connection: object, message: Any) -> None:
        if message.severity_en == "WARNING":
            found.append(message.message)

    connection.add_log_listener(take)
    try:
        yield found
    finally:
        connection.remove_log_listener(take)


# --- Status


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """The status that a server reported at a moment."""

    system: int  # the identifier of the cluster
    timeline: str
    position: int  # in bytes of WAL
    takes_writes: bool  # a primary can be read-only, too
    is_pooled: bool  # with a pooler, another server may answer the next query

    @property
    def is_primary(self) -> bool:
        """Whether it is not in recovery."""
        return self.timeline != STANDBY

    @property
    def rank(self) -> tuple[str, bool, int]:
        """The sort key of several servers: the greatest is to be used."""
        return self.timeline, self.takes_writes, self.position


async def fetch_status(connection: asyncpg.Connection[Any], *, commit: bool = False, within: float) -> ServerStatus:
    """The status that a connection's server reports; with ``commit``, in a transaction that it commits as a change.

    Raises asyncpg's errors, TimeoutError among them.
    """
    row = await connection.fetchrow(_COMMITTED_STATUS if commit else _STATUS, timeout=within)
    assert row is not None  # noqa: S101 - the statement always returns a row
    return ServerStatus(
        system=row["system"],
        timeline=row["timeline"],
        position=int(row["position"] or 0),
        takes_writes=row["takes_writes"],
        is_pooled=row["pid"] != connection.get_server_pid(),
    )


class HostProbe:
    """Asks one host for its status; ``reason`` is why it last did not answer."""

    def __init__(self, hosts: Hosts, address: str, closing: BackgroundClosing, patience: float) -> None:
        self.address = address
        self.reason = ""
        self._hosts = hosts
        self._closing = closing
        self._patience = patience
        self._connection: asyncpg.Connection[Any] | None = None

    async def status(self, *, commit: bool = False) -> ServerStatus | None:
        """The status of the host, with ``commit`` after a commit of its own; null if it does not answer in time."""
        try:
            async with asyncio.timeout(self._patience):
                status, warnings = await self._status(commit=commit)
        except asyncpg.InsufficientPrivilegeError as error:
            self.reason = f"the login of the service may not ask whether the server is the primary: {first_line(error)}"
        except (ValueError, Unavailable, *CONNECT_ERRORS) as error:
            self.reason = f"{self._hosts.label(self.address)}: {first_line(error)}"
        else:
            if not warnings:
                return status
            self.reason = warnings[0]  # the commit has not waited for the standby
        self.drop()
        return None

    async def _status(self, *, commit: bool) -> tuple[ServerStatus, Sequence[str]]:
        """The status of the host, and its warnings; over a new connection if the open one is lost."""
        if self._connection is not None:
            try:
                return await self._status_over(self._connection, commit=commit)
            except CONNECT_ERRORS as error:
                # A restarted server is not silent, so do not report it as such because of an old connection.
                if isinstance(error, TimeoutError) or not is_lost(error):
                    raise
                self.drop()
        # Its name distinguishes it from the service's own connections in `pg_stat_activity`.
        self._connection = await self._hosts.open(self.address, within=self._patience, name="normata heartbeat")
        return await self._status_over(self._connection, commit=commit)

    async def _status_over(
        self, connection: asyncpg.Connection[Any], *, commit: bool
    ) -> tuple[ServerStatus, Sequence[str]]:
        with warnings_of(connection) as warnings:
            return await fetch_status(connection, commit=commit, within=self._patience), warnings

    def drop(self) -> None:
        """Use a new connection the next time."""
        if self._connection is not None:
            self._closing.close(self._connection)
            self._connection = None


async def open_to_primary(hosts: Hosts) -> asyncpg.Connection[Any]:
    """A new connection to the primary among the hosts, or to the only host in any case. Raises Unavailable.

    All are asked at the same time, so that a lost machine takes only its share of the time-out.
    """
    if len(hosts.addresses) == 1:
        return await hosts.open(hosts.addresses[0], within=hosts.timeout)
    share = hosts.timeout / 2
    found = await asyncio.gather(*(_ask(hosts, address, share) for address in hosts.addresses), return_exceptions=True)
    answers = [answer for answer in found if not isinstance(answer, BaseException)]
    primary = max((answer for answer in answers if answer[1].is_primary), key=lambda one: one[1].rank, default=None)
    for connection, _ in answers:
        if primary is None or connection is not primary[0]:
            connection.terminate()
    if primary is not None:
        return primary[0]
    reasons = [error for error in found if isinstance(error, Exception)]
    unexpected = [error for error in reasons if not isinstance(error, Unavailable)]
    if unexpected:
        raise unexpected[0]
    raise Unavailable("; ".join(map(str, reasons)) if not answers else "no host of the database URL is a primary")


async def _ask(hosts: Hosts, address: str, within: float) -> tuple[asyncpg.Connection[Any], ServerStatus]:
    connection = await hosts.open(address, within=within)
    try:
        return connection, await fetch_status(connection, within=within)
    except CONNECT_ERRORS as error:
        with suppress(*CONNECT_ERRORS):
            connection.terminate()
        raise Unavailable(first_line(error)) from error
