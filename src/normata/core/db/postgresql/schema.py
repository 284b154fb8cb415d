"""Whether indexes and triggers are those that the tables declare."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlalchemy import Index, MetaData, PrimaryKeyConstraint, UniqueConstraint
from sqlalchemy import Table as SqlTable
from sqlalchemy.sql.compiler import IdentifierPreparer

from normata.core.db.postgresql import trigrams
from normata.core.db.postgresql.functions import Ask
from normata.core.db.schema_items import Item, differences

_INDEXES = """\
SELECT t.relname::text, i.relname::text, x.indisunique, m.amname::text, x.indnkeyatts, ARRAY(
    SELECT coalesce(a.attname::text, '?') FROM unnest(x.indkey::int2[]) WITH ORDINALITY AS k (number, place)
    LEFT JOIN pg_attribute AS a ON a.attrelid = t.oid AND a.attnum = k.number ORDER BY k.place
), pg_get_expr(x.indpred, x.indrelid)
FROM pg_index AS x JOIN pg_class AS i ON i.oid = x.indexrelid JOIN pg_class AS t ON t.oid = x.indrelid
JOIN pg_am AS m ON m.oid = i.relam
WHERE t.relnamespace = 'public'::regnamespace AND t.relkind IN ('r', 'p')
"""
_TRIGGERS = """\
SELECT c.relname::text, t.tgname::text, t.tgenabled::text, t.tgisinternal, pg_get_triggerdef(t.oid), p.prosrc
FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid JOIN pg_proc AS p ON p.oid = t.tgfoid
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
"""
_RULES = """\
SELECT c.relname::text, r.rulename::text FROM pg_rewrite AS r JOIN pg_class AS c ON c.oid = r.ev_class
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
"""
_ENABLED = "O"
_IS_NULL = re.compile(r"\(?\w+ IS (NOT )?NULL\)?")


def faults(ask: Ask, metadata: MetaData, quote: IdentifierPreparer) -> Iterator[str]:
    """The faults of indexes, triggers and rules, a sentence each. Further indexes are allowed unless unique."""
    found: dict[Item, object] = {}
    for table, name, is_unique, method, keys, columns, condition in ask(_INDEXES):
        kind = "unique index" if is_unique else "index"
        found[Item(kind, table, name)] = method, tuple(columns[:keys]), tuple(columns[keys:]), _plain(condition)
    for table, name, enabled, is_internal, definition, source in ask(_TRIGGERS):
        if not is_internal and not trigrams.is_own(name):
            found[Item("trigger", table, name)] = enabled, _unqualified(definition), source.strip()
        elif is_internal and enabled != _ENABLED:
            yield f"the table {table} does not look at references: the trigger {name} is off"
    found |= {Item("rule", table, name): None for table, name in ask(_RULES)}
    tables = {table for (table,) in ask("SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'")}
    wanted: dict[Item, object] = {}
    for table in metadata.tables.values():
        if table.name in tables:  # else the schema is out of date, which is reported elsewhere
            wanted |= _wanted(table, quote)
    ours = {item: what for item, what in found.items() if item.table in metadata.tables}
    yield from differences(wanted, ours, frozenset({"index"}))


def _wanted(table: SqlTable, quote: IdentifierPreparer) -> dict[Item, object]:
    items: dict[Item, object] = {}
    for constraint in table.constraints:
        if isinstance(constraint, UniqueConstraint | PrimaryKeyConstraint):
            columns = tuple(column.name for column in constraint.columns)
            if constraint.name is None:  # PostgreSQL chooses a name then
                is_key = isinstance(constraint, PrimaryKeyConstraint)
                name = "_".join((table.name, "pkey") if is_key else (table.name, *columns, "key"))
            else:
                name = (quote.format_constraint(constraint) or "").strip('"')
            if not columns:
                continue
            items[Item("unique index", table.name, name)] = "btree", columns, (), None
    for index in table.indexes:
        if index.info.get("dialect", "postgresql") == "postgresql":
            kind = "unique index" if index.unique else "index"
            name = (quote.format_index(index) or "").strip('"')
            items[Item(kind, table.name, name)] = _definition(index)
    for trigger in (one for one in table.info.get("triggers", ()) if one.postgresql):
        items[Item("trigger", table.name, trigger.name)] = (
            _ENABLED,
            _unqualified(trigger.postgresql),
            trigger.function.strip(),
        )
    return items


def _definition(index: Index) -> object:
    options = index.dialect_options["postgresql"]
    where = options["where"]
    return (
        options["using"] or "btree",
        tuple(column.name for column in index.columns),
        tuple(options["include"] or ()),
        None if where is None else _plain(str(where)),
    )


def _plain(condition: str | None) -> str | None:
    """A condition in a comparable form. PostgreSQL rewrites most, so for these only their existence counts."""
    if condition is None:
        return None
    return condition.strip("()") if _IS_NULL.fullmatch(condition) else "some"


def _unqualified(definition: str) -> str:
    return " ".join(definition.replace("public.", "").split())
