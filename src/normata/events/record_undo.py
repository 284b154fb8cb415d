"""Undoing the changes of records that one request has made: their events have the earlier values."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, StringConstraints
from sqlalchemy import bindparam, select

from normata.core.changes.difference import canonical
from normata.core.changes.source import pointer
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.security import together
from normata.core.http.operation import ChangeOperation
from normata.core.http.request import Request
from normata.core.schema.paging import OrganizationId
from normata.core.schema.table import sql_table
from normata.core.schema.wire import Input, as_wire
from normata.errors import NothingToUndo, SlugTaken, WrongState
from normata.events.content import values_of
from normata.events.model import AuditEvent
from normata.events.undo import events_of_change
from normata.identity.organization_lookup import reached
from normata.records.archive.queries import KINDS
from normata.records.fields import fields_of
from normata.records.many.commands import (
    ChangedRecord,
    RecordChange,
    apply_changes,
    found_records,
    many_change_writes,
)
from normata.records.many.operations import CHANGED_EXAMPLE, ChangedRecords, changed_records
from normata.recurrences.commands import TAKING_BACK_WRITES, take_back


class RecordsUndo(Input):
    """The change to undo."""

    organization_id: OrganizationId
    change_id: Annotated[
        str,
        StringConstraints(min_length=1, max_length=200),
        Field(description="The `changeId` of the response to `POST /changes/`."),
    ]


def undo_changes(unit: UnitOfWork, organization_id: str, change_id: str) -> list[ChangedRecord]:
    """Give the records of one change their earlier values again, and return what has changed.

    A field that was changed again since stays as it is, and so does a record that is archived. Raises NotFound if there
    was no such change, NothingToUndo if nothing of it is left, WrongState, SlugTaken and FaultyInput, and then
    changes nothing.
    """
    unit.require_reach(organization_id)
    moment, events = events_of_change(unit, _EVENTS, organization_id, change_id)
    there = found_records(unit, organization_id, [(_KINDS[row.entity_type], row.entity_id) for row in events])
    changes: list[RecordChange] = []
    for event in events:
        kind = _KINDS[event.entity_type]
        row = there.get((kind, event.entity_id))
        if row is None or row.archived_at is not None or not event.body:  # a content may have been erased
            continue
        content, now = values_of(event.body), as_wire(kind, row)
        written = [field.name for field in fields_of(kind) if field.is_writable and field.name in content["after"]]
        values = {
            name: content["before"][name]
            for name in written
            if canonical(now[name]) == canonical(content["after"][name]) and name in content["before"]
        }
        if values:
            changes.append(RecordChange(kind, row.id, values, pointer("records", len(changes))))
    if not changes:
        raise NothingToUndo
    changed = apply_changes(unit, organization_id, changes, there)
    take_back(unit, organization_id, moment, [(one.kind, one.id) for one in changed])
    return changed


def _undo(unit: UnitOfWork, request: Request) -> dict[str, Any]:
    body: RecordsUndo = request.body
    return changed_records(unit, undo_changes(unit, reached(unit, body.organization_id), body.change_id))


_KINDS = {kind.__name__: kind for kind in KINDS.values()}
_EVENT = sql_table(AuditEvent)
_EVENTS = (
    select(_EVENT.c.entity_type, _EVENT.c.entity_id, _EVENT.c.body)
    .where(
        _EVENT.c.organization_id == bindparam("organization"),
        _EVENT.c.at == bindparam("moment", type_=_EVENT.c.at.type),
        _EVENT.c.request_id == bindparam("request"),
        _EVENT.c.entity_type.in_(sorted(_KINDS)),
        _EVENT.c.action == "update",
    )
    .order_by(_EVENT.c.id)
)

OPERATION = ChangeOperation(
    http_method="POST",
    path="/changes/undo/",
    operation_id="undoRecordChanges",
    is_long=True,
    tag="Records",
    summary="Undo the change of several records",
    description="""\
Undoes what one `POST /changes/` changed, named by its `changeId`: each field gets its earlier value again. A field that
was changed again since stays as it is, and so does a record that is archived; if nothing remains, the response is 409
`nothing_to_undo`. An earlier value that is no longer possible, such as a removed member, is a fault; one that a state
does not allow is 409 `wrong_state`; and nothing changes. The answer has a `changeId` of its own, by which the undo
is undone.""",
    work=_undo,
    present=lambda answer: answer,
    writes=together(many_change_writes(), TAKING_BACK_WRITES),
    body=RecordsUndo,
    body_required=True,
    body_example={
        "organizationId": "org-harbourlight",
        "changeId": "2026-11-20T09:14:03.120Z_01a1f87c-691d-7204-a6da-d46c39e191fb",
    },
    has_rules=True,
    answer=ChangedRecords,
    answer_description="What was changed of each record.",
    example=CHANGED_EXAMPLE,
    errors=(NothingToUndo, SlugTaken, WrongState),
)
