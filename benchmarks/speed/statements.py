"""The statements that Normata sends, recorded in the drivers, so that they can be sent again without Normata."""

import re
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

import asyncpg
from starlette.testclient import TestClient

from benchmarks.speed.data import Post
from normata.app import create_app
from normata.core.schema.table import new_id
from normata.settings import Settings

_MADE_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Statement(NamedTuple):
    text: str
    parameters: tuple[Any, ...] = ()
    sent_at: float = 0.0  # seconds, as of time.perf_counter


class Transaction(NamedTuple):
    """The statements of one change, from the start of its transaction to the commit."""

    mark: str
    statements: list[Statement]

    def of(self, mark: str) -> list[Statement]:
        """The statements for another change: with its mark, and new ids. Only ids that Normata creates are UUIDs."""
        made: dict[str, str] = {}

        def replaced(value: Any) -> Any:
            if not isinstance(value, str):
                return value
            if _MADE_ID.fullmatch(value):
                return made.setdefault(value, new_id())
            return value.replace(self.mark, mark)

        return [Statement(text, tuple(map(replaced, parameters))) for text, parameters, _ in self.statements]


def capture(database_url: str, token: str, post: Post, write: str) -> Transaction:
    """The statements of a request, in the transaction that contains a statement beginning with ``write``."""
    app = create_app(Settings(database_url=database_url, log_level="error"))
    with noted() as sessions, TestClient(app, headers={"Authorization": f"Bearer {token}"}) as client:
        client.post(post.path, json=post.body).raise_for_status()
    sent = next(sent for sent in sessions if any(one.text.startswith(write) for one in sent))
    texts = [statement.text for statement in sent]
    written = next(place for place, text in enumerate(texts) if text.startswith(write))
    first = max(place for place in range(written) if texts[place].startswith("BEGIN"))
    return Transaction(post.mark, sent[first : texts.index("COMMIT", written) + 1])


@contextmanager
def noted() -> Iterator[list[list[Statement]]]:
    """Record what both drivers send in this block: a list for each connection that is opened."""
    sessions: list[list[Statement]] = []
    connect, connect_to_file = asyncpg.connect, sqlite3.connect

    async def connect_noting(*arguments: Any, **options: Any) -> Any:
        connection: Any = await connect(*arguments, **options)
        sessions.append([])
        connection._protocol = _Noting(connection._protocol, _OF_ASYNCPG, sessions[-1])
        return connection

    def connect_to_file_noting(*arguments: Any, **options: Any) -> Any:
        sessions.append([])
        return _Noting(connect_to_file(*arguments, **options), _OF_SQLITE, sessions[-1])

    with patch.object(asyncpg, "connect", connect_noting), patch.object(sqlite3, "connect", connect_to_file_noting):
        yield sessions


# The methods that send: of sqlite3's connections and cursors, and of asyncpg's protocol.
_OF_SQLITE = ("execute", "executemany")
_OF_ASYNCPG = ("query", "bind", "bind_execute", "bind_execute_many")


class _Noting:
    """A proxy of a driver's connection, cursor or protocol that records what is sent."""

    def __init__(self, inner: Any, sending: Sequence[str], sent: list[Statement]) -> None:
        self._inner, self._sending, self._sent = inner, sending, sent

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._inner, name)
        if name == "cursor":
            return lambda *arguments: _Noting(attribute(*arguments), self._sending, self._sent)
        if name not in self._sending:
            return attribute

        def send(state: Any, args: Any = (), *rest: Any, **options: Any) -> Any:
            args = list(args) if "many" in name else args
            every = args if "many" in name else [() if name == "query" else args]  # a query is followed by its timeout
            text = getattr(state, "query", state)
            self._sent.extend(Statement(text, tuple(one), time.perf_counter()) for one in every)
            return attribute(state, args, *rest, **options)

        return send
