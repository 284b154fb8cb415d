"""Finding the record that a change is about."""

from __future__ import annotations

from functools import cache
from typing import Any

from sqlalchemy import Select, bindparam, select

from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.schema.wire import columns
from normata.errors import NotFound
from normata.records.base import Restorable


def found_for_change(unit: UnitOfWork, kind: type[Restorable], record_id: str) -> Any:
    """The row of a record in wire form, live or archived, which nobody else changes until the transaction ends.

    Raises NotFound (unknown, foreign, or not of this kind: all alike) and InsufficientRole.
    """
    row = unit.row(_lock(kind), {"record": record_id})
    if row is None:
        # With row-level security, nobody can lock a row that they may only read.
        row = unit.row(find(kind), {"record": record_id})
    if row is None:
        raise NotFound
    unit.require_reach(row.organization_id)
    return row


@cache
def find(kind: type[Restorable]) -> Select[Any]:
    """The row of a record of whatever organization, in wire form; its parameter is ``record``."""
    return select(*columns(kind)).where(kind.sql().c.id == bindparam("record"))


@cache
def _lock(kind: type[Restorable]) -> Select[Any]:
    # No key is changed, so those who refer to the record need not wait.
    return find(kind).with_for_update(key_share=True)
