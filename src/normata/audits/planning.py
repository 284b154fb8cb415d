"""The plan of an audit: bringing frameworks and baselines into scope, and making the checklist from the scope."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

from pydantic import Field, model_validator
from sqlalchemy import and_, bindparam, func, insert, or_, select, true

from normata.audits.model import NOT_CHECKED, ChecklistRow
from normata.audits.rows import CHECKED_KINDS, IN_SCOPE, ROW, count_results
from normata.core.changes.source import Fault, FaultyInput, pointer
from normata.core.changes.unit_of_work import Change, UnitOfWork, insert_of
from normata.core.changes.writing import BODY
from normata.core.db.transaction import batches
from normata.core.schema.fields import Identifier
from normata.core.schema.table import new_id, sql_table
from normata.core.schema.wire import Input
from normata.errors import Archived
from normata.frameworks.baseline_model import Baseline
from normata.frameworks.baselines import is_selected
from normata.frameworks.counting import applies, is_requirement
from normata.frameworks.model import Control, EffectiveCoverage, Framework, FrameworkAdoption
from normata.frameworks.visibility import baseline_visible_to, visible_to
from normata.links.commands import CREATION_WRITES, Wanted, make_links
from normata.links.model import End, Link
from normata.links.relations import CONTROLS
from normata.records.kinds import Audit, Policy
from normata.records.lookup import found_for_change

MAX_ROWS = 5_000  # of a checklist, and of what is brought into scope at once

SCOPE_WRITES = CREATION_WRITES
PLANNING_WRITES = (insert_of(ChecklistRow),)


class ScopeAddition(Input):
    """What is brought into scope: the requirements of a framework that apply, or those of them in a baseline."""

    framework_id: Identifier | None = Field(default=None, description="The id of a framework.")
    baseline_id: Identifier | None = Field(default=None, description="The id of a baseline.")

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        if (self.framework_id is None) == (self.baseline_id is None):
            raise ValueError("must have either frameworkId or baselineId")
        return self


class Planned(NamedTuple):
    """How many things were added, and how many there are then."""

    added: int
    total: int


def bring_into_scope(unit: UnitOfWork, audit_id: str, body: ScopeAddition) -> Planned:
    """Link the requirements of a framework or a baseline that apply to an audit. What is in scope already stays.

    Raises NotFound, InsufficientRole, Archived, and FaultyInput for a framework or a baseline that does not exist, or
    has too many requirements.
    """
    audit = _plannable(unit, audit_id)
    key = {"organization": audit.organization_id, "name": body.framework_id or body.baseline_id}
    name, find, requirements = (
        ("frameworkId", _FRAMEWORK, _OF_FRAMEWORK) if body.framework_id else ("baselineId", _BASELINE, _OF_BASELINE)
    )
    if unit.scalar(find, key) is None:
        raise _fault(name, f"names no {name.removesuffix('Id')} that exists")
    controls = unit.scalars(requirements.limit(MAX_ROWS + 1), key)
    if len(controls) > MAX_ROWS:
        raise _fault(name, f"has more than {MAX_ROWS:,} requirements that apply, which are too many at once")
    end = End(Audit.path, audit_id)
    _, outcomes = make_links(
        unit, audit.organization_id, [Wanted(End(CONTROLS, one), end, IN_SCOPE) for one in controls]
    )
    return Planned(sum(one.is_new for one in outcomes), len(outcomes))


def make_checklist(unit: UnitOfWork, audit_id: str) -> Planned:
    """Make a row for each control and each live policy that is in scope and has none. No row is removed.

    New rows come after those that there are: controls by framework in catalog order, then policies by title. Raises
    NotFound, InsufficientRole, Archived, and FaultyInput for too many rows.
    """
    audit = _plannable(unit, audit_id)
    key = {"organization": audit.organization_id, "audit": audit_id}
    last, there = unit.rows(_LAST, key)[0]
    missing = unit.rows(_MISSING.limit(MAX_ROWS + 1), key)
    if there + len(missing) > MAX_ROWS:
        raise FaultyInput([Fault(BODY, "", f"the checklist would have more than {MAX_ROWS:,} rows", "too_many")])
    rows = [
        {
            **{column.name: None for column in ROW.c},
            "id": new_id(),
            "organization_id": audit.organization_id,
            "audit_id": audit_id,
            "about_kind": one.kind,
            "about_id": one.id,
            "identifier": one.identifier,
            "label": one.label,
            "position": position,
            "status": NOT_CHECKED,
            "finding_ids": [],
        }
        for position, one in enumerate(missing, last + 1)
    ]
    for batch in batches(rows):
        unit.execute_many(_INSERT, batch)
    if rows:
        # One event, of the audit: that of each row says no more.
        unit.publish(Change("plan", ChecklistRow, audit.organization_id))
        known = audit._asdict()
        unit.publish(Change("plan", Audit, audit.organization_id, audit_id, known, known, counts={"rows": len(rows)}))
    return Planned(len(rows), sum(count_results(unit, audit.organization_id, audit_id).values()))


def _plannable(unit: UnitOfWork, audit_id: str) -> Any:
    """The row of a live audit, which nobody else plans meanwhile."""
    audit = found_for_change(unit, Audit, audit_id)
    if audit.archived_at is not None:
        raise Archived
    return audit


def _fault(name: str, reason: str) -> FaultyInput:
    return FaultyInput([Fault(BODY, pointer(name), reason, "invalid")])


# --- Statements

_CONTROL, _LINK, _POLICY = sql_table(Control), sql_table(Link), Policy.sql()
_BASELINES, _FRAMEWORKS = sql_table(Baseline), sql_table(Framework)
_ADOPTION, _EFFECTIVE = sql_table(FrameworkAdoption), sql_table(EffectiveCoverage)
_ORGANIZATION: Any = bindparam("organization", type_=ROW.c.organization_id.type)
_OF_AUDIT: Any = bindparam("audit", type_=ROW.c.audit_id.type)
_NAME: Any = bindparam("name", type_=_CONTROL.c.id.type)

_ADOPTED = and_(_ADOPTION.c.framework_id == _FRAMEWORKS.c.id, _ADOPTION.c.organization_id == _ORGANIZATION)
_VISIBLE = _FRAMEWORKS.outerjoin(_ADOPTION, _ADOPTED)
_FRAMEWORK = select(_FRAMEWORKS.c.id).select_from(_VISIBLE).where(_FRAMEWORKS.c.id == _NAME, visible_to(_ORGANIZATION))
_BASELINE = (
    select(_BASELINES.c.id)
    .select_from(_BASELINES.join(_VISIBLE, _FRAMEWORKS.c.id == _BASELINES.c.framework_id))
    .where(
        _BASELINES.c.id == _NAME,
        visible_to(_ORGANIZATION),
        baseline_visible_to(_ORGANIZATION, _BASELINES),
    )
)
# In a framework that is not adopted, all requirements apply.
_REQUIREMENTS = (
    select(_CONTROL.c.id)
    .select_from(
        _CONTROL.outerjoin(
            _EFFECTIVE,
            and_(_EFFECTIVE.c.control_id == _CONTROL.c.id, _EFFECTIVE.c.organization_id == _ORGANIZATION),
        )
    )
    .where(is_requirement(_CONTROL), func.coalesce(applies(_EFFECTIVE), true()))
    .order_by(_CONTROL.c.position, _CONTROL.c.id)
)
_OF_FRAMEWORK = _REQUIREMENTS.where(_CONTROL.c.framework_id == _NAME)
_OF_BASELINE = _REQUIREMENTS.where(
    _CONTROL.c.framework_id == select(_BASELINES.c.framework_id).where(_BASELINES.c.id == _NAME).scalar_subquery(),
    or_(is_selected(_NAME, _CONTROL), _CONTROL.c.is_mandatory),
)

_LAST = select(func.coalesce(func.max(ROW.c.position), 0), func.count()).where(
    ROW.c.organization_id == _ORGANIZATION, ROW.c.audit_id == _OF_AUDIT
)
_has_row = (
    select(ROW.c.id)
    .where(
        ROW.c.organization_id == _LINK.c.organization_id,
        ROW.c.audit_id == _LINK.c.to_id,
        ROW.c.about_kind == _LINK.c.from_kind,
        ROW.c.about_id == _LINK.c.from_id,
    )
    .correlate(_LINK)
    .exists()
)
_MISSING = (
    select(
        _LINK.c.from_kind.label("kind"),
        _LINK.c.from_id.label("id"),
        _CONTROL.c.identifier,
        func.coalesce(_CONTROL.c.name, _POLICY.c.title).label("label"),
    )
    .select_from(
        _LINK.outerjoin(_CONTROL, and_(_LINK.c.from_kind == CONTROLS, _CONTROL.c.id == _LINK.c.from_id))
        .outerjoin(_FRAMEWORKS, _FRAMEWORKS.c.id == _CONTROL.c.framework_id)
        .outerjoin(
            _POLICY,
            and_(
                _LINK.c.from_kind == Policy.path,
                _POLICY.c.organization_id == _LINK.c.organization_id,
                _POLICY.c.id == _LINK.c.from_id,
                _POLICY.c.archived_at.is_(None),
            ),
        )
    )
    .where(
        _LINK.c.organization_id == _ORGANIZATION,
        _LINK.c.to_id == _OF_AUDIT,
        _LINK.c.to_kind == Audit.path,
        _LINK.c.relation == IN_SCOPE,
        _LINK.c.removed_at.is_(None),
        _LINK.c.from_kind.in_(CHECKED_KINDS),
        or_(_CONTROL.c.id.is_not(None), _POLICY.c.id.is_not(None)),
        ~_has_row,
    )
    .order_by(
        _CONTROL.c.id.is_(None),
        _FRAMEWORKS.c.identifier_key,
        _FRAMEWORKS.c.id,
        _CONTROL.c.position,
        _POLICY.c.title_key,
        _LINK.c.from_id,
    )
)
_INSERT = insert(ROW).values({column.name: bindparam(column.name, type_=column.type) for column in ROW.c})
