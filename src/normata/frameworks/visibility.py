"""Which frameworks and matches an organization can see."""

from __future__ import annotations

from sqlalchemy import BindParameter, ColumnElement, and_, or_

from normata.frameworks.model import ControlMatch, Framework, FrameworkAdoption


def visible_to(organization_id: str | BindParameter[str]) -> ColumnElement[bool]:
    """Where a framework joined with the organization's adoption of it, if any, may be seen by the organization."""
    return or_(
        Framework.organization_id == organization_id,
        and_(Framework.organization_id.is_(None), or_(Framework.is_active, FrameworkAdoption.id.is_not(None))),
    )


def match_visible_to(organization_id: str | BindParameter[str]) -> ColumnElement[bool]:
    """Where a match may be seen by the organization, and counts for it: another's own must do neither."""
    return or_(ControlMatch.organization_id.is_(None), ControlMatch.organization_id == organization_id)
