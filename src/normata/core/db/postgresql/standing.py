"""What a server says of itself: whether it is the primary, and of which timeline.

PostgreSQL counts a timeline up with each promotion (its manual, 26.3.6). Of two servers that both take writes, the one
of the lower timeline is a primary that has been replaced. What a pooler or a proxy remembers of a server may be out of
date, so everything is asked by SQL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import asyncpg

STANDBY = ""  # the timeline of a server that is in recovery

# The timeline that the server writes, in eight digits as the names of its WAL files have it. What pg_control has is
# that of the last checkpoint, which comes some time after a promotion.
TIMELINE = "CASE WHEN pg_is_in_recovery() THEN '' ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END"

_STANDING = (
    f"SELECT {TIMELINE} AS timeline, current_setting('transaction_read_only') = 'off' AS takes_writes,"  # noqa: S608 - of our own making
    " system_identifier AS system, pg_backend_pid() AS pid,"
    " CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END - '0/0' AS position"
    "{more} FROM pg_control_system()"
)

STANDING = _STANDING.format(more="")
# With a message in the WAL that nobody reads, the transaction gets an id, and its commit waits for the synchronous
# standby as that of a change does. A transaction that only got an id would not wait.
COMMITTED_STANDING = _STANDING.format(
    more=", CASE WHEN NOT pg_is_in_recovery() THEN pg_logical_emit_message(true, 'normata', '') END"
)


@dataclass(frozen=True, slots=True)
class Standing:
    """What a server said of itself at a moment."""

    system: int  # which cluster of servers it belongs to
    timeline: str
    position: int  # how far it has got, in bytes of WAL
    takes_writes: bool  # a primary can be told to be read-only
    is_pooled: bool  # a pooler stands in between: the next question may be answered by another server

    @property
    def is_primary(self) -> bool:
        """Whether it is not in recovery."""
        return self.timeline != STANDBY

    @property
    def rank(self) -> tuple[str, bool, int]:
        """Of several servers, the one to take is the greatest."""
        return self.timeline, self.takes_writes, self.position


async def standing_of(connection: asyncpg.Connection[Any], *, commit: bool = False, within: float) -> Standing:
    """What the server at the other end says of itself; with ``commit``, in a transaction that it commits as a change.

    Raises asyncpg's errors, TimeoutError among them.
    """
    row = await connection.fetchrow(COMMITTED_STANDING if commit else STANDING, timeout=within)
    assert row is not None  # noqa: S101 - the statement has one row
    return Standing(
        system=row["system"],
        timeline=row["timeline"],
        position=int(row["position"] or 0),
        takes_writes=row["takes_writes"],
        is_pooled=row["pid"] != connection.get_server_pid(),
    )
