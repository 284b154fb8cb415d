"""Notifications to admins and owners about webhooks that were disabled after failures."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

from normata.core.changes.unit_of_work import Actor, Change
from normata.core.db.transaction import Transaction
from normata.notifications.about_coverage import ADMINS
from normata.notifications.message import Message, payload
from normata.webhooks.model import Webhook


def disabled(transaction: Transaction, change: Change, _actor: Actor) -> Iterator[Message]:
    """Notify admins and owners that nothing is sent any more. Whoever stops a webhook by hand needs no notification."""
    if change.table is not Webhook or change.row is None:
        return
    row = change.row
    key = "gone" if row["disabled_reason"] == "GONE" else "failed"
    entity = {"type": Webhook.__name__, "id": row["id"], "label": row["origin"][:1_000], "meta": None}
    url = f"/webhooks/{quote(row['id'], safe='')}/"
    for member_id in transaction.scalars(ADMINS, {"organization": change.organization_id}):
        content = payload(f"webhook.{key}", {"label": row["origin"]}, url, entity)
        yield Message(member_id, "webhook.disabled", "SYSTEM", content)
