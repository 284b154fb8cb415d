"""What treats a risk, and whether what is claimed of it rests on a gap.

A risk that is live and not ``CLOSED`` claims something if a residual value is below the inherent one, or if both
residual values have reached the target without an inherent rating to compare them with. The claim rests on a gap if one
of the controls that treat it is not fully covered, or if it has none and is to be mitigated.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field
from sqlalchemy import BindParameter, ColumnElement, and_, bindparam, exists, func, not_, or_, select

from normata.core.db.transaction import Transaction, batches
from normata.core.db.types import UtcTimestamp
from normata.core.schema.fields import CoverageStatus
from normata.core.schema.table import sql_table
from normata.core.schema.wire import Wire
from normata.coverage.staleness import STALENESS_COLUMNS, is_stale, staleness
from normata.frameworks.model import Control, ControlCoverage, EffectiveCoverage, Framework
from normata.links.model import Link
from normata.links.relations import CONTROLS
from normata.records.assurance import Risk

BELOW_INHERENT, TARGET_REACHED = "RESIDUAL_BELOW_INHERENT", "TARGET_REACHED"
NO_CONTROL = "NO_CONTROL"
_NOT_ADOPTED, _NOT_APPLICABLE, _STALE, _LAPSED = "NOT_ADOPTED", "NOT_APPLICABLE", "STALE", "LAPSED"
_GAPS = (_NOT_ADOPTED, _NOT_APPLICABLE, "NONE", "PARTIAL", _STALE, _LAPSED)
_CLOSED, _MITIGATE, _TREATS = "CLOSED", "MITIGATE", "TREATS"


class TreatingControl(Wire):
    """A control that treats a risk, and how far it is covered."""

    id: str
    link_id: str = Field(description="The id of the link, which `TREATS` the risk.")
    identifier: str | None = Field(description="The identifier; null if the control is gone from its catalog.")
    name: str
    framework_id: str | None = Field(description="The id of its framework; null if the control is gone.")
    framework: str | None = Field(description="The name of its framework.")
    effective_coverage_status: CoverageStatus | None = Field(
        description="How far it is covered; null if no adopted framework has it."
    )
    gaps: list[str] = Field(
        description="Why nothing can rest on it, empty if it is in place. `NOT_ADOPTED`: no adopted framework has it."
        " `NOT_APPLICABLE`: it does not apply. `NONE`, `PARTIAL`: so far it is covered. `STALE`: its assessment is"
        " stale. `LAPSED`: its assessment has lapsed.",
        json_schema_extra={"x-extensible-enum": list(_GAPS)},
    )


class Treatment(Wire):
    """What treats a risk, and what is claimed of it."""

    claims: list[str] = Field(
        description="What is claimed that the treatment has done. `RESIDUAL_BELOW_INHERENT`: a residual value is"
        " smaller than the inherent one. `TARGET_REACHED`: both residual values are as the target or smaller, and there"
        " are no inherent ones. Empty for a risk that is archived or `CLOSED`.",
        json_schema_extra={"x-extensible-enum": [BELOW_INHERENT, TARGET_REACHED]},
    )
    rests_on_gap: bool = Field(description="Whether something is claimed that rests on one of the `gaps`.")
    gaps: list[str] = Field(
        description="Those of all controls, each once; `NO_CONTROL` if no control treats a risk to be mitigated.",
        json_schema_extra={"x-extensible-enum": [NO_CONTROL, *_GAPS]},
    )
    controls: list[TreatingControl] = Field(description="The controls that treat it, those with gaps first.")


def claims_of(risk: Any) -> list[str]:
    """What is claimed of a risk, whose row has the columns of its kind."""
    residual = (risk.residual_probability, risk.residual_impact)
    inherent = (risk.inherent_probability, risk.inherent_impact)
    target = (risk.target_probability, risk.target_impact)
    if risk.archived_at is not None or risk.status == _CLOSED:
        return []
    pairs = zip(residual, inherent, strict=True)
    if any(now is not None and before is not None and now < before for now, before in pairs):
        return [BELOW_INHERENT]
    if None not in (*residual, *target) and inherent == (None, None):
        return [TARGET_REACHED] if all(now <= goal for now, goal in zip(residual, target, strict=True)) else []
    return []


def treatments(
    transaction: Transaction, organization_id: str, risks: Sequence[Any], as_of: str | None
) -> Mapping[str, dict[str, Any]]:
    """The members of :class:`Treatment` of each of these rows of risks, by id, in one statement for many.

    ``as_of`` is the moment that the transaction reads, null for now.
    """
    moment = transaction.time_of_reading()
    key = {"organization": organization_id, "moment": moment}
    controls: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    statement = _CONTROLS_NOW if as_of is None else _CONTROLS_THEN
    for batch in batches([risk.id for risk in risks]):
        for row in transaction.rows(statement, key | {"ids": batch}):
            controls[row.risk_id].append(_control(row, moment))
    return {risk.id: _treatment(risk, controls[risk.id]) for risk in risks}


def _treatment(risk: Any, controls: list[dict[str, Any]]) -> dict[str, Any]:
    claims = claims_of(risk)
    found = {gap for control in controls for gap in control["gaps"]}
    gaps = [gap for gap in _GAPS if gap in found]
    if not controls and risk.treatment_strategy == _MITIGATE:
        gaps = [NO_CONTROL]
    return {
        "claims": claims,
        "restsOnGap": bool(claims and gaps),
        "gaps": gaps,
        "controls": sorted(controls, key=lambda control: not control["gaps"]),
    }


def _control(row: Any, moment: str) -> dict[str, Any]:
    is_adopted = row.effective is not None
    gaps = []
    if not is_adopted:
        gaps.append(_NOT_ADOPTED)
    elif not row.applies:
        gaps.append(_NOT_APPLICABLE)
    else:
        gaps += [row.effective] if row.effective != "FULL" else []
        gaps += [_STALE if row.lapsed_at is None else _LAPSED] if staleness(row, moment) else []
    return {
        "id": row.control_id,
        "linkId": row.link_id,
        "identifier": row.identifier,
        "name": row.name or row.control_id,
        "frameworkId": row.framework_id,
        "framework": row.framework_name,
        "effectiveCoverageStatus": row.effective,
        "gaps": gaps,
    }


# --- Statements

_LINK, _RISK = sql_table(Link), Risk.sql()
_CONTROL, _FRAMEWORK = sql_table(Control), sql_table(Framework)
_EFFECTIVE, _ASSESSMENT = sql_table(EffectiveCoverage), sql_table(ControlCoverage)
_ORGANIZATION: BindParameter[str] = bindparam("organization", type_=_LINK.c.organization_id.type)
_MOMENT: BindParameter[str] = bindparam("moment", type_=UtcTimestamp())


def _treats(*, is_past: bool) -> ColumnElement[bool]:
    """Whether a link is one of a control that treats a risk: a live one, or one that was live at the moment."""
    was_live = and_(_LINK.c.created_at <= _MOMENT, or_(_LINK.c.removed_at.is_(None), _LINK.c.removed_at > _MOMENT))
    return and_(
        _LINK.c.organization_id == _ORGANIZATION,
        _LINK.c.relation == _TREATS,
        _LINK.c.from_kind == CONTROLS,
        _LINK.c.to_kind == Risk.path,
        was_live if is_past else _LINK.c.removed_at.is_(None),
    )


_of_effective = and_(_EFFECTIVE.c.organization_id == _ORGANIZATION, _EFFECTIVE.c.control_id == _LINK.c.from_id)
_of_assessment = and_(_ASSESSMENT.c.organization_id == _ORGANIZATION, _ASSESSMENT.c.control_id == _LINK.c.from_id)


def _controls(*, is_past: bool) -> Any:
    return (
        select(
            _LINK.c.to_id.label("risk_id"),
            _LINK.c.from_id.label("control_id"),
            _LINK.c.id.label("link_id"),
            _CONTROL.c.identifier,
            _CONTROL.c.name,
            _CONTROL.c.framework_id,
            _FRAMEWORK.c.name.label("framework_name"),
            _EFFECTIVE.c.status.label("effective"),
            _EFFECTIVE.c.applies,
            *STALENESS_COLUMNS,
        )
        .select_from(
            _LINK.outerjoin(_CONTROL, _CONTROL.c.id == _LINK.c.from_id)
            .outerjoin(_FRAMEWORK, _FRAMEWORK.c.id == _CONTROL.c.framework_id)
            .outerjoin(_EFFECTIVE, _of_effective)
            .outerjoin(_ASSESSMENT, _of_assessment)
        )
        .where(_treats(is_past=is_past), _LINK.c.to_id.in_(bindparam("ids", expanding=True)))
        .order_by(_FRAMEWORK.c.identifier_key.nulls_last(), _CONTROL.c.position.nulls_last(), _LINK.c.from_id)
    )


_CONTROLS_NOW, _CONTROLS_THEN = _controls(is_past=False), _controls(is_past=True)


def claims_something() -> ColumnElement[bool]:
    """Whether something is claimed of an open risk, by the same rule as :func:`claims_of`."""
    columns = _RISK.c
    below = or_(
        columns.residual_probability < columns.inherent_probability, columns.residual_impact < columns.inherent_impact
    )
    reached = and_(
        columns.inherent_probability.is_(None),
        columns.inherent_impact.is_(None),
        columns.residual_probability <= columns.target_probability,
        columns.residual_impact <= columns.target_impact,
    )
    return func.coalesce(or_(below, reached), False)


def rests_on_gap(as_of: str | None) -> ColumnElement[bool]:
    """Whether a claim of an open risk rests on a gap, by the same rule as :func:`treatments`.

    The statement has the parameters ``organization`` and ``moment``.
    """
    of_risk = and_(_treats(is_past=as_of is not None), _LINK.c.to_id == _RISK.c.id)
    is_in_place = and_(_EFFECTIVE.c.status == "FULL", _EFFECTIVE.c.applies, not_(is_stale(_MOMENT)))
    has_gap = exists(
        select(_LINK.c.id)
        .select_from(_LINK.outerjoin(_EFFECTIVE, _of_effective).outerjoin(_ASSESSMENT, _of_assessment))
        .where(of_risk, not_(func.coalesce(is_in_place, False)))
        .correlate(_RISK)
    )
    has_none = not_(exists(select(_LINK.c.id).where(of_risk).correlate(_RISK)))
    return and_(claims_something(), or_(has_gap, and_(_RISK.c.treatment_strategy == _MITIGATE, has_none)))
