"""Notifications about the steps of policies: to the approver, and to whoever has submitted a version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from normata.core.changes.unit_of_work import Actor, Change
from normata.core.db.transaction import Transaction
from normata.notifications.message import Message, name_of, payload
from normata.policies.acknowledging import AcknowledgementsRequested
from normata.policies.versions import PolicyStep
from normata.records.kinds import Policy


def submitted(_transaction: Transaction, change: Change, actor: Actor) -> Iterator[Message]:
    """Notify the approver that a version waits for them."""
    if isinstance(change, PolicyStep) and change.row is not None:
        yield _message(change.row, change.row["approver_id"], "submitted", _params(change, actor))


def decided(_transaction: Transaction, change: Change, actor: Actor) -> Iterator[Message]:
    """Notify whoever has submitted a version that it was approved or rejected."""
    if isinstance(change, PolicyStep) and change.row is not None and change.submitted_by_id is not None:
        key = "approved" if change.action == "approve" else "rejected"
        yield _message(change.row, change.submitted_by_id, key, _params(change, actor))


def requested(_transaction: Transaction, change: Change, _actor: Actor) -> Iterator[Message]:
    """Ask members to acknowledge a published version, or remind them."""
    if isinstance(change, AcknowledgementsRequested):
        key = "acknowledge" if change.action == "ask" else "acknowledge_again"
        params = {"label": change.policy["title"], "version": change.number}
        for member_id in change.member_ids:
            yield _message(change.policy, member_id, key, params)


def _message(row: Mapping[str, Any], member_id: str, key: str, params: Mapping[str, Any]) -> Message:
    return Message(
        member_id,
        f"policy.{key}",
        Policy.topic,
        payload(
            f"policy.{key}",
            params,
            f"/{Policy.path}/{quote(row['id'], safe='')}/",
            {"type": Policy.__name__, "id": row["id"], "label": row["title"], "meta": row.get("slug")},
        ),
    )


def _params(change: Change, actor: Actor) -> Mapping[str, Any]:
    return {"label": (change.row or {})["title"], "version": (change.counts or {})["version"], "by": name_of(actor)}
