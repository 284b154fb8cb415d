"""Whether a database is whole: what ``normata check`` looks at."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import func, or_, select

from normata.core.db.database import Database
from normata.core.db.security import Security
from normata.core.db.transaction import Transaction
from normata.core.schema.table import sql_table
from normata.coverage.recompute import current_coverage, stored_coverage
from normata.events.checking import event_faults
from normata.frameworks.model import Control, Framework
from normata.identity.model import Organization
from normata.identity.openid import groups
from normata.identity.openid.configuration import Configuration
from normata.tables import Table


def faults(database: Database, transaction: Transaction, security: Security) -> Iterator[str]:
    """Everything that is wrong, a sentence each.

    That is what the database itself finds (damage, broken references, wrong policies and grants), and stored coverage
    and counts that do not follow from the rest, and events that are not as they were sealed.
    """
    yield from database.faults(transaction, Table.metadata, security)
    for organization_id in transaction.scalars(_ORGANIZATION_IDS):
        if stored_coverage(transaction, organization_id) != current_coverage(transaction, organization_id):
            yield f"the stored coverage of organization {organization_id} does not follow from its assessments"
    for framework_id in transaction.scalars(_MISCOUNTED):
        yield f"the framework {framework_id} has other controls than it has counted, or gaps in their order"
    yield from event_faults(transaction)


def unknown_organizations(transaction: Transaction, provider: Configuration | None) -> list[str]:
    """The organizations that single sign-on gives roles in, and that there are not."""
    return [] if provider is None else groups.unknown_organizations(transaction, provider.grants)


def contents(transaction: Transaction) -> Iterator[str]:
    """The organizations and frameworks that there are, a line each."""
    for organization in transaction.rows(_ORGANIZATIONS):
        yield f"organization {organization.id}: {organization.name}"
    for row in transaction.rows(_FRAMEWORKS):
        yield f"framework {row.id} ({row.identifier}): {row.name}, {row.controls} controls"


_ORGANIZATION, _FRAMEWORK, _CONTROL = sql_table(Organization), sql_table(Framework), sql_table(Control)
_ORGANIZATION_IDS = select(_ORGANIZATION.c.id).order_by(_ORGANIZATION.c.id)
_ORGANIZATIONS = select(_ORGANIZATION.c.id, _ORGANIZATION.c.name).order_by(_ORGANIZATION.c.id)

_counted = func.count(_CONTROL.c.id)
_places = func.count(_CONTROL.c.position.distinct())
_following = func.coalesce(func.max(_CONTROL.c.position) + 1, 0)
_MISCOUNTED = (
    select(_FRAMEWORK.c.id)
    .outerjoin(_CONTROL, _CONTROL.c.framework_id == _FRAMEWORK.c.id)
    .group_by(_FRAMEWORK.c.id, _FRAMEWORK.c.control_count)
    .having(or_(*(number != _FRAMEWORK.c.control_count for number in (_counted, _places, _following))))
    .order_by(_FRAMEWORK.c.id)
)
_FRAMEWORKS = (
    select(_FRAMEWORK.c.id, _FRAMEWORK.c.identifier, _FRAMEWORK.c.name, _counted.label("controls"))
    .outerjoin(_CONTROL, _CONTROL.c.framework_id == _FRAMEWORK.c.id)
    .group_by(_FRAMEWORK.c.id, _FRAMEWORK.c.identifier, _FRAMEWORK.c.name)
    .order_by(_FRAMEWORK.c.id)
)
