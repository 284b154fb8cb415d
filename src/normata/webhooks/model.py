"""Webhooks: addresses to which an organization's events are sent, and how far each has come."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints
from sqlalchemy import Integer
from sqlalchemy.orm import Mapped, mapped_column

from normata.core.db.types import Document, text
from normata.core.http.outgoing_addresses import LONGEST_URL
from normata.core.schema.fields import Count, Identifier, Timestamp
from normata.core.schema.table import CODED, Table, foreign_key
from normata.events.model import Number, Owner

MOST = 50  # webhooks of an organization
MOST_NAMES = 100

Format = Literal["THIN", "FULL", "SLACK"]
# Why nothing is sent any more: somebody has stopped it, it has failed for three days, or the receiver has said that it
# is gone for good (410).
Stop = Literal["STOPPED", "FAILED", "GONE"]
# Why the last attempt was no success: see `docs/api.md`.
Reason = Literal[
    "STATUS", "REDIRECT", "GONE", "TIMEOUT", "UNREACHABLE", "UNRESOLVED", "NOT_ALLOWED", "TLS", "BROKEN", "KEY"
]

Name = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=r"^[A-Za-z][A-Za-z0-9_-]*$")]
Names = Annotated[list[Name], Field(max_length=MOST_NAMES), mapped_column(Document(), info=CODED)]
Url = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_URL), mapped_column(text(LONGEST_URL))]
_Secret = Annotated[str, mapped_column(text(255), info=CODED)]
_Word = text(16)


class Webhook(Table):
    """A webhook: where the events of an organization are sent, which, in which format, and with which secret.

    The secrets are encrypted. Receivers such as Slack know their senders by the address alone, so events show only its
    ``origin``: scheme, host and port.
    """

    __tablename__ = "webhook"
    array = "webhooks"
    event_columns = frozenset(
        {
            *("id", "organization_id", "origin", "kinds", "actions", "format", "created_at", "updated_at"),
            *("former_until", "disabled_at", "disabled_reason"),
        }
    )

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    organization_id: Mapped[Identifier] = mapped_column(foreign_key("organization.id"), index=True)
    url: Mapped[Url]
    origin: Mapped[Url]
    kinds: Mapped[Names]
    actions: Mapped[Names]
    format: Mapped[Format] = mapped_column(_Word, info=CODED)
    secret: Mapped[_Secret]
    former_secret: Mapped[_Secret | None]  # valid as well until then
    former_until: Mapped[Timestamp | None]
    created_at: Mapped[Timestamp]
    updated_at: Mapped[Timestamp]
    disabled_at: Mapped[Timestamp | None]
    disabled_reason: Mapped[Stop | None] = mapped_column(_Word, info=CODED)


class WebhookDelivery(Table):
    """How far a webhook has come.

    ``next_number`` is that of the next event in the log. ``due_at`` is when a process may go on, null for a disabled
    one. A process that sends moves it to the end of its ``claim``, and goes on doing so. ``owner`` is the organization.
    The name differs from ``organization_id`` because whoever sends looks for what is due of all.
    """

    __tablename__ = "webhook_delivery"
    published = False

    webhook_id: Mapped[Identifier] = mapped_column(foreign_key("webhook.id"), primary_key=True)
    owner: Mapped[Owner]
    next_number: Mapped[Number]
    due_at: Mapped[Timestamp | None] = mapped_column(index=True)
    claim: Mapped[str | None] = mapped_column(text(36), info=CODED)
    attempts: Mapped[Count]
    failing_since: Mapped[Timestamp | None]
    last_at: Mapped[Timestamp | None]
    last_status: Mapped[int | None] = mapped_column(Integer)
    last_reason: Mapped[Reason | None] = mapped_column(_Word, info=CODED)
    delivered_number: Mapped[Number | None]
    delivered_at: Mapped[Timestamp | None]
