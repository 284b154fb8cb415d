"""Writing what a step, such as a verification, sets of a record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Update, bindparam, update

from normata.core.changes.unit_of_work import Change, UnitOfWork, update_of
from normata.core.db.security import Write
from normata.core.schema.table import derived_from
from normata.core.schema.wire import columns
from normata.records.base import Restorable


def step_writes(kind: type[Restorable], *names: str) -> tuple[Write, ...]:
    """The writes of a step that sets these columns, by :func:`take_step`."""
    return (update_of(kind, *_written(kind, names)),)


def take_step(unit: UnitOfWork, action: str, kind: type[Restorable], before: Any, values: Mapping[str, Any]) -> Any:
    """Give columns of the record ``before``, which is locked, these values, publish that, and return its row.

    What is derived from them, and the time of the last change, follow.
    """
    after = before._asdict() | values | {"updated_at": unit.moment}
    kind.derive(after)
    names = _written(kind, tuple(values))
    parameters = {f"new_{name}": after[name] for name in names} | {"record": before.id}
    row: Any = unit.row(_update(kind, names), parameters)
    changed = (*values, "updated_at")
    unit.publish(Change(action, kind, row.organization_id, row.id, row._asdict(), before._asdict(), changed=changed))
    return row


def _written(kind: type[Restorable], names: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted({*names, *derived_from(kind, names), "updated_at"}))


@cache
def _update(kind: type[Restorable], names: tuple[str, ...]) -> Update:
    table = kind.sql()
    return (
        update(table)
        .where(table.c.id == bindparam("record"))
        .values({name: bindparam(f"new_{name}", type_=table.c[name].type) for name in names})
        .returning(*columns(kind))
    )
