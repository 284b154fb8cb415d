"""Every text column of every table is either looked through or declared to name nobody."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import BigInteger, Boolean, Integer, String
from sqlalchemy import Table as SqlTable
from sqlalchemy.types import TypeEngine

from normata.core.db.types import Document, UtcTimestamp
from normata.core.schema import fields
from normata.core.schema.table import CODED, sql_table, table_named
from normata.erasure.columns import texts_of, use_of, uses
from normata.tables import Table

# Types of columns in which nobody can write: numbers, flags, times, tokens of an enum.
WORDLESS: tuple[type[TypeEngine[Any]], ...] = (
    *(BigInteger, Boolean, Integer, UtcTimestamp),
    *(fields._Number, fields._Levels, fields._Ranked, fields._Tokens),
)
TABLES = pytest.mark.parametrize("table", Table.metadata.sorted_tables, ids=lambda table: table.name)


@TABLES
def test_every_type_is_known(table: SqlTable) -> None:
    """A column of a type of its own might have texts that nobody looks through."""
    for column in table.c:
        assert isinstance(column.type, (String, Document, *WORDLESS)), f"{column}: say in columns.py what it may hold"
        assert (use_of(column) is None) == isinstance(column.type, WORDLESS), column


@TABLES
def test_what_follows_from_others_is_derived_anew(table: SqlTable) -> None:
    """A derived text may repeat a name: `derive` of its table must make it, and not somebody who is not asked."""
    declared = table_named(table.name)
    derived = [name for name, use in uses(declared).items() if use == "derived" and not name.endswith("_id")]
    if not derived or not texts_of(declared):
        return
    row = {
        column.name: "Before" if use_of(column) in ("email", "text", "slug", "person") else None for column in table.c
    }
    made = dict(row)
    declared.derive(made)
    assert [name for name in derived if made[name] is None] in ([], ["version_key"])


def test_what_is_coded_says_so_itself() -> None:
    """The declaration stays with a column whose type or key is declared beside it."""
    found = {
        f"{table.name}.{column.name}"
        for table in Table.metadata.sorted_tables
        for column in table.c
        if "coded" in column.info
    }
    assert {"access_token.digest", "password.hash", "event_leaf.hash", "audit_event.user_id"} <= found
    assert CODED == {"coded": True}
    for name in found:
        table, _, column = name.partition(".")
        assert not sql_table(table_named(table)).c[column].name.endswith(("name", "title", "description", "email"))
