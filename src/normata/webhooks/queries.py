"""Reading webhooks, each with how far it has come."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from normata.core.db.transaction import Transaction
from normata.core.schema.fields import Timestamp
from normata.core.schema.paging import PageQuery, envelope, fetch_page
from normata.core.schema.table import sql_table
from normata.core.schema.wire import Wire
from normata.errors import NotFound
from normata.events.proofs import size_of
from normata.webhooks.commands import FIND, JOINED
from normata.webhooks.model import Format, Reason, Stop, Webhook


class Delivery(Wire):
    """How far a webhook has come."""

    next_number: int = Field(description="The number of the event that is next.")
    behind: int = Field(description="How many sealed events are not sent or passed over yet.")
    delivered_number: int | None = Field(description="The number of the event that was delivered last; null for none.")
    delivered_at: Timestamp | None = Field(description="When that was.")
    last_at: Timestamp | None = Field(description="When the last attempt was.")
    last_status: int | None = Field(description="The status of its answer; null if there was none.")
    last_reason: Reason | None = Field(description="Why it was no success; null if it was one.")
    attempts: int = Field(description="How many attempts at the next event have failed.")
    failing_since: Timestamp | None = Field(description="When the first of them was.")
    next_attempt_at: Timestamp | None = Field(description="When the next attempt is; null if none is waited for.")


class WebhookAnswer(Wire):
    """A webhook. Its secret is shown only where it is made."""

    id: str
    organization_id: str
    url: str = Field(description="The address that events are sent to.")
    kinds: list[str] = Field(description="The kinds of rows whose events are sent; empty for all.")
    actions: list[str] = Field(description="The actions that are sent; empty for all.")
    format: Format = Field(description="What is sent: see `POST /webhooks/`.")
    is_active: bool = Field(description="Whether events are sent.")
    disabled_at: Timestamp | None = Field(description="Since when they are not.")
    disabled_reason: Stop | None = Field(
        description="Why not: it was stopped by hand, has failed for three days, or the receiver has answered 410."
    )
    former_secret_until: Timestamp | None = Field(
        description="Until when messages are signed with the secret before the present one as well; null if not."
    )
    created_at: Timestamp
    updated_at: Timestamp
    delivery: Delivery = Field(description="How far it has come.")


class NewWebhook(WebhookAnswer):
    """A webhook with its secret, which is shown once."""

    secret: str = Field(description="The secret that messages are signed with, as receivers configure it.")


def list_webhooks(transaction: Transaction, query: PageQuery) -> dict[str, Any]:
    """A page of an organization's webhooks, the oldest first, in three statements."""
    statement = JOINED.where(_TABLE.c.organization_id == query.organization_id)
    found = fetch_page(transaction, statement, [_TABLE.c.created_at, _TABLE.c.id], query)
    size = size_of(transaction, query.organization_id)
    return envelope([as_wire(row, size, transaction.time_of_reading()) for row in found.rows], found, query)


def one_webhook(transaction: Transaction, organization_id: str, webhook_id: str) -> dict[str, Any]:
    """A webhook of an organization. Raises NotFound."""
    row = transaction.row(FIND, {"webhook": webhook_id})
    if row is None or row.organization_id != organization_id:
        raise NotFound
    return as_wire(row, size_of(transaction, organization_id), transaction.time_of_reading())


def as_wire(row: Any, size: int, moment: str) -> dict[str, Any]:
    """A webhook in wire form, at a moment at which its organization has ``size`` sealed events."""
    behind = max(0, size - row.next_number)
    is_two = row.former_until is not None and row.former_until > moment
    return {
        "id": row.id,
        "organizationId": row.organization_id,
        "url": row.url,
        "kinds": row.kinds,
        "actions": row.actions,
        "format": row.format,
        "isActive": row.disabled_at is None,
        "disabledAt": row.disabled_at,
        "disabledReason": row.disabled_reason,
        "formerSecretUntil": row.former_until if is_two else None,
        "createdAt": row.created_at,
        "updatedAt": row.updated_at,
        "delivery": {
            "nextNumber": row.next_number,
            "behind": behind,
            "deliveredNumber": row.delivered_number,
            "deliveredAt": row.delivered_at,
            "lastAt": row.last_at,
            "lastStatus": row.last_status,
            "lastReason": row.last_reason,
            "attempts": row.attempts,
            "failingSince": row.failing_since,
            "nextAttemptAt": row.due_at if row.failing_since is not None else None,
        },
    }


_TABLE = sql_table(Webhook)
