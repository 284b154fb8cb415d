"""Checks that indexes and triggers are those of a new database."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any

from sqlalchemy import MetaData, create_engine
from sqlalchemy.pool import StaticPool

from normata.core.db.schema_items import Item, differences

Fetch = Callable[[str], Sequence[Any]]

# The indexes of constraints have names that SQLite chooses, so these are compared by their columns.
_INDEXES = """\
SELECT i.tbl_name, i.name, i.sql, list."unique", list.origin, (
    SELECT group_concat(coalesce(name, '?') || iif("desc", ' DESC', '') || ' ' || coll, ', ')
    FROM (SELECT * FROM pragma_index_xinfo(i.name) WHERE "key" ORDER BY seqno)
)
FROM sqlite_schema AS i JOIN pragma_index_list(i.tbl_name) AS list ON list.name = i.name
WHERE i.type = 'index'
"""
_PROGRAMS = "SELECT type, tbl_name, name, sql FROM sqlite_schema WHERE type IN ('trigger', 'view')"


def faults(fetch: Fetch, metadata: MetaData) -> Iterator[str]:
    """The faults of indexes and triggers, a sentence each. Further indexes are allowed, unless they are unique."""
    with closing(sqlite3.connect(":memory:")) as scratch:
        engine = create_engine("sqlite://", creator=lambda: scratch, poolclass=StaticPool)
        metadata.create_all(engine)
        for table in metadata.tables.values():
            for trigger in table.info.get("triggers", ()):
                scratch.execute(trigger.sqlite)
        wanted = _items(lambda sql: scratch.execute(sql).fetchall())
    found = {item: what for item, what in _items(fetch).items() if item.table in metadata.tables}
    tables = {table for (table,) in fetch("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    # Missing tables are reported elsewhere.
    wanted = {item: what for item, what in wanted.items() if item.table in tables}
    yield from differences(wanted, found, frozenset({"index"}))


def _items(fetch: Fetch) -> dict[Item, object]:
    items: dict[Item, object] = {}
    for table, name, sql, is_unique, origin, columns in fetch(_INDEXES):
        kind = "unique index" if is_unique else "index"
        condition = _plain(sql or "").partition(" WHERE ")[2]
        items[Item(kind, table, name if origin == "c" else f"on {columns}")] = columns, condition
    for kind, table, name, sql in fetch(_PROGRAMS):
        items[Item(kind, table, name)] = _plain(sql)
    return items


def _plain(sql: str) -> str:
    return " ".join(sql.replace('"', "").split())
