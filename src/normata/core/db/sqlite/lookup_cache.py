"""Lookups on the event loop: answers are cached until the file changes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from normata.core.db.lookup import Lookup
from normata.core.db.sqlite.connection import Connections, File
from normata.core.db.statements import Rows, Statements

_LARGEST = 10_000  # answers of some hundred bytes each


class LookupCache:
    """Answers lookups with prepared statements, and from cached answers.

    SQLite's `data_version` shows whether another connection has changed the file, and this one never does. So it is
    read once per turn of the event loop, for all requests of that turn, which had arrived before. Under load that saves
    most of the cost of a lookup, because sqlite3 releases Python's lock with each statement.
    """

    def __init__(self, file: File, statements: Statements) -> None:
        self._connections = Connections(file, waits=False, only_reads=True, cache_mib=2)
        self._statements = statements
        self._prepared: dict[str, tuple[str, Rows]] = {}
        self._version: tuple[int, int] | None = None
        self._answers: dict[tuple[str | None, ...], Sequence[Any]] = {}
        self._checked_on: asyncio.AbstractEventLoop | None = None  # if checked in its present turn

    def look_up(self, lookup: Lookup, arguments: tuple[str | None, ...]) -> Sequence[Any]:
        """The current answer. Raises Unavailable and sqlite3.Error, also if it would have to wait."""
        loop = asyncio.get_running_loop()
        if self._checked_on is not loop:
            # First, so that a request that arrives during the check is not based on it.
            loop.call_soon(self._end_turn)
            version = self._connections.data_version()
            if version != self._version or len(self._answers) > _LARGEST:
                self._answers.clear()
            self._version, self._checked_on = version, loop
        key = lookup.name, *arguments
        answer = self._answers.get(key)
        if answer is None:
            sql, rows = self.prepared(lookup)
            answer = rows(self._connections.fetch(sql, arguments))
            if answer:  # not for lookups without an answer, of which guessing makes many
                self._answers[key] = answer
        return answer

    def prepared(self, lookup: Lookup) -> tuple[str, Rows]:
        """A lookup's statement, and the function that makes its rows."""
        prepared = self._prepared.get(lookup.name)
        if prepared is None:
            arguments = (f"?{number}" for number, _ in enumerate(lookup.arguments, 1))
            prepared = self._prepared[lookup.name] = lookup.sql(*arguments), self._statements.rows(lookup.columns)
        return prepared

    def close(self) -> None:
        """Close the connection."""
        self._connections.close()

    def _end_turn(self) -> None:
        self._checked_on = None
