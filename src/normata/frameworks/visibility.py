"""Which frameworks, matches and baselines an organization can see."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BindParameter, ColumnElement, and_, or_

from normata.frameworks.baseline_model import Baseline
from normata.frameworks.model import ControlMatch, Framework, FrameworkAdoption


def visible_to(organization_id: str | BindParameter[str]) -> ColumnElement[bool]:
    """The condition that the organization can see a framework, which is joined with its adoption, if any."""
    return or_(
        Framework.organization_id == organization_id,
        and_(Framework.organization_id.is_(None), or_(Framework.is_active, FrameworkAdoption.id.is_not(None))),
    )


def match_visible_to(organization_id: str | BindParameter[str], match: Any = ControlMatch) -> ColumnElement[bool]:
    """The condition that the organization can see a match: not another organization's own.

    ``match`` is an alias of the table.
    """
    return or_(match.organization_id.is_(None), match.organization_id == organization_id)


def baseline_visible_to(organization_id: str | BindParameter[str], baseline: Any = Baseline) -> ColumnElement[bool]:
    """The condition that the organization can see a baseline of a framework that it can see.

    ``baseline`` is an alias of the table, or the table itself.
    """
    columns = getattr(baseline, "c", baseline)
    return or_(columns.organization_id.is_(None), columns.organization_id == organization_id)
