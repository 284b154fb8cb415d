"""Importing a register: what its rows change is written as one batch, and the faults are those of its cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from normata.core.changes.source import Fault, FaultyInput
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.changes.writing import BODY
from normata.core.db.security import Write
from normata.errors import RecordsRefused
from normata.records.batch.commands import batch_writes, code_of, write_batch
from normata.records.batch.items import Item, Outcome
from normata.records.imports.planning import Plan, PlannedRow
from normata.records.imports.reading import place_of
from normata.records.registers.columns import EXTERNAL_ID, SOURCE, Kind

Result = Literal["created", "updated", "unchanged", "refused"]


@dataclass(frozen=True, slots=True)
class ImportedRow:
    """A row of a register, and what has become of it; ``record_id`` is null where there is no record."""

    row: PlannedRow
    result: Result
    record_id: str | None
    faults: Sequence[Fault] = ()


def import_writes(kind: Kind) -> tuple[Write, ...]:
    """The writes of :func:`import_rows`."""
    return batch_writes(kind)


def import_rows(unit: UnitOfWork, kind: Kind, plan: Plan, *, each_for_itself: bool) -> list[ImportedRow]:
    """Create and change the records of a plan, all or none, or each for itself; return what has become of the rows.

    Raises NotFound and InsufficientRole if the organization is out of reach, and FaultyInput with every fault of every
    cell; with each for itself, and where the columns are wrong, only those of the file as a whole.
    """
    if plan.faults:
        raise FaultyInput([*plan.faults])
    open_ = [row for row in plan.rows if not row.faults and not row.is_unchanged]
    faults = [fault for row in plan.rows for fault in row.faults]
    outcomes: Sequence[Outcome] = ()
    if open_:
        items = [_item(row) for row in open_]
        try:
            outcomes = write_batch(unit, kind, plan.organization_id, items, each_for_itself=each_for_itself)
        except FaultyInput as error:
            faults += [_of_cell(fault, open_) for fault in error.faults]
        except RecordsRefused as error:
            faults += [_refused(open_[place], refusal) for place, refusal in error.refusals]
    if faults and not each_for_itself:
        raise FaultyInput(sorted(faults, key=lambda fault: _row_number(fault.place)))
    done = {row.number: _imported(row, outcome, open_) for row, outcome in zip(open_, outcomes, strict=True)}
    return [done.get(row.number) or _left(row) for row in plan.rows]


def _item(row: PlannedRow) -> Item:
    if row.record_id is None:
        action: Literal["create", "upsert"] = "create" if row.external is None else "upsert"
        return Item(action, row.values, external=row.external)
    # The plan may be out of date: the record must still be as it was then.
    return Item("update", row.values, row.record_id, row.external, row.tag)


def _imported(row: PlannedRow, outcome: Outcome, rows: Sequence[PlannedRow]) -> ImportedRow:
    refusal = outcome.refusal
    if refusal is None and outcome.result is not None:
        return ImportedRow(row, outcome.result, outcome.id)
    faults = refusal.faults if isinstance(refusal, FaultyInput) else None
    found = [_refused(row, refusal)] if faults is None else [_of_cell(fault, rows) for fault in faults]
    return ImportedRow(row, "refused", row.record_id, found)


def _left(row: PlannedRow) -> ImportedRow:
    """A row that needs no batch: it changes nothing, or is refused."""
    return ImportedRow(row, "refused" if row.faults else "unchanged", row.record_id, row.faults)


def _of_cell(fault: Fault, rows: Sequence[PlannedRow]) -> Fault:
    """The fault of an item of the batch, as one of the cell that it comes from."""
    _, _, place, *steps = fault.place.split("/")
    name = {"external": SOURCE if steps[1:] == ["source"] else EXTERNAL_ID}.get(steps[0], steps[0]) if steps else None
    return Fault(BODY, place_of(rows[int(place)].number, name), fault.reason, fault.code)


def _refused(row: PlannedRow, refusal: Exception | None) -> Fault:
    assert refusal is not None  # noqa: S101 - narrows the type
    column = EXTERNAL_ID if row.external is not None and code_of(refusal) == "external_id_taken" else None
    column = "slug" if code_of(refusal) == "slug_taken" else column
    return Fault(BODY, place_of(row.number, column), str(refusal), code_of(refusal))


def _row_number(place: str) -> int:
    """The number of the row in a place; 0 for the whole file."""
    number = place.split("/")[2] if place.startswith("/rows/") else "0"
    return int(number)
