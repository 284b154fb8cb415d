"""The ancestors and descendants of controls, in a few statements for any number of controls."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Self

from sqlalchemy import CTE, BindParameter, Boolean, ColumnElement, and_, bindparam, case, false, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.sql.operators import OperatorType
from typing_extensions import override

from normata.core.db.transaction import Transaction, batches
from normata.core.schema.table import sql_table
from normata.coverage.engine import Place, upwards
from normata.frameworks.counting import is_group, is_requirement
from normata.frameworks.model import Control


def groups_above(transaction: Transaction, controls: Collection[str]) -> dict[str, list[str]]:
    """The groups above each of these controls that has any, the nearest first."""
    places = {
        row.id: Place(row.parent_id, row.is_group)
        for batch in batches(sorted(controls))
        for row in transaction.rows(_PLACES, {"ids": batch})
    }
    return groups_among(places, controls)


def groups_among(places: Mapping[str, Place], controls: Collection[str]) -> dict[str, list[str]]:
    """:func:`groups_above`, from the places of the controls and of all that are above them."""
    found: dict[str, list[str]] = {}
    for control in controls:
        parent = places[control].parent if control in places else None
        groups = [name for name in upwards(parent, places) if places[name].is_group]
        if groups:
            found[control] = groups
    return found


def below_groups() -> CTE:
    """All controls below each of the groups ``ids``, with the columns group_id, id and is_requirement."""
    below = (
        select(_CONTROL.c.parent_id.label("group_id"), _CONTROL.c.id, is_requirement().label("is_requirement"))
        .where(_CONTROL.c.parent_id.in_(_IDS))
        .cte("below", recursive=True)
    )
    return below.union(
        select(below.c.group_id, _CONTROL.c.id, is_requirement()).join(below, _CONTROL.c.parent_id == below.c.id)
    )


def is_requirement_where(below: CTE, *conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    """The condition that a row of :func:`below_groups` is a requirement, and that ``conditions`` hold for it.

    Use it in place of conditions side by side. SQLite takes a recursive query for one of billions of rows, so where a
    condition is about a joined table alone, it first reads all of that table into a Bloom filter: 50,000 rows for the
    fourteen that are below a group. It does not so where one condition is about both.
    """
    return case((and_(*conditions), below.c.is_requirement), else_=false())


class IsIdOf(FunctionElement[bool]):
    """The condition that a column has the id of a row of a recursive query: ``IsIdOf(column, below.c.id)``.

    Use it for joins with :func:`below_groups` and ``ABOVE`` in place of ``==``. PostgreSQL takes a recursive query for
    one of hundreds or tens of thousands of rows. By an equation it would join these with all controls, or all coverage
    of the organization; what is in an array it can only look up.
    """

    inherit_cache = True
    type = Boolean()

    @override
    def self_group(self, against: OperatorType | None = None) -> Self:
        """The condition itself. Else SQLite would get ``column = id = 1``, for which it does not look into an index."""
        return self


@compiles(IsIdOf)
def _equal(element: IsIdOf, compiler: SQLCompiler, **options: Any) -> str:
    column, control_id = (compiler.process(one, **options) for one in element.clauses)
    return f"{column} = {control_id}"


@compiles(IsIdOf, "postgresql")
def _in_array(element: IsIdOf, compiler: SQLCompiler, **options: Any) -> str:
    column, control_id = (compiler.process(one, **options) for one in element.clauses)
    return f"{column} = ANY (ARRAY[{control_id}])"


_CONTROL = sql_table(Control)
_IDS: BindParameter[str] = bindparam("ids", expanding=True)

_below = select(_CONTROL.c.id).where(_CONTROL.c.parent_id.in_(_IDS)).cte("below", recursive=True)
_below = _below.union(select(_CONTROL.c.id).join(_below, _CONTROL.c.parent_id == _below.c.id))
BELOW = select(_below.c.id)  # the controls below those named by ``ids``

# The controls named by ``ids`` and those above them. UNION rather than UNION ALL, so that a circle of parents ends.
_place = (_CONTROL.c.id, _CONTROL.c.parent_id, is_group().label("is_group"), _CONTROL.c.framework_id)
ABOVE = select(*_place).where(_CONTROL.c.id.in_(_IDS)).cte("above", recursive=True)
ABOVE = ABOVE.union(select(*_place).join(ABOVE, _CONTROL.c.id == ABOVE.c.parent_id))
_PLACES = select(ABOVE.c.id, ABOVE.c.parent_id, ABOVE.c.is_group)
