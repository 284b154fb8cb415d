"""Which frameworks and matches an organization can see."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BindParameter, ColumnElement, and_, or_

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
