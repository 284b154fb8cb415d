"""Query plans of both databases, with the indexes used, and the tables that are read completely."""

import json
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import asyncpg

from benchmarks.installations import SQLite, Store
from benchmarks.speed.statements import Statement

# For the given parameters, and for any, to which a connection may switch after sending a statement five times.
_MODES = ("force_custom_plan", "force_generic_plan")


@dataclass(order=True)
class Plan:
    """The plan of a statement; ``whole`` lists tables that were read completely."""

    milliseconds: float
    rows: int
    rows_read: int | None = None
    indexes: list[str] = field(default_factory=list)
    whole: list[str] = field(default_factory=list)


async def explain(store: Store, label: str, begin: str, statement: Statement) -> list[Plan]:
    """The plans of a statement in the transaction that ``begin`` starts, one for each mode. All is rolled back.

    Each runs twice, because the first run may have to read from the disk.
    """
    if isinstance(store, SQLite):
        with closing(sqlite3.connect(store.path(label), isolation_level=None)) as file:
            return [min(_on_sqlite(file, statement) for _ in range(2))]
    connection = await asyncpg.connect(store.url(label))
    statement, plans = await _inside(connection, statement), []
    for mode in _MODES:
        planned = f"{begin};SET LOCAL plan_cache_mode = {mode};PREPARE scale AS {statement.text}"
        plans.append(min([await _on_postgresql(connection, planned, statement) for _ in range(2)]))
    await connection.close()
    return plans


def _on_sqlite(connection: sqlite3.Connection, statement: Statement) -> Plan:
    connection.execute("BEGIN")
    started = time.perf_counter()
    cursor = connection.execute(statement.text, statement.parameters)
    rows = cursor.fetchall()
    taken = (time.perf_counter() - started) * 1000
    plan = Plan(taken, len(rows) if cursor.description else cursor.rowcount)
    tables = {alias: table for table, alias in re.findall(r"(\w+) AS (\w+)", statement.text)}
    for *_, detail in connection.execute(f"EXPLAIN QUERY PLAN {statement.text}", statement.parameters):
        plan.indexes += re.findall(r"USING (?:AUTOMATIC )?(?:PARTIAL )?(?:COVERING )?INDEX (\w+)", detail)
        # SQLite builds an automatic index from the whole table, for a single statement.
        scanned = re.findall(r"^SCAN (?!CONSTANT)(\w+)|^SEARCH (\w+) USING AUTOMATIC", detail)
        plan.whole += [tables.get(name, name) for names in scanned for name in names if name]
    connection.execute("ROLLBACK")
    return plan


async def _inside(connection: Any, statement: Statement) -> Statement:
    """The query within a lookup's function; other statements unchanged."""
    function = re.match(r"SELECT \* FROM public\.(\w+)\(", statement.text)
    if function is None:
        return statement
    source = "SELECT prosrc, proargnames FROM pg_proc WHERE proname = $1"
    body, names = await connection.fetchrow(source, function[1])
    text = body.partition("RETURN QUERY ")[2].rpartition(";\nEND")[0]
    for number, name in enumerate(names[: len(statement.parameters)], 1):
        text = re.sub(rf"\b{name}\b", f"${number}::text[]", text)
    return statement._replace(text=text)


async def _on_postgresql(connection: Any, planned: str, statement: Statement) -> Plan:
    await connection.execute(planned)
    arguments = f"({', '.join(map(_literal, statement.parameters))})" if statement.parameters else ""
    document = await connection.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE scale {arguments}")
    await connection.execute("ROLLBACK;DEALLOCATE scale")
    (explained,) = json.loads(document)
    plan = Plan(explained["Execution Time"], round(explained["Plan"]["Actual Rows"]), 0)
    for node in _nodes(explained["Plan"]):
        relation, index, loops = node.get("Relation Name"), node.get("Index Name"), node["Actual Loops"]
        plan.indexes += [index] if index and loops else []
        if relation and loops and node["Node Type"] != "ModifyTable":
            removed = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
            plan.rows_read = round((plan.rows_read or 0) + (node["Actual Rows"] + removed) * loops)
            if node["Node Type"] == "Seq Scan" or (index and "Index Cond" not in node):
                plan.whole.append(relation)
    return plan


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from _nodes(child)


def _literal(value: object) -> str:
    if isinstance(value, list):
        return f"ARRAY[{', '.join(map(_literal, value))}]::text[]"
    plain = value is None or isinstance(value, bool | int | float)
    return str("NULL" if value is None else value) if plain else "'" + str(value).replace("'", "''") + "'"
