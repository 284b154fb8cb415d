"""What frameworks, controls and statements are called."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, and_, null, select, true

from normata.core.schema.naming import Naming
from normata.core.schema.table import sql_table
from normata.frameworks.model import Control, ControlCoverage, Framework, FrameworkAdoption
from normata.frameworks.visibility import visible_to

_FRAMEWORK, _CONTROL = sql_table(Framework).c, sql_table(Control).c
_STATEMENT, _ADOPTION = sql_table(ControlCoverage).c, sql_table(FrameworkAdoption).c
_IN_ORDER = (_FRAMEWORK.identifier_key.asc(), _CONTROL.framework_id.asc(), _CONTROL.position.asc())


def framework_names(organization_id: str) -> Naming:
    """How the frameworks that an organization can see are named; those that it has adopted are live."""
    rows = (
        select(_FRAMEWORK.id, _FRAMEWORK.name.label("label"), _FRAMEWORK.identifier, null().label("control_id"))
        .outerjoin(FrameworkAdoption, _adopted(organization_id, _FRAMEWORK.id))
        .where(visible_to(organization_id))
    )
    order = [_FRAMEWORK.name_key.asc(), _FRAMEWORK.id.asc()]
    return Naming(rows, _FRAMEWORK.id, _ADOPTION.id.is_not(None), _FRAMEWORK.search_text, order)


def control_names(organization_id: str) -> Naming:
    """How the controls of the frameworks that an organization can see are named; those of adopted ones are live."""
    rows = (
        select(_CONTROL.id, _CONTROL.name.label("label"), _CONTROL.identifier, null().label("control_id"))
        .join(Framework, _FRAMEWORK.id == _CONTROL.framework_id)
        .outerjoin(FrameworkAdoption, _adopted(organization_id, _FRAMEWORK.id))
        .where(visible_to(organization_id))
    )
    order = [*_IN_ORDER, _CONTROL.id.asc()]
    return Naming(rows, _CONTROL.id, _ADOPTION.id.is_not(None), _CONTROL.search_text, order)


def assessment_names(organization_id: str) -> Naming:
    """How an organization's statements are named: as the controls that they are about."""
    rows = (
        select(_STATEMENT.id, _CONTROL.name.label("label"), _CONTROL.identifier, _STATEMENT.control_id)
        .join(Control, _CONTROL.id == _STATEMENT.control_id)
        .join(Framework, _FRAMEWORK.id == _CONTROL.framework_id)
        .where(_STATEMENT.organization_id == organization_id)
    )
    order = [*_IN_ORDER, _STATEMENT.id.asc()]
    return Naming(rows, _STATEMENT.id, true(), _CONTROL.search_text, order)


def _adopted(organization_id: str, framework_id: ColumnElement[Any]) -> ColumnElement[bool]:
    return and_(_ADOPTION.framework_id == framework_id, _ADOPTION.organization_id == organization_id)
