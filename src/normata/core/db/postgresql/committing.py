"""Commits that the server warns of.

A commit that waits for its synchronous standby and is cancelled there, by an administrator for instance, succeeds: it
is on the primary, and perhaps nowhere else (PostgreSQL's manual, 27.2.8.4). The server says so with a warning only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import asyncpg

from normata.errors import Unavailable


async def commit(connection: asyncpg.Connection[Any]) -> None:
    """Commit. Raises Unavailable where the server does not vouch for it, and asyncpg's errors."""
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
