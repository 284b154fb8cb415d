"""Assessments: what an organization records of controls, one or many at once, all or none."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import Field
from pydantic.alias_generators import to_camel
from sqlalchemy import BindParameter, Select, and_, bindparam, delete, insert, select, update

from normata.core.changes.references import referrer
from normata.core.changes.source import Fault, FaultyInput, Row
from normata.core.changes.unit_of_work import Change, UnitOfWork, delete_of, insert_of, update_of
from normata.core.db.security import Write
from normata.core.db.transaction import Transaction, batches
from normata.core.http.roles import AUDITOR
from normata.core.schema.fields import CoverageStatus, Identifier, Reasons, Text, Timestamp
from normata.core.schema.table import new_id, sql_table
from normata.core.schema.wire import Input, Wire
from normata.coverage.recompute import COVERAGE_WRITES, Touched, bring_up_to_date, lock_coverage
from normata.coverage.staleness import (
    ASSESSED_AT,
    EVIDENCE_ENDS_AT,
    LAPSED_AT,
    LAPSED_STATUS,
    REVIEW_COLUMNS,
    REWORDED_AT,
    STALE,
    Staleness,
    reviewed_columns,
    staleness,
)
from normata.errors import InUse, NotFound
from normata.frameworks.baseline_model import Baseline
from normata.frameworks.baselines import leaves_out, outside_to_wire
from normata.frameworks.model import Control, ControlCoverage, EffectiveCoverage, Framework, FrameworkAdoption
from normata.frameworks.rules import assessment_faults, taken_in_faults
from normata.identity.model import Membership

MAX_AT_ONCE = 500

# The columns of an assessment that a request can set.
ASSESSMENT_COLUMNS = (
    *("coverage_status", "coverage_gap", "is_applicable", "justification", "reasons"),
    *("owner_id", "note", "review_by"),
)

_WIRE_NAMES = {name: to_camel(name) for name in ASSESSMENT_COLUMNS}  # computed once, since lists are long

_NOT_ASSESSED: Mapping[str, Any] = {**dict.fromkeys(ASSESSMENT_COLUMNS), "reasons": []}
_NOT_REVIEWED: Mapping[str, Any] = dict.fromkeys(REVIEW_COLUMNS)

ASSESSMENT_WRITES: tuple[Write, ...] = (
    insert_of(ControlCoverage),
    update_of(ControlCoverage, *ASSESSMENT_COLUMNS, *REVIEW_COLUMNS, "updated_at"),
    delete_of(ControlCoverage),
    *COVERAGE_WRITES,
)


@dataclass(frozen=True, slots=True)
class AssessmentInput:
    """The assessment to store for a control: ``values`` by column.

    The control is named by its id, by its identifier, or by a ``name`` that may be either; if an identifier is not
    enough, with its framework (an id, slug or identifier). ``source`` is its place in the input; its fields have the
    names of the wire. With ``whole``, the request is about this control alone, and omitted values are reset.
    ``reviewed`` has review columns to restore, of an earlier assessment; null if the control is assessed now.
    """

    source: Row
    values: Mapping[str, Any]
    control_id: str | None = None
    identifier: str | None = None
    name: str | None = None
    framework: str | None = None
    whole: bool = False
    reviewed: Mapping[str, Any] | None = None


class AssessmentFields(Input):
    """The fields of an assessment that a request can set."""

    coverage_status: CoverageStatus | None = Field(
        None, description="How far the organization covers the control; null if that is not assessed."
    )
    coverage_gap: Text | None = None
    is_applicable: bool | None = Field(
        None,
        description="Whether the control applies to the organization; null if a category above it decides, or the"
        " baseline of the adoption. A control outside of the baseline is taken in by true, with a justification.",
    )
    justification: Text | None = None
    reasons: Reasons = Field(default_factory=list)
    owner_id: Identifier | None = Field(None, description="The member who is responsible for the control.")
    note: Text | None = Field(None, description="How the organization does what the control asks for.")
    review_by: Timestamp | None = Field(None, description="When the assessment must be reviewed.")

    def values_by_column(self) -> dict[str, Any]:
        """The fields of the request, by column."""
        return {name: getattr(self, name) for name in ASSESSMENT_COLUMNS if name in self.model_fields_set}


class Assessment(Wire):
    """An organization's assessment of a control; all fields are null if there is none."""

    coverage_status: CoverageStatus | None
    coverage_gap: str | None
    is_applicable: bool | None
    justification: str | None
    reasons: list[str]
    owner_id: str | None
    note: str | None
    review_by: Timestamp | None
    updated_at: str | None = Field(description="When it was last said; null if nothing is.")
    assessed_at: Timestamp | None = Field(description=ASSESSED_AT)
    stale: list[Staleness] = Field(description=STALE)
    lapsed_status: CoverageStatus | None = Field(description=LAPSED_STATUS)
    lapsed_at: Timestamp | None = Field(description=LAPSED_AT)


def assessment_to_wire(row: Any, moment: str) -> dict[str, Any]:
    """The assessment in a row of :func:`read_assessments`, in wire form, at a moment."""
    is_there = row.assessment_id is not None
    values = {wire: getattr(row, name) if is_there else _NOT_ASSESSED[name] for name, wire in _WIRE_NAMES.items()}
    return values | {
        "updatedAt": row.updated_at,
        "assessedAt": row.assessed_at,
        "stale": staleness(row, moment),
        "lapsedStatus": row.lapsed_status,
        "lapsedAt": row.lapsed_at,
    }


def assessed_to_wire(row: Any, excluding: Mapping[str, Any] | None, moment: str) -> dict[str, Any]:
    """The fields of :class:`AssessedDetails` from a row of :func:`read_assessments` and the group that excludes it."""
    return {
        "coverage": assessment_to_wire(row, moment),
        "isApplicable": row.applies,
        "excludedBy": excluding,
        "isDecomposed": row.is_decomposed,
        "conflict": row.conflict,
        "outsideOfBaseline": outside_to_wire(row),
    }


def assess(
    unit: UnitOfWork, organization_id: str, assessments: Sequence[AssessmentInput], found: Sequence[Fault] = ()
) -> list[Any]:
    """Make all assessments, bring coverage up to date, and return :func:`read_assessments` of their controls, in order.

    ``found`` has the faults of reading the input: if there are any, the rest is only checked. Raises FaultyInput with
    all faults, and NotFound if the one control of the input cannot be found; then nothing changes.
    """
    unit.require_reach(organization_id)
    lock_coverage(unit, organization_id)
    faults = [*found]
    found_controls = _controls_of(unit, organization_id, assessments, faults)
    _check_owners(unit, organization_id, assessments, faults)
    new: list[dict[str, Any]] = []
    changed: list[dict[str, Any]] = []
    earlier: dict[str, dict[str, Any]] = {}
    seen: dict[str, AssessmentInput] = {}
    for assessment, control in found_controls:
        if (first := seen.setdefault(control.id, assessment)) is not assessment:
            faults.append(
                assessment.source.fault(None, f"is about the same control as {first.source.place or 'another'}")
            )
            continue
        before, reviewed = _NOT_ASSESSED, _NOT_REVIEWED
        if control.assessment_id is not None:
            before = {name: getattr(control, name) for name in ASSESSMENT_COLUMNS}
            reviewed = {name: getattr(control, name) for name in REVIEW_COLUMNS}
        after = {**(_NOT_ASSESSED if assessment.whole else before), **assessment.values}
        reasons = (*assessment_faults(after), *taken_in_faults(before, after, control.outside_identifier))
        faults += [assessment.source.fault(to_camel(name), reason) for name, reason in reasons]
        if control.is_mandatory and after["is_applicable"] is False and before["is_applicable"] is not False:
            faults.append(assessment.source.fault("isApplicable", "cannot be false: the framework makes it mandatory"))
        if control.assessment_id is None and not (assessment.values or assessment.whole):
            continue  # not assessed before, and nothing to record
        if control.assessment_id is None:
            new.append(
                {"id": new_id(), "organization_id": organization_id, "control_id": control.id, **after}
                | {
                    "created_at": unit.moment,
                    "updated_at": unit.moment,
                    **reviewed_columns(before, reviewed, after, unit.moment),
                }
            )
        elif after != before:
            changed.append(
                {"id": control.assessment_id, "organization_id": organization_id, "control_id": control.id, **after}
                | {"created_at": control.created_at, "updated_at": unit.moment}
                | reviewed_columns(before, reviewed, after, unit.moment, assessment.reviewed)
            )
            earlier[control.assessment_id] = {**changed[-1], **before, **reviewed, "updated_at": control.updated_at}
    if faults:
        raise FaultyInput(faults)
    for batch in batches(new):
        unit.execute_many(_INSERT, batch)
    for batch in batches(changed):
        update_assessments(unit, batch)
    decided = {
        row["control_id"]
        for row in (*new, *changed)
        if row["is_applicable"] != earlier.get(row["id"], _NOT_ASSESSED)["is_applicable"]
    }
    _follow(unit, organization_id, [*new, *changed], decided)
    for row in (*new, *changed):
        unit.publish(Change("assess", ControlCoverage, organization_id, row["id"], row, earlier.get(row["id"])))
    return read_assessments(unit, organization_id, [control.id for _, control in found_controls])


def update_assessments(unit: UnitOfWork, rows: Sequence[Mapping[str, Any]]) -> None:
    """Store changed rows of assessments."""
    unit.execute_many(_UPDATE, [{f"new_{name}": row[name] for name in ("id", *_CHANGED)} for row in rows])


def clear_assessments(unit: UnitOfWork, organization_id: str, control_ids: Sequence[str]) -> list[Any]:
    """Clear the assessments of controls that have one, and return :func:`read_assessments` of them.

    Raises NotFound, and InUse if a record refers to an assessment.
    """
    unit.require_reach(organization_id)
    lock_coverage(unit, organization_id)
    cleared: list[Mapping[str, Any]] = []
    for before in read_assessments(unit, organization_id, control_ids):
        if before.assessment_id is None:
            continue
        user = referrer(unit, ControlCoverage, before.assessment_id)
        if user is not None:
            raise InUse(user)
        row = unit.row(_DELETE, {"organization": organization_id, "control": before.id})
        if row is not None:
            cleared.append(row._asdict())
    decided = {one["control_id"] for one in cleared if one["is_applicable"] is not None}
    _follow(unit, organization_id, cleared, decided)
    for one in cleared:
        unit.publish(Change("clear", ControlCoverage, organization_id, one["id"], before=one))
    return read_assessments(unit, organization_id, control_ids)


def read_assessments(transaction: Transaction, organization_id: str, control_ids: Sequence[str]) -> list[Any]:
    """The assessments and coverage of controls of adopted frameworks: rows in the order of the ids.

    Raises NotFound if one of them is not such a control.
    """
    rows = {
        row.id: row
        for batch in batches(control_ids)
        for row in transaction.rows(_BY_ID, {"organization": organization_id, "ids": batch})
    }
    try:
        return [rows[control_id] for control_id in control_ids]
    except KeyError:
        raise NotFound from None


def _follow(
    unit: UnitOfWork, organization_id: str, rows: Sequence[Mapping[str, Any]], decided: Collection[str]
) -> None:
    """Bring coverage up to date; ``decided`` are the controls whose decision whether they apply has changed."""
    if rows:
        touched = Touched(assessed={row["control_id"] for row in rows}, decided=decided)
        bring_up_to_date(unit, organization_id, touched)


def _check_owners(
    transaction: Transaction, organization_id: str, assessments: Sequence[AssessmentInput], faults: list[Fault]
) -> None:
    """Add a fault for each owner who is not a member, or an auditor."""
    owners = {owner for one in assessments if (owner := one.values.get("owner_id")) is not None}
    roles = {
        member.id: member.role
        for batch in batches(sorted(owners))
        for member in transaction.rows(_MEMBERS, {"organization": organization_id, "ids": batch})
    }
    for one in assessments:
        if (owner := one.values.get("owner_id")) is not None and roles.get(owner, AUDITOR) == AUDITOR:
            reason = "an auditor, who is responsible for nothing" if owner in roles else "no member of the organization"
            faults.append(one.source.fault("ownerId", f"names {reason}"))


# --- Selecting controls


def _controls_of(
    transaction: Transaction, organization_id: str, assessments: Sequence[AssessmentInput], faults: list[Fault]
) -> list[tuple[AssessmentInput, Any]]:
    """The control of each input, with its assessment; adds a fault for each input that names none, or several."""
    by_id = _by(transaction, _BY_ID, organization_id, (one.control_id or one.name for one in assessments))
    by_identifier = _by(
        transaction, _BY_IDENTIFIER, organization_id, (one.identifier or one.name for one in assessments)
    )
    found = []
    for assessment in assessments:
        field: str | None = None
        if assessment.control_id is not None:
            there, field = by_id.get(assessment.control_id, []), "controlId"
        elif assessment.identifier is not None:
            there, field = by_identifier.get(assessment.identifier, []), "identifier"
        else:
            there = by_id.get(assessment.name or "") or by_identifier.get(assessment.name or "", [])
        if assessment.framework is not None:
            there = [row for row in there if assessment.framework in _names_of_framework(row)]
        if not there and assessment.whole:
            raise NotFound
        if len(there) == 1:
            found.append((assessment, there[0]))
        else:
            faults.append(assessment.source.fault(field, _not_one(assessment, there)))
    return found


def _by(
    transaction: Transaction, statement: Select[Any], organization_id: str, names: Iterable[str | None]
) -> dict[str, list[Any]]:
    wanted = sorted({name for name in names if name is not None})
    found: dict[str, list[Any]] = {}
    for batch in batches(wanted):
        for row in transaction.rows(statement, {"organization": organization_id, "ids": batch}):
            found.setdefault(row.id if statement is _BY_ID else row.identifier, []).append(row)
    return found


def _names_of_framework(row: Any) -> tuple[str, str, str]:
    return row.framework_id, row.framework_slug, row.framework_identifier


def _not_one(assessment: AssessmentInput, there: Sequence[Any]) -> str:
    if not there:
        where = f"the adopted framework {assessment.framework!r}" if assessment.framework else "an adopted framework"
        return f"names no control of {where}"
    frameworks = {row.framework_identifier for row in there}
    if len(frameworks) > 1:
        return f"is ambiguous; name the framework: {', '.join(sorted(frameworks))}"
    return f"is ambiguous; name the control by its id: {', '.join(sorted(row.id for row in there))}"


_CONTROL, _FRAMEWORK, _ADOPTION = sql_table(Control), sql_table(Framework), sql_table(FrameworkAdoption)
_STATEMENT, _EFFECTIVE, _MEMBER = sql_table(ControlCoverage), sql_table(EffectiveCoverage), sql_table(Membership)
_BASELINE = sql_table(Baseline)
_ORGANIZATION: BindParameter[str] = bindparam("organization")

_ROWS = (
    select(
        _CONTROL.c.id,
        _CONTROL.c.identifier,
        _CONTROL.c.name,
        _FRAMEWORK.c.id.label("framework_id"),
        _FRAMEWORK.c.name.label("framework_name"),
        _FRAMEWORK.c.identifier.label("framework_identifier"),
        _FRAMEWORK.c.identifier_color.label("framework_color"),
        _FRAMEWORK.c.slug.label("framework_slug"),
        _STATEMENT.c.id.label("assessment_id"),
        *(_STATEMENT.c[name] for name in (*ASSESSMENT_COLUMNS, *REVIEW_COLUMNS, "created_at", "updated_at")),
        EVIDENCE_ENDS_AT.label("evidence_ends_at"),
        REWORDED_AT.label("reworded_at"),
        _EFFECTIVE.c.status.label("effective"),
        _EFFECTIVE.c.is_indirect,
        _EFFECTIVE.c.applies,
        _EFFECTIVE.c.conflict,
        _CONTROL.c.is_decomposed,
        _CONTROL.c.is_mandatory,
        _BASELINE.c.id.label("outside_id"),
        _BASELINE.c.identifier.label("outside_identifier"),
        _BASELINE.c.name.label("outside_name"),
    )
    .join(_FRAMEWORK, _FRAMEWORK.c.id == _CONTROL.c.framework_id)
    .join(_ADOPTION, and_(_ADOPTION.c.framework_id == _FRAMEWORK.c.id, _ADOPTION.c.organization_id == _ORGANIZATION))
    .outerjoin(
        _STATEMENT, and_(_STATEMENT.c.control_id == _CONTROL.c.id, _STATEMENT.c.organization_id == _ORGANIZATION)
    )
    .outerjoin(
        _EFFECTIVE, and_(_EFFECTIVE.c.control_id == _CONTROL.c.id, _EFFECTIVE.c.organization_id == _ORGANIZATION)
    )
    .outerjoin(_BASELINE, leaves_out(_BASELINE, _CONTROL, _ADOPTION))
)
_BY_ID = _ROWS.where(_CONTROL.c.id.in_(bindparam("ids", expanding=True)))
_BY_IDENTIFIER = _ROWS.where(_CONTROL.c.identifier.in_(bindparam("ids", expanding=True)))

_MEMBERS = select(_MEMBER.c.id, _MEMBER.c.role).where(
    _MEMBER.c.organization_id == _ORGANIZATION,
    _MEMBER.c.id.in_(bindparam("ids", expanding=True)),
    _MEMBER.c.removed_at.is_(None),
)
_CHANGED = (*ASSESSMENT_COLUMNS, *REVIEW_COLUMNS, "updated_at")
_INSERT = insert(_STATEMENT).values({column.name: bindparam(column.name, type_=column.type) for column in _STATEMENT.c})
_UPDATE = (
    update(_STATEMENT)
    .where(_STATEMENT.c.id == bindparam("new_id"))
    .values({name: bindparam(f"new_{name}", type_=_STATEMENT.c[name].type) for name in _CHANGED})
)
_DELETE = (
    delete(_STATEMENT)
    .where(_STATEMENT.c.organization_id == _ORGANIZATION, _STATEMENT.c.control_id == bindparam("control"))
    .returning(*_STATEMENT.c)
)
