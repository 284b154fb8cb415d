"""Creating one row, as an operation of the interface will: the rules of ``normata.core.changes`` without any load."""

from __future__ import annotations

from typing import Any

from normata.core.changes.rows import read_row
from normata.core.changes.short_ids import COUNTER_WRITES
from normata.core.changes.source import Fault, FaultyInput, Row
from normata.core.changes.unit_of_work import Change, UnitOfWork, insert_of
from normata.core.changes.validity import make_valid
from normata.core.changes.writing import write
from normata.core.db.security import Write
from normata.records.base import Restorable
from tests.world import ALPHA


def create(unit: UnitOfWork, kind: type[Restorable], values: dict[str, Any]) -> dict[str, Any]:
    """Make a record of the body of a request. Raises FaultyInput with all faults of the body."""
    faults: list[Fault] = []
    row = read_row(kind, Row(kind.array, "body", "", {"organizationId": ALPHA} | values), faults)
    if row is not None:
        make_valid(unit, {kind: [row]})
    if faults or row is None:
        raise FaultyInput(faults)
    write(unit, kind, [row])
    unit.publish(Change("create", kind, row.final["organization_id"], row.id, row.final))
    return row.final


def writes(kind: type[Restorable]) -> tuple[Write, ...]:
    """What :func:`create` writes."""
    return (insert_of(kind), *COUNTER_WRITES)
