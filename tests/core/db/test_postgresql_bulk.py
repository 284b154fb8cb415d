"""Which INSERTs of one row are sent as one statement for many. That they store the same is seen in every load."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import bindparam, insert, select, update
from sqlalchemy.engine import make_url

from normata.bundle.stored_values import insertion
from normata.core.db.postgresql.bulk import for_many_rows
from normata.core.schema.table import Table, sql_table, tables
from normata.frameworks.model import EffectiveCoverage

DIALECT = make_url("postgresql+asyncpg://").get_dialect()()
TABLES = sorted(tables(), key=lambda table: table.__tablename__)  # as each process of the tests must see them
_EFFECTIVE = sql_table(EffectiveCoverage)


def _sql(statement: Any) -> str:
    return str(statement.compile(dialect=DIALECT))


@pytest.mark.parametrize("table", TABLES, ids=[table.__tablename__ for table in TABLES])
def test_the_rows_of_every_table(table: type[Table]) -> None:
    assert for_many_rows(_sql(insertion(table))) is not None


def test_no_other_statement() -> None:
    ids = _EFFECTIVE.c.organization_id, _EFFECTIVE.c.control_id
    row: dict[str, Any] = {column.name: bindparam(column.name) for column in ids}
    for statement in (
        insert(_EFFECTIVE).values(row).returning(*ids),
        insert(_EFFECTIVE).values({**row, "rank": 1 + bindparam("rank", type_=_EFFECTIVE.c.rank.type)}),
        insert(_EFFECTIVE).from_select([column.name for column in ids], select(*ids)),
        update(_EFFECTIVE).values(row),
    ):
        assert for_many_rows(_sql(statement)) is None
