"""The names of users and rows in events, for messages that people read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Select, bindparam, select

from normata.core.db.transaction import Transaction
from normata.core.schema.table import sql_table, tables
from normata.identity.model import User


@cache
def arrays() -> Mapping[str, str]:
    """The kind of row on the wire by the class of its table, as events have it."""
    return {table.__name__: table.array for table in tables() if table.array}


def names_in(transaction: Transaction, rows: Sequence[Any]) -> dict[str, str]:
    """The names of the users and rows of an organization that events are about, by their ids."""
    users = {row.user_id for row in rows if row.user_id is not None}
    names = dict(transaction.rows(_USERS, {"ids": sorted(users)})) if users else {}
    by_class: defaultdict[str, set[str]] = defaultdict(set)
    for row in rows:
        if row.entity_id is not None:
            by_class[row.entity_type].add(row.entity_id)
    for class_name, ids in by_class.items():
        statement = _titles().get(class_name)
        if statement is not None:
            names |= dict(transaction.rows(statement, {"ids": sorted(ids), "owner": rows[0].organization_id}))
    return {row_id: name for row_id, name in names.items() if name and name != row_id}


@cache
def _titles() -> Mapping[str, Select[Any]]:
    """The names of rows of an organization by their ids, for each class of table whose rows have names."""
    found: dict[str, Select[Any]] = {}
    for table in tables():
        columns = sql_table(table).c
        if not table.array or table is User or "id" not in columns or "organization_id" not in columns:
            continue
        title = table.title_column()
        found[table.__name__] = select(columns.id, columns[title]).where(
            columns.id.in_(bindparam("ids", expanding=True)), columns.organization_id == bindparam("owner")
        )
    return found


_USER = sql_table(User)
_USERS = select(_USER.c.id, _USER.c.name).where(_USER.c.id.in_(bindparam("ids", expanding=True)))
