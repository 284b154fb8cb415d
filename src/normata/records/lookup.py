"""Finding the record to change."""

from __future__ import annotations

from functools import cache
from typing import Any

from sqlalchemy import Select, bindparam, select

from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.schema.wire import columns
from normata.errors import NotFound
from normata.records.base import Restorable


def found_for_change(unit: UnitOfWork, kind: type[Restorable], record_id: str) -> Any:
    """The row of a record in wire form, live or archived, locked until the transaction ends.

    Raises NotFound (unknown, foreign, or of another kind) and InsufficientRole.
    """
    row = unit.row(_lock(kind), {"record": record_id})
    if row is None:
        # Without a lock: with row-level security, nobody can lock a row that they may only read.
        row = unit.row(find(kind), {"record": record_id})
    if row is None:
        raise NotFound
    unit.require_reach(row.organization_id)
    return row


@cache
def find(kind: type[Restorable]) -> Select[Any]:
    """The statement for the row of a record of any organization, in wire form; its parameter is ``record``."""
    return select(*columns(kind)).where(kind.sql().c.id == bindparam("record"))


@cache
def _lock(kind: type[Restorable]) -> Select[Any]:
    # The key does not change, so those who refer to the record need not wait.
    return find(kind).with_for_update(key_share=True)
