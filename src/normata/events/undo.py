"""Undoing the assessments of one change: its events have the earlier ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import Field, StringConstraints
from pydantic.alias_generators import to_camel
from sqlalchemy import Select, and_, bindparam, select

from normata.core.changes.source import Row
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.transaction import batches
from normata.core.http.operation import ChangeOperation
from normata.core.http.request import Request
from normata.core.schema.fields import parse_timestamp
from normata.core.schema.paging import OrganizationId
from normata.core.schema.table import sql_table
from normata.core.schema.wire import Input
from normata.coverage.assessment_operations import ASSESSED, NONE_RETAINED, AssessedControls, assessed_controls
from normata.coverage.assessments import (
    ASSESSMENT_COLUMNS,
    ASSESSMENT_WRITES,
    AssessmentInput,
    assess,
    clear_assessments,
    read_assessments,
)
from normata.coverage.exclusion import retained_controls
from normata.coverage.recompute import lock_coverage
from normata.coverage.staleness import REVIEW_COLUMNS
from normata.errors import InUse, NotFound, NothingToUndo
from normata.events.content import values_of
from normata.events.model import AuditEvent
from normata.frameworks.model import Control, ControlCoverage, FrameworkAdoption
from normata.identity.organization_lookup import reached


class AssessmentsUndo(Input):
    """The change to undo."""

    organization_id: OrganizationId
    change_id: Annotated[
        str,
        StringConstraints(min_length=1, max_length=200),
        Field(description="The `changeId` of the response to `PATCH /controls/coverage/`."),
    ]


def events_of_change(
    unit: UnitOfWork, statement: Select[Any], organization_id: str, change_id: str
) -> tuple[str, list[Any]]:
    """The moment of a change, and its events. Raises NotFound if there was no such change.

    ``statement`` selects them by the parameters ``organization``, ``moment`` and ``request``.
    """
    at, _, request_id = change_id.partition("_")
    try:
        moment = parse_timestamp(at)
    except ValueError:
        raise NotFound from None
    if "\0" in request_id:
        raise NotFound  # PostgreSQL cannot compare anything with a null character
    events = unit.rows(statement, {"organization": organization_id, "moment": moment, "request": request_id})
    if not events:
        raise NotFound
    return moment, events


def undo_assessments(unit: UnitOfWork, organization_id: str, change_id: str) -> list[Any]:
    """Restore the earlier assessments of the controls of one change, and return them in order.

    Controls that were assessed again since, or are of a framework that was left, stay as they are. Raises NotFound if
    there was no such change, NothingToUndo if nothing of it is left, InUse and FaultyInput, and then changes nothing.
    """
    unit.require_reach(organization_id)
    lock_coverage(unit, organization_id)
    moment, events = events_of_change(unit, _EVENTS, organization_id, change_id)
    control_ids = {
        row.id: row.control_id
        for batch in batches([event.entity_id for event in events])
        for row in unit.rows(_UNCHANGED, {"organization": organization_id, "moment": moment, "ids": batch})
    }
    earlier: list[AssessmentInput] = []
    new: list[str] = []
    for event in events:
        control_id = control_ids.get(event.entity_id)
        if control_id is None or not event.body:  # the content of an event may have been erased
            continue
        before = values_of(event.body)["before"]
        if before is None:
            new.append(control_id)
        else:
            values, reviewed = _named(before, ASSESSMENT_COLUMNS), _named(before, REVIEW_COLUMNS)
            source = Row("controlCoverages", "body", "", {})
            earlier.append(AssessmentInput(source, values, control_id=control_id, reviewed=reviewed or None))
    if not earlier and not new:
        raise NothingToUndo
    if earlier:
        assess(unit, organization_id, earlier)
    clear_assessments(unit, organization_id, new)
    undone = {*new, *(one.control_id for one in earlier)}
    return read_assessments(unit, organization_id, [one for one in control_ids.values() if one in undone])


def _named(before: Mapping[str, Any], columns: Iterable[str]) -> dict[str, Any]:
    """The values of these columns that an event has; one from before an upgrade may not have all."""
    return {name: before[to_camel(name)] for name in columns if to_camel(name) in before}


def _undo(unit: UnitOfWork, request: Request) -> Any:
    body: AssessmentsUndo = request.body
    organization_id = reached(unit, body.organization_id)
    rows = undo_assessments(unit, organization_id, body.change_id)
    return rows, retained_controls(unit, organization_id, rows)


_EVENT, _STATEMENT, _CONTROL, _ADOPTION = map(sql_table, (AuditEvent, ControlCoverage, Control, FrameworkAdoption))
_MOMENT = bindparam("moment", type_=_EVENT.c.at.type)
_EVENTS = (
    select(_EVENT.c.entity_id, _EVENT.c.body)
    .where(
        _EVENT.c.organization_id == bindparam("organization"),
        _EVENT.c.at == _MOMENT,
        _EVENT.c.request_id == bindparam("request"),
        _EVENT.c.entity_type == ControlCoverage.__name__,
        _EVENT.c.action == "assess",
    )
    .order_by(_EVENT.c.id)
)
_UNCHANGED = (
    select(_STATEMENT.c.id, _STATEMENT.c.control_id)
    .join(_CONTROL, _CONTROL.c.id == _STATEMENT.c.control_id)
    .join(
        _ADOPTION,
        and_(
            _ADOPTION.c.framework_id == _CONTROL.c.framework_id,
            _ADOPTION.c.organization_id == _STATEMENT.c.organization_id,
        ),
    )
    .where(
        _STATEMENT.c.organization_id == bindparam("organization"),
        _STATEMENT.c.updated_at == _MOMENT,
        _STATEMENT.c.id.in_(bindparam("ids", expanding=True)),
    )
)

OPERATION = ChangeOperation(
    http_method="POST",
    path="/controls/coverage/undo/",
    operation_id="undoAssessments",
    is_long=True,
    tag="Coverage",
    summary="Undo the assessment of many controls",
    description="""\
Undoes what one `PATCH /controls/coverage/` changed, named by its `changeId`: each control gets its earlier assessment
again, with its `assessedAt` and a lapse, and one that had none is cleared. Controls that were assessed again since, or
whose framework was left, stay as they are; if none remains, the response is 409 `nothing_to_undo`. An assessment that a
task refers to cannot be cleared: the response is 409 `in_use`, and nothing changes.""",
    work=_undo,
    present=lambda result: assessed_controls(*result),
    writes=ASSESSMENT_WRITES,
    body=AssessmentsUndo,
    body_required=True,
    body_example={
        "organizationId": "org-harbourlight",
        "changeId": "2026-11-20T09:14:03.120Z_01a1f87c-691d-7204-a6da-d46c39e191fb",
    },
    has_rules=True,
    answer=AssessedControls,
    answer_description="The controls with the assessments that they have again.",
    example={"items": [ASSESSED], "mandatoryRetained": NONE_RETAINED, "changeId": None},
    errors=(NothingToUndo, InUse),
)
