"""Notifications about the steps of policies: to the approver, and to whoever has submitted a version."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

from normata.core.changes.unit_of_work import Actor, Change
from normata.core.db.transaction import Transaction
from normata.notifications.message import Message, name_of, payload
from normata.policies.versions import PolicyStep
from normata.records.kinds import Policy


def submitted(_transaction: Transaction, change: Change, actor: Actor) -> Iterator[Message]:
    """Notify the approver that a version waits for them."""
    if isinstance(change, PolicyStep) and change.row is not None:
        yield _message(change, actor, change.row["approver_id"], "submitted")


def decided(_transaction: Transaction, change: Change, actor: Actor) -> Iterator[Message]:
    """Notify whoever has submitted a version that it was approved or rejected."""
    if isinstance(change, PolicyStep) and change.submitted_by_id is not None:
        key = "approved" if change.action == "approve" else "rejected"
        yield _message(change, actor, change.submitted_by_id, key)


def _message(change: Change, actor: Actor, member_id: str, key: str) -> Message:
    row = change.row or {}
    return Message(
        member_id,
        f"policy.{key}",
        Policy.topic,
        payload(
            f"policy.{key}",
            {"label": row["title"], "version": (change.counts or {})["version"], "by": name_of(actor)},
            f"/{Policy.path}/{quote(row['id'], safe='')}/",
            {"type": Policy.__name__, "id": row["id"], "label": row["title"], "meta": row.get("slug")},
        ),
    )
