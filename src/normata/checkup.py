"""Whether a database is whole: what ``normata check`` looks at."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection, func, or_, select

from normata.database import Database
from normata.frameworks.model import Control, Framework
from normata.frameworks.recompute import current_coverage, stored_coverage
from normata.identity.model import Organization


def faults(database: Database, connection: Connection) -> Iterator[str]:
    """Everything that is wrong, a sentence each: damaged pages, broken references, coverage that is out of date."""
    yield from database.damage(connection)
    for organization_id in connection.scalars(select(Organization.id).order_by(Organization.id)):
        if stored_coverage(connection, organization_id) != current_coverage(connection, organization_id):
            yield f"the stored coverage of organization {organization_id} is not what follows from its statements"
    counted = func.count(Control.id)
    places = func.count(Control.position.distinct())
    following = func.coalesce(func.max(Control.position) + 1, 0)
    miscounted = (
        select(Framework.id)
        .outerjoin(Control, Control.framework_id == Framework.id)
        .group_by(Framework.id, Framework.control_count)
        .having(or_(*(number != Framework.control_count for number in (counted, places, following))))
        .order_by(Framework.id)
    )
    for framework_id in connection.scalars(miscounted):
        yield f"the framework {framework_id} has other controls than it has counted, or gaps in their order"


def contents(connection: Connection) -> Iterator[str]:
    """The organizations and frameworks that there are, a line each."""
    for organization in connection.execute(select(Organization.id, Organization.name).order_by(Organization.id)):
        yield f"organization {organization.id}: {organization.name}"
    count = func.count(Control.id)
    statement = (
        select(Framework.id, Framework.identifier, Framework.name, count.label("controls"))
        .outerjoin(Control, Control.framework_id == Framework.id)
        .group_by(Framework.id, Framework.identifier, Framework.name)
        .order_by(Framework.id)
    )
    for row in connection.execute(statement):
        yield f"framework {row.id} ({row.identifier}): {row.name}, {row.controls} controls"
