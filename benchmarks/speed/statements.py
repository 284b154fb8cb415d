"""What a restore sends to the database, taken from Normata itself, so that it can be sent again without Normata.

One request is made of the application in this process. The transaction with its UPDATE is kept, statement by statement
and with its parameters, as the driver gets them. For another record its id is put in the place of the first's, and new
ids for those that Normata made: they are the only parameters that look like UUIDs.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

import asyncpg
from asyncpg.connection import LoggedQuery
from starlette.testclient import TestClient

from benchmarks.speed.data import policy_id
from normata.app import create_app
from normata.settings import Settings
from normata.vocabulary import new_id

_MADE_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Statement(NamedTuple):
    """What the driver is given."""

    text: str
    parameters: tuple[Any, ...]


class Transaction(NamedTuple):
    """The statements of the restore of one policy, from the one that begins it to the one that commits it."""

    policy_id: str
    statements: list[Statement]

    def of(self, number: int) -> list[Statement]:
        """The same for another policy."""
        other = policy_id(number)
        return [
            Statement(text, tuple(self._put(value, other) for value in parameters))
            for text, parameters in self.statements
        ]

    def _put(self, value: Any, other: str) -> Any:
        if not isinstance(value, str):
            return value
        return new_id() if _MADE_ID.fullmatch(value) else value.replace(self.policy_id, other)


def capture(database_url: str, token: str, number: int) -> Transaction:
    """What the restore of a policy sends. The policy is live afterwards."""
    app = create_app(Settings(database_url=database_url, log_level="error"))
    with _noted() as sessions, TestClient(app, headers={"Authorization": f"Bearer {token}"}) as client:
        client.post(f"/policies/{policy_id(number)}/restore/").raise_for_status()
    for statements in sessions:
        for place, statement in enumerate(statements):
            if statement.text.startswith("UPDATE policy"):
                first = max(at for at in range(place) if statements[at].text.startswith("BEGIN"))
                last = next(at for at in range(place, len(statements)) if statements[at].text == "COMMIT")
                # What keeps several restores of one transaction apart has no use where there is one.
                kept = [
                    one for one in statements[first : last + 1] if not one.text.startswith(("SAVEPOINT", "RELEASE"))
                ]
                return Transaction(policy_id(number), kept)
    raise LookupError("the restore has sent no UPDATE")


@contextmanager
def _noted() -> Iterator[list[list[Statement]]]:
    """What is sent over each connection of the two drivers that is opened in this block."""
    sessions: list[list[Statement]] = []

    class Noting(sqlite3.Connection):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self._sent: list[Statement] = []
            sessions.append(self._sent)

        def execute(self, text: str, parameters: Any = (), /) -> sqlite3.Cursor:
            self._sent.append(Statement(text, tuple(parameters)))
            return super().execute(text, parameters)

    connect, connect_to_file = asyncpg.connect, sqlite3.connect

    async def connect_noting(*arguments: Any, **options: Any) -> asyncpg.Connection[Any]:
        sent: list[Statement] = []
        sessions.append(sent)

        def note(query: LoggedQuery) -> None:
            sent.append(Statement(query.query, tuple(query.args)))

        connection: asyncpg.Connection[Any] = await connect(*arguments, **options)
        connection.add_query_logger(note)
        return connection

    def connect_to_file_noting(*arguments: Any, **options: Any) -> sqlite3.Connection:
        return connect_to_file(*arguments, **options, factory=Noting)

    with patch.object(asyncpg, "connect", connect_noting), patch.object(sqlite3, "connect", connect_to_file_noting):
        yield sessions
