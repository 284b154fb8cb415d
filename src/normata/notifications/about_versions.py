"""Notifications to whoever is to approve a version of a statement of applicability."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

from normata.core.changes.unit_of_work import Actor, Change
from normata.core.db.transaction import Transaction
from normata.notifications.about_records import assigned
from normata.notifications.message import Message, name_of, payload
from normata.soa_versions.model import SoaVersion


def created(transaction: Transaction, change: Change, actor: Actor) -> Iterator[Message]:
    """Notify the responsible member of a new record, and the approver of a new version.

    If a command has made it, nobody is notified.
    """
    if change.table is not SoaVersion:
        yield from assigned(transaction, change, actor)
        return
    row = change.row or {}
    if actor.user_id is None or row["approver_id"] is None:
        return
    yield Message(
        row["approver_id"],
        "record.assigned",
        "FRAMEWORKS",
        payload(
            "soa_version.assigned",
            {"label": row["title"], "assignedBy": name_of(actor)},
            f"/soa-versions/{quote(row['id'], safe='')}/",
            {"type": SoaVersion.__name__, "id": row["id"], "label": row["title"], "meta": None},
        ),
    )
