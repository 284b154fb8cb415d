"""Creating and changing an organization's own frameworks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import and_, bindparam, select

from normata.core.changes.source import Row
from normata.core.changes.unit_of_work import Change, UnitOfWork
from normata.core.changes.writing import BODY, write
from normata.core.schema.table import new_id, sql_table
from normata.coverage.recompute import lock_coverage
from normata.errors import Forbidden, NotFound
from normata.frameworks.framework_list import one_framework
from normata.frameworks.model import Framework, FrameworkAdoption
from normata.frameworks.visibility import visible_to
from normata.identity.organization_lookup import reached
from normata.own_frameworks.writing import valid_rows

# The fields of a framework that people can write. The others are set here, or mean nothing for such a framework.
WRITABLE = (
    "identifier",
    "slug",
    "version",
    "identifier_color",
    "published_at",
    "deprecated_at",
    "name",
    "description",
)

CENTRALIZED = "A centralized framework stays as imports make it; an organization changes only frameworks of its own."


def create(unit: UnitOfWork, organization: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Create a framework of an organization's own, and return it in wire form.

    ``organization`` is an id or slug, ``values`` has values of :data:`WRITABLE` by their wire names, the name at least.
    Raises NotFound, InsufficientRole and FaultyInput.
    """
    organization_id = reached(unit, organization)
    lock_coverage(unit, organization_id)
    framework_id = new_id()
    fixed = {
        "id": framework_id,
        "organizationId": organization_id,
        "isCentralized": False,
        "createdBy": unit.actor.user_name or None,
    }
    row = Row("frameworks", BODY, "", {**values, **fixed})
    _store(unit, "create", organization_id, row)
    return one_framework(unit, organization_id, framework_id)


def change(unit: UnitOfWork, organization: str, framework_id: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Change the fields in ``values`` of an own framework of the organization (RFC 7396), and return it in wire form.

    Raises NotFound, Forbidden if the framework is centralized, InsufficientRole and FaultyInput.
    """
    organization_id = reached(unit, organization)
    lock_coverage(unit, organization_id)  # lock what is read here and written back
    require_own(unit, organization_id, framework_id)
    _store(unit, "update", organization_id, Row("frameworks", BODY, "", {**values, "id": framework_id}))
    return one_framework(unit, organization_id, framework_id)


def require_own(unit: UnitOfWork, organization_id: str, framework_id: str) -> None:
    """Raise NotFound where the organization cannot see a framework, and Forbidden where it is centralized."""
    row = unit.row(_OWNER, {"organization": organization_id, "framework": framework_id})
    if row is None:
        raise NotFound
    if row.organization_id is None:
        raise Forbidden(CENTRALIZED)


def _store(unit: UnitOfWork, action: str, organization_id: str, row: Row) -> None:
    for written in write(unit, Framework, valid_rows(unit, Framework, [row])):
        unit.publish(Change(action, Framework, organization_id, written.id, written.after, written.before))


_FRAMEWORK, _ADOPTION = sql_table(Framework), sql_table(FrameworkAdoption)

_OWNER = (
    select(_FRAMEWORK.c.organization_id)
    .outerjoin(
        _ADOPTION,
        and_(_ADOPTION.c.framework_id == _FRAMEWORK.c.id, _ADOPTION.c.organization_id == bindparam("organization")),
    )
    .where(_FRAMEWORK.c.id == bindparam("framework"), visible_to(bindparam("organization")))
)
