"""Which statements get many values in one parameter. That they store and find the same is seen in other tests."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import bindparam, insert, select, update
from sqlalchemy.engine import make_url

from normata.bundle.stored_values import insertion
from normata.core.db.postgresql.bulk import for_many_rows, list_from_array
from normata.core.db.statements import Statements
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


def test_long_lists_are_one_text_with_an_array() -> None:
    statement = select(_EFFECTIVE.c.rank).where(
        _EFFECTIVE.c.organization_id == bindparam("organization"),
        _EFFECTIVE.c.control_id.in_(bindparam("ids", expanding=True)),
        _EFFECTIVE.c.status == bindparam("status"),
    )
    prepared = Statements(DIALECT, None, list_from_array).prepare(statement, {})
    bound = [
        prepared.bind({"ids": ids, "organization": "one", "status": "FULL"})
        for ids in (["a", "b"], [str(number) for number in range(65)], [str(number) for number in range(5_000)])
    ]
    assert bound[0][1] == ["one", 2, "a", "b"]
    assert bound[1][0] == bound[2][0]
    assert "IN (SELECT unnest($3::VARCHAR[]))" in bound[2][0]
    assert bound[2][1] == ["one", 2, [str(number) for number in range(5_000)]]


def test_a_parameter_that_is_no_list_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="parameter 2"):
        list_from_array("SELECT 1 WHERE a = $1::VARCHAR AND b IN ($1::VARCHAR)", 2)
