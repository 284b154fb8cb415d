"""The revision of what an organization's lists of controls and frameworks show.

Whoever holds a page that was made at the organization's current revision may give it out as it is. So whatever changes
a row that these lists are made of gives its organization a new revision, in the same transaction. It is a new id each
time and no number: a database that has been restored from a backup, and has gone another way since, must not come to a
revision that it has had before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, select, update

from normata.database import batches
from normata.identity.model import Organization
from normata.vocabulary import new_id

_LISTED = ("framework", "control", "control_match", "framework_adoption", "control_coverage")

Rows = Mapping[str, Sequence[Mapping[str, Any]]]


def advance_after(connection: Connection, before: Rows, after: Rows) -> None:
    """Advance the organizations whose lists may differ now that rows (by table name) have changed.

    What is centralized, and so of no organization, may be in everybody's lists.
    """
    owners = {row["organization_id"] for rows in (before, after) for table in _LISTED for row in rows.get(table, ())}
    if None in owners:
        connection.execute(update(Organization).values(revision=new_id()))
        return
    for batch in batches(sorted(owners)):
        advance(connection, batch)


def advance(connection: Connection, organization_ids: Sequence[str]) -> None:
    """Give organizations a new revision."""
    connection.execute(update(Organization).where(Organization.id.in_(organization_ids)).values(revision=new_id()))


def current_revision(connection: Connection, organization_id: str) -> str | None:
    """The organization's revision; null where there is no such organization in sight."""
    return connection.scalar(select(Organization.revision).where(Organization.id == organization_id))
