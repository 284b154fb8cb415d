"""What counts when coverage is computed and reported: which controls, which matches, and what was assessed.

Whatever computes, explains or counts takes these conditions, so that all of it speaks of the same.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import BindParameter, ColumnElement, FromClause, and_, or_, select

from normata.core.schema.table import sql_table
from normata.frameworks.model import Control, ControlCoverage, ControlMatch, EffectiveCoverage, SetAsideMatch
from normata.frameworks.visibility import match_visible_to

_CONTROL, _STATEMENT, _EFFECTIVE = sql_table(Control), sql_table(ControlCoverage), sql_table(EffectiveCoverage)


def is_group(control: FromClause = _CONTROL) -> ColumnElement[bool]:
    """Where a control asks for nothing of its own: it is a category, or decomposed into its children."""
    return or_(control.c.type == "CATEGORY", control.c.is_decomposed)


def is_requirement(control: FromClause = _CONTROL) -> ColumnElement[bool]:
    """Where a control states a requirement of its own: these are counted."""
    return and_(control.c.type == "CONTROL", control.c.is_decomposed.is_(False))


def match_counts(organization_id: str | BindParameter[str], match: Any = ControlMatch) -> ColumnElement[bool]:
    """Where a match counts for the organization, be it for coverage or for what lists and reports show of matches.

    It can be seen, is not retired, and the organization has not set it aside. ``match`` is an alias of the table.
    """
    # One list that is made once for a statement, and not a look at each match: few are ever set aside.
    set_aside = select(SetAsideMatch.match_id).where(SetAsideMatch.organization_id == organization_id)
    return and_(match_visible_to(organization_id, match), match.retired_at.is_(None), match.id.not_in(set_aside))


def assessed_status(assessment: FromClause = _STATEMENT) -> ColumnElement[str | None]:
    """The status that an assessment counts with; null if the control is not assessed."""
    return assessment.c.coverage_status


def applies(effective: FromClause = _EFFECTIVE) -> ColumnElement[bool]:
    """Where a control of an adopted framework applies, by its assessment or by those of groups above."""
    return effective.c.applies
