"""Changing the same fields of many records of any kinds in one transaction, by the same rules as of one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from pydantic import ValidationError
from sqlalchemy import Select, bindparam, select

from normata.core.changes.source import Fault, FaultyInput, Row, pointer
from normata.core.changes.unit_of_work import Change, UnitOfWork
from normata.core.changes.writing import BODY, valid_rows, write
from normata.core.db.security import Write, together
from normata.core.schema.faults import describe
from normata.core.schema.wire import as_wire, columns
from normata.errors import Archived, DomainError, NotFound, RecordsRefused
from normata.identity.organization_lookup import reached
from normata.records.archive.queries import KINDS
from normata.records.base import Restorable
from normata.records.change_operations import patch_model
from normata.records.writing import change_writes, merged_documents, rules_of

Kind = type[Restorable]
Values = Mapping[str, Any]  # by their wire names


class RecordChange(NamedTuple):
    """The fields of a record to change, and where its faults are in the input."""

    kind: Kind
    id: str
    values: Values
    place: str


class ChangedRecord(NamedTuple):
    """A record, with the fields that the change has changed: none if it was so before."""

    kind: Kind
    id: str
    label: str
    before: Values
    after: Values


def change_many(
    unit: UnitOfWork, organization: str, records: Sequence[tuple[Kind, str]], values: Values
) -> list[ChangedRecord]:
    """Change the fields in ``values`` of live records, all or none, and return what has changed.

    Raises NotFound and InsufficientRole if the organization is out of reach, FaultyInput with all faults, SlugTaken,
    and RecordsRefused if some of the records do not exist, or are archived.
    """
    organization_id = reached(unit, organization)
    by_kind = {kind: _checked(kind, values, len(records)) for kind in dict.fromkeys(kind for kind, _ in records)}
    faults = list(dict.fromkeys(fault for _, found in by_kind.values() for fault in found))
    if faults:
        raise FaultyInput(faults)
    changes = [
        RecordChange(kind, record_id, by_kind[kind][0], pointer("records", place))
        for place, (kind, record_id) in enumerate(records)
    ]
    there = found_records(unit, organization_id, records)
    refusals = [
        (place, refusal) for place, record in enumerate(records) if (refusal := _refusal(there.get(record))) is not None
    ]
    if refusals:
        raise RecordsRefused(refusals)
    return apply_changes(unit, organization_id, changes, there, merges=True)


def apply_changes(
    unit: UnitOfWork,
    organization_id: str,
    changes: Sequence[RecordChange],
    there: Mapping[tuple[Kind, str], Any],
    *,
    merges: bool = False,
) -> list[ChangedRecord]:
    """Make changes of records that are locked, and return them in their order. Raises FaultyInput and SlugTaken.

    With ``merges`` the documents among the values are patches (RFC 7396).
    """
    by_kind: defaultdict[Kind, list[RecordChange]] = defaultdict(list)
    for change in changes:
        by_kind[change.kind].append(change)
    faults: list[Fault] = []
    pending = {}
    for kind in (kind for kind in KINDS.values() if kind in by_kind):
        own_faults: list[Fault] = []
        rows = []
        for change in by_kind[kind]:
            row = Row(kind.array, BODY, change.place, {**change.values, "id": change.id})
            if merges:
                row = merged_documents(kind, there[kind, change.id], row, own_faults)
            rows.append(row)
        try:
            pending[kind] = valid_rows(unit, kind, rows, own_faults, own_rules=rules_of(kind))
        except FaultyInput as error:
            faults += error.faults
    if faults:
        raise FaultyInput(faults)
    written = [(kind, row.id) for kind, rows in pending.items() for row in write(unit, kind, rows)]
    now = found_records(unit, organization_id, [(change.kind, change.id) for change in changes])
    for kind, record_id in written:  # as they are stored: 3.0 is stored as 3
        before, after = there[kind, record_id], now[kind, record_id]
        unit.publish(Change("update", kind, organization_id, record_id, after._asdict(), before._asdict()))
    return [_changed(change.kind, there[change.kind, change.id], now[change.kind, change.id]) for change in changes]


def found_records(
    unit: UnitOfWork, organization_id: str, records: Sequence[tuple[Kind, str]]
) -> dict[tuple[Kind, str], Any]:
    """The organization's records among these, in wire form, locked until the transaction ends.

    They are locked in a fixed order, so that two requests with the same records do not deadlock.
    """
    ids: defaultdict[Kind, set[str]] = defaultdict(set)
    for kind, record_id in records:
        ids[kind].add(record_id)
    return {
        (kind, row.id): row
        for kind in KINDS.values()
        if kind in ids
        for row in unit.rows(_lock(kind), {"organization": organization_id, "ids": sorted(ids[kind])})
    }


def many_change_writes() -> tuple[Write, ...]:
    """The writes of changing many records."""
    return together(*(change_writes(kind) for kind in KINDS.values()))


def _checked(kind: Kind, values: Values, count: int) -> tuple[Values, list[Fault]]:
    """The values as a kind has them, and what is wrong with them whatever the record."""
    faults = []
    if "slug" in values and count > 1:
        faults.append(Fault(BODY, pointer("values", "slug"), "can be given to one record only"))
    try:
        patch = patch_model(kind).model_validate(values)
    except ValidationError as error:
        for found in error.errors():
            message = describe(found)[1]
            if found["type"] == "extra_forbidden":
                message = f"is not a field of {kind.plural()} that can be changed"
            faults.append(Fault(BODY, pointer("values", *found["loc"]), message))
        return {}, faults
    return patch.model_dump(by_alias=True, exclude_unset=True), faults


def _refusal(row: Any) -> DomainError | None:
    if row is None:
        return NotFound()
    return Archived() if row.archived_at is not None else None


def _changed(kind: Kind, before: Any, after: Any) -> ChangedRecord:
    old, new = as_wire(kind, before), as_wire(kind, after)
    names = [name for name in new if old[name] != new[name] and name != "updatedAt"]
    label = str(getattr(after, kind.title_column()))
    return ChangedRecord(
        kind, after.id, label, {name: old[name] for name in names}, {name: new[name] for name in names}
    )


@cache
def _lock(kind: Kind) -> Select[Any]:
    table = kind.sql()
    # No key is changed, so those who refer to the records need not wait.
    return (
        select(*columns(kind))
        .where(table.c.organization_id == bindparam("organization"), table.c.id.in_(bindparam("ids", expanding=True)))
        .order_by(table.c.id)
        .with_for_update(key_share=True)
    )
