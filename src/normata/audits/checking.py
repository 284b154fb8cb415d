"""Checking the rows of a checklist: setting their results and notes, and making findings from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

from pydantic import Field
from sqlalchemy import bindparam, select, update

from normata.audits.model import (
    CONFORMING,
    MAX_FINDINGS,
    NONCONFORMING,
    NOT_CHECKED,
    OBSERVATION,
    ChecklistRow,
    ChecklistStatus,
)
from normata.audits.rows import CHECKED_KINDS, ROW
from normata.core.changes.references import References
from normata.core.changes.rows import PendingRow
from normata.core.changes.source import Fault, FaultyInput, pointer
from normata.core.changes.unit_of_work import Change, UnitOfWork, update_of
from normata.core.changes.writing import BODY
from normata.core.schema.fields import Identifier, Text
from normata.core.schema.wire import Input
from normata.errors import Archived, Forbidden, NotFound
from normata.identity.authority import own_membership
from normata.links.commands import CREATION_WRITES, Wanted, make_links
from normata.links.model import OWNS, RELATES, End
from normata.links.relations import CONTROLS, MEMBERS
from normata.links.rules import fault_ends
from normata.records.kinds import Audit, Finding
from normata.records.lookup import found_for_change
from normata.records.writing import create, creation_writes

MAX_AT_ONCE = 500

_CHANGED = ("status", "note", "checked_at", "checked_by_id", "finding_ids")
CHECKING_WRITES = (update_of(ChecklistRow, *_CHANGED),)
FINDING_WRITES = (*CHECKING_WRITES, *creation_writes(Finding), *CREATION_WRITES)

_NO_PERSON = "A row of a checklist is checked by a member, and not by a service account."
# The result of a row that nobody had checked, by the type of a finding from it. Any other type is an observation.
_RESULTS = {
    "MAJOR_NONCONFORMITY": NONCONFORMING,
    "MINOR_NONCONFORMITY": NONCONFORMING,
    "CONFORMITY": CONFORMING,
}


def _nothing() -> None:
    """The default of a field that is left out; so OpenAPI shows none."""


class RowChange(Input):
    """What is changed of a row of a checklist. A field that is left out stays as it is."""

    status: Annotated[
        ChecklistStatus, Field(default_factory=lambda: NOT_CHECKED, description="What came of checking it.")
    ]
    note: Annotated[
        Text | None, Field(default_factory=_nothing, description="What was seen, and whom or what it was seen at.")
    ]


class RowOfManyChange(RowChange):
    """What is changed of one of several rows."""

    id: Identifier = Field(description="The id of the row.")


class RowsChange(Input):
    """What is changed of several rows of a checklist."""

    rows: Annotated[list[RowOfManyChange], Field(min_length=1, max_length=MAX_AT_ONCE, description="The rows.")]


class FindingOfRow(NamedTuple):
    """A finding that was made, and the row that it was made from."""

    finding: Any
    row: Any


def check_loaded(_unit: UnitOfWork, rows: Sequence[PendingRow], references: References) -> None:
    """Add faults for rows about what does not exist in the organization, or is on no checklist."""
    fault_ends(rows, references, [("about_kind", "about_id")], CHECKED_KINDS)


def check_row(unit: UnitOfWork, row_id: str, body: RowChange, *, require_current: Callable[[Any], None]) -> Any:
    """Set the result or the note of a row, and return the row. Setting what is there changes nothing.

    ``require_current`` gets the row before, and raises if that is not the state that the caller knows. Raises NotFound,
    InsufficientRole, Archived, Forbidden for a service account, and FaultyInput.
    """
    before = _found(unit, row_id)
    require_current(before)
    return _change(unit, before, body, "")


def check_rows(unit: UnitOfWork, audit_id: str, body: RowsChange) -> tuple[str, list[str]]:
    """Set the results or the notes of several rows of one checklist, all or none.

    Return the id of the organization, and those of the rows.

    Raises as :func:`check_row`, and FaultyInput for a row that the checklist does not have, or that is named twice.
    """
    audit = _live(unit, audit_id)
    key = {"organization": audit.organization_id, "audit": audit_id, "ids": sorted({one.id for one in body.rows})}
    there = {row.id: row for row in unit.rows(_AMONG, key)}
    seen: set[str] = set()
    faults = []
    for place, one in enumerate(body.rows):
        if one.id not in there or one.id in seen:
            reason = "is named twice" if one.id in seen else "names no row of this checklist"
            faults.append(Fault(BODY, pointer("rows", place, "id"), reason, "invalid"))
        seen.add(one.id)
    if faults:
        raise FaultyInput(faults)
    for place, one in enumerate(body.rows):
        _change(unit, there[one.id], one, pointer("rows", place))
    return audit.organization_id, [one.id for one in body.rows]


def make_finding(
    unit: UnitOfWork, row_id: str, body: Mapping[str, Any], owner_id: str | None, *, finding_id: str | None = None
) -> FindingOfRow:
    """Make a finding from a row: of its audit, about its control or related to its policy, and owned by a member.

    ``body`` has the values of the finding by their wire names; without ``finding_id`` it gets a new id. A row that is
    not checked gets the result that the type of the finding says. Raises NotFound, InsufficientRole, Archived,
    Forbidden for a service account, and FaultyInput.
    """
    before = _found(unit, row_id)
    values: dict[str, Any] = {
        **body,
        "auditId": before.audit_id,
        "controlId": before.about_id if before.about_kind == CONTROLS else None,
    }
    if len(before.finding_ids) >= MAX_FINDINGS:
        raise FaultyInput([Fault(BODY, "", f"the row has {MAX_FINDINGS} findings already", "too_many")])
    finding = create(unit, Finding, before.organization_id, values, record_id=finding_id)
    end = End(Finding.path, finding.id)
    wanted = [Wanted(End(MEMBERS, owner_id), end, OWNS)] if owner_id is not None else []
    if before.about_kind != CONTROLS:
        wanted.append(Wanted(end, End(before.about_kind, before.about_id), RELATES))
    try:
        make_links(unit, before.organization_id, wanted)
    except FaultyInput as error:
        raise FaultyInput([Fault(BODY, pointer("ownerId"), one.reason, one.code) for one in error.faults]) from None
    found = {"finding_ids": [*before.finding_ids, finding.id]}
    if before.status == NOT_CHECKED:
        found |= _result(unit, before, _RESULTS.get(finding.type, OBSERVATION))
    return FindingOfRow(finding, _store(unit, "find", before, found))


def _change(unit: UnitOfWork, before: Any, body: RowChange, place: str) -> Any:
    sent = body.model_fields_set
    values: dict[str, Any] = {}
    if "note" in sent:
        values["note"] = body.note or None
    if "status" in sent and body.status != before.status:
        if body.status == NOT_CHECKED and before.finding_ids:
            reason = "must be a result, because there are findings of the row"
            raise FaultyInput([Fault(BODY, f"{place}{pointer('status')}", reason, "invalid")])
        values |= _result(unit, before, body.status)
    if all(getattr(before, name) == value for name, value in values.items()):
        return before
    return _store(unit, "check" if "status" in values else "update", before, values)


def _result(unit: UnitOfWork, before: Any, status: str) -> dict[str, Any]:
    """The values of a row with a result: who has checked it and when follows."""
    member_id = own_membership(unit, before.organization_id)
    if member_id is None:
        raise Forbidden(_NO_PERSON)
    if status == NOT_CHECKED:
        return {"status": status, "checked_at": None, "checked_by_id": None}
    return {"status": status, "checked_at": unit.moment, "checked_by_id": member_id}


def _store(unit: UnitOfWork, action: str, before: Any, values: Mapping[str, Any]) -> Any:
    known = before._asdict()
    after = known | values
    parameters = {f"new_{name}": after[name] for name in _CHANGED}
    row: Any = unit.row(_UPDATE, {"row": before.id, **parameters})
    unit.publish(Change(action, ChecklistRow, row.organization_id, row.id, row._asdict(), known))
    return row


def _found(unit: UnitOfWork, row_id: str) -> Any:
    """A row of a live audit, which nobody else changes meanwhile."""
    row = unit.row(_FIND, {"row": row_id})
    if row is None:
        raise NotFound
    _live(unit, row.audit_id)
    return unit.row(_LOCK, {"row": row_id})


def _live(unit: UnitOfWork, audit_id: str) -> Any:
    audit = found_for_change(unit, Audit, audit_id)
    if audit.archived_at is not None:
        raise Archived
    return audit


_FIND = select(*ROW.c).where(ROW.c.id == bindparam("row"))
_LOCK = _FIND.with_for_update()
_AMONG: Any = (
    select(*ROW.c)
    .where(
        ROW.c.organization_id == bindparam("organization"),
        ROW.c.audit_id == bindparam("audit"),
        ROW.c.id.in_(bindparam("ids", expanding=True)),
    )
    .with_for_update()
)
_UPDATE = (
    update(ROW)
    .where(ROW.c.id == bindparam("row"))
    .values({name: bindparam(f"new_{name}", type_=ROW.c[name].type) for name in _CHANGED})
    .returning(*ROW.c)
)
