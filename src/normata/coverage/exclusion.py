"""The controls that an excluded group excludes, and the mandatory requirements below it that apply nevertheless."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from pydantic import Field
from sqlalchemy import BindParameter, bindparam, func, select

from normata.core.db.transaction import Transaction, batches
from normata.core.schema.table import sql_table
from normata.core.schema.wire import Wire
from normata.coverage.hierarchy import below_groups, groups_above
from normata.frameworks.control_wire import ControlReference, reference_to_wire
from normata.frameworks.counting import applies, is_group
from normata.frameworks.model import Control, ControlCoverage, EffectiveCoverage

MAX_RETAINED = 500

EXCLUDED_BY = (
    "The group above the control that does not apply and excludes the control, with its justification and reasons;"
    " null if there is none, or if the control's own assessment decides."
)


class ExcludingGroup(ControlReference):
    """A group that does not apply, and excludes the controls below it."""

    justification: str | None
    reasons: list[str]


class RetainedControls(Wire):
    """The mandatory requirements below excluded groups: these apply nevertheless."""

    count: int = Field(description="How many there are.")
    items: list[ControlReference] = Field(description=f"The first {MAX_RETAINED} of them, in catalog order.")


def excluding_groups(transaction: Transaction, organization_id: str, controls: Collection[str]) -> dict[str, Any]:
    """The nearest group with a decision above each control without one, if it is excluded.

    They are rows with id, identifier, name, decision, justification and reasons, by the control below.
    """
    above = groups_above(transaction, controls)
    decided = {
        row.id: row
        for batch in batches(sorted({group for groups in above.values() for group in groups}))
        for row in transaction.rows(_DECIDED, {"organization": organization_id, "ids": batch})
    }
    nearest = {
        control: next((decided[group] for group in groups if group in decided), None)
        for control, groups in above.items()
    }
    return {control: row for control, row in nearest.items() if row is not None and not row.decision}


def excluded_by(transaction: Transaction, organization_id: str, rows: Iterable[Any]) -> dict[str, dict[str, Any]]:
    """The members of :class:`ExcludingGroup` for the controls among these that a group above excludes.

    The rows have id, applies and is_applicable. It takes two statements, or none if nothing is inherited.
    """
    inherited = [row.id for row in rows if row.applies is False and row.is_applicable is None]
    found = excluding_groups(transaction, organization_id, inherited) if inherited else {}
    return {control: _as_wire(row) for control, row in found.items()}


def retained_controls(transaction: Transaction, organization_id: str, rows: Iterable[Any]) -> dict[str, Any]:
    """The members of :class:`RetainedControls` for the excluded groups among these controls.

    The rows have id and is_applicable. It takes one statement, or none if nothing is excluded.
    """
    excluded = sorted(row.id for row in rows if row.is_applicable is False)
    found = transaction.rows(_RETAINED, {"organization": organization_id, "ids": excluded}) if excluded else []
    return {
        "count": found[0].count_of_all if found else 0,
        "items": [reference_to_wire(row) for row in found],
    }


def _as_wire(row: Any) -> dict[str, Any]:
    return reference_to_wire(row) | {"justification": row.justification, "reasons": row.reasons or []}


_CONTROL, _STATEMENT, _EFFECTIVE = sql_table(Control), sql_table(ControlCoverage), sql_table(EffectiveCoverage)
_ORGANIZATION: BindParameter[str] = bindparam("organization")
_IDS: BindParameter[str] = bindparam("ids", expanding=True)

_DECIDED = (
    select(
        _CONTROL.c.id,
        _CONTROL.c.identifier,
        _CONTROL.c.name,
        _STATEMENT.c.is_applicable.label("decision"),
        _STATEMENT.c.justification,
        _STATEMENT.c.reasons,
    )
    .join(_STATEMENT, (_STATEMENT.c.control_id == _CONTROL.c.id) & (_STATEMENT.c.organization_id == _ORGANIZATION))
    .where(_CONTROL.c.id.in_(_IDS), _STATEMENT.c.is_applicable.is_not(None))
)

_below, _group = below_groups(), _CONTROL.alias("excluded")
_requirements_below = (
    select(_below.c.id).join(_group, _group.c.id == _below.c.group_id).where(is_group(_group), _below.c.is_requirement)
)
_RETAINED = (
    select(_CONTROL.c.id, _CONTROL.c.identifier, _CONTROL.c.name, func.count().over().label("count_of_all"))
    .join(_EFFECTIVE, (_EFFECTIVE.c.control_id == _CONTROL.c.id) & (_EFFECTIVE.c.organization_id == _ORGANIZATION))
    .where(_CONTROL.c.id.in_(_requirements_below), _CONTROL.c.is_mandatory, applies(_EFFECTIVE))
    .order_by(_CONTROL.c.framework_id, _CONTROL.c.position, _CONTROL.c.id)
    .limit(MAX_RETAINED)
)
