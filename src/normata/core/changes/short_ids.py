"""Numbers for people, counted by kind and organization: short ids, and the orders of lists.

Each comes from a counter that never goes back, so that no number is used twice, even by simultaneous requests.
"""

from __future__ import annotations

from functools import cache

from sqlalchemy import Insert, bindparam, func, select, update
from sqlalchemy.orm import Mapped, mapped_column

from normata.core.changes.unit_of_work import UnitOfWork, insert_of, update_of
from normata.core.db.upsert import upsert
from normata.core.schema.fields import MAX_NUMBER, Count, Identifier
from normata.core.schema.table import Table, foreign_key, sql_table


class ShortIdCounter(Table):
    """The last number that a counter of an organization has given.

    ``kind`` names the counter: a table for its short ids (``task``), a table and a column for another number
    (``task.order``).
    """

    __tablename__ = "short_id_counter"
    published = False

    organization_id: Mapped[Identifier] = mapped_column(foreign_key("organization.id"), primary_key=True)
    kind: Mapped[Identifier] = mapped_column(primary_key=True)
    last: Mapped[Count]


NUMBERS = ("short_id", "order")  # the columns with numbers from counters
COUNTER_WRITES = (insert_of(ShortIdCounter), update_of(ShortIdCounter, "kind", "last"))


def reserve(unit: UnitOfWork, table: type[Table], column: str, organization_id: str, count: int) -> int | None:
    """The first of ``count`` numbers in a row that nobody else gets; null if there are not as many left.

    Whoever wants numbers of the same counter meanwhile waits until this transaction ends.
    """
    key = _key(table, column, organization_id)
    parameters = {**key, "count": count, "most": MAX_NUMBER - count}
    last = unit.scalar(_RESERVE, parameters)
    if last is None:
        unit.rows(_start(table, column), key)
        last = unit.scalar(_RESERVE, parameters)
    return None if last is None else last - count + 1


def raise_to(unit: UnitOfWork, table: type[Table], column: str, organization_id: str, number: int) -> None:
    """Have the numbers that follow be higher than ``number``, which a row was given by other means."""
    key = _key(table, column, organization_id)
    last = unit.scalar(_LAST, key)
    if last is None:
        unit.rows(_start(table, column), key)
    if last is None or last < number:
        unit.rows(_RAISE, {**key, "number": number})


def _key(table: type[Table], column: str, organization_id: str) -> dict[str, str]:
    name = str(table.__tablename__)
    return {"organization": organization_id, "counter": name if column == "short_id" else f"{name}.{column}"}


_COUNTER = sql_table(ShortIdCounter)
_IS_TARGET = (_COUNTER.c.organization_id == bindparam("organization")) & (_COUNTER.c.kind == bindparam("counter"))
_LAST = select(_COUNTER.c.last).where(_IS_TARGET)
_RESERVE = (
    update(_COUNTER)
    .where(_IS_TARGET, _COUNTER.c.last <= bindparam("most"))
    .values(last=_COUNTER.c.last + bindparam("count"))
    .returning(_COUNTER.c.last)
)
_RAISE = update(_COUNTER).where(_IS_TARGET, _COUNTER.c.last < bindparam("number")).values(last=bindparam("number"))


@cache
def _start(table: type[Table], column: str) -> Insert:
    """Make the counter, at the highest number that there is. Where it was made meanwhile, it stays as it is."""
    columns = sql_table(table).columns
    highest = select(func.coalesce(func.max(columns[column]), 0)).where(
        columns.organization_id == bindparam("organization")
    )
    values = {
        "organization_id": bindparam("organization"),
        "kind": bindparam("counter"),
        "last": highest.scalar_subquery(),
    }
    return upsert(_COUNTER, values, key=("organization_id", "kind"), update=("kind",))
