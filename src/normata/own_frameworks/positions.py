"""Places in catalog order: 0, 1, 2… within a framework, without gaps."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import bindparam, update

from normata.core.changes.rows import PendingRow
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.schema.fields import MAX_NUMBER
from normata.core.schema.table import sql_table
from normata.frameworks.model import Control


def make_room(unit: UnitOfWork, framework_id: str, first: int, new: Sequence[PendingRow]) -> None:
    """Give new controls the places from ``first`` on; what is there makes room."""
    _shift(unit, framework_id, len(new), first, MAX_NUMBER)
    for number, row in enumerate(new):
        row.final["position"] = first + number


def move(unit: UnitOfWork, framework_id: str, first: int, control: PendingRow) -> None:
    """Give a stored control the place ``first``, as places are before it leaves its own."""
    now = control.final["position"]
    if first > now + 1:
        _shift(unit, framework_id, -1, now + 1, first - 1)
        control.final["position"] = first - 1
    elif first < now:
        _shift(unit, framework_id, 1, first, now - 1)
        control.final["position"] = first


def _shift(unit: UnitOfWork, framework_id: str, by: int, first: int, last: int | None) -> None:
    unit.rows(
        _SHIFT, {"framework": framework_id, "by": by, "first": first, "last": 2**31 - 1 if last is None else last}
    )


_CONTROL = sql_table(Control)
_SHIFT = (
    update(_CONTROL)
    .where(
        _CONTROL.c.framework_id == bindparam("framework"),
        _CONTROL.c.position.between(bindparam("first"), bindparam("last")),
    )
    .values(position=_CONTROL.c.position + bindparam("by"))
)
