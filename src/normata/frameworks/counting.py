"""The conditions for counting controls, matches and assessments when coverage is computed and reported.

All computations, explanations and reports use these conditions, so that they agree.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import BindParameter, ColumnElement, FromClause, and_, or_, select

from normata.core.schema.table import sql_table
from normata.frameworks.model import Control, ControlCoverage, ControlMatch, EffectiveCoverage, SetAsideMatch
from normata.frameworks.visibility import match_visible_to

_CONTROL, _STATEMENT, _EFFECTIVE = sql_table(Control), sql_table(ControlCoverage), sql_table(EffectiveCoverage)


def is_group(control: FromClause = _CONTROL) -> ColumnElement[bool]:
    """The condition that a control is a group: a category, or decomposed into its children."""
    return or_(control.c.type == "CATEGORY", control.c.is_decomposed)


def is_requirement(control: FromClause = _CONTROL) -> ColumnElement[bool]:
    """The condition that a control is a requirement: these are counted."""
    return and_(control.c.type == "CONTROL", control.c.is_decomposed.is_(False))


def match_counts(organization_id: str | BindParameter[str], match: Any = ControlMatch) -> ColumnElement[bool]:
    """The condition that a match counts for the organization, for coverage and in lists and reports.

    The organization can see it and has not set it aside, and it is not retired. ``match`` is an alias of the table.
    """
    # Evaluated once in a statement, not for each match. Few matches are set aside.
    set_aside = select(SetAsideMatch.match_id).where(SetAsideMatch.organization_id == organization_id)
    return and_(match_visible_to(organization_id, match), match.retired_at.is_(None), match.id.not_in(set_aside))


def assessed_status(assessment: FromClause = _STATEMENT) -> ColumnElement[str | None]:
    """The status of an assessment that counts; null if the control is not assessed."""
    return assessment.c.coverage_status


def applies(effective: FromClause = _EFFECTIVE) -> ColumnElement[bool]:
    """The condition that a control of an adopted framework applies, by its assessment or those of groups above."""
    return effective.c.applies
