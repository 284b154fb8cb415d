"""What is sent to SQLite's files, over any connection of this process, told by SQLite itself."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest


def traced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list that grows by each statement that is sent over a connection that is opened from now on."""
    seen: list[str] = []
    connect = sqlite3.connect

    def connect_traced(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **options)
        connection.set_trace_callback(seen.append)
        return connection

    monkeypatch.setattr(sqlite3, "connect", connect_traced)
    return seen
