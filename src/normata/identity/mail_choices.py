"""The types of notifications, and when they are mailed to a person."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from sqlalchemy.orm import mapped_column

from normata.core.db.types import Document, text
from normata.core.schema.table import CODED

# All types. A person chooses for each when it is mailed, and the account page of the console lists them.
NOTIFICATION_TYPES = (
    *(f"record.{what}" for what in ("assigned", "due_soon", "due_now", "archived", "restored")),
    *(f"record.{what}" for what in ("verified", "finalized", "submitted")),
    *(f"comment.{what}" for what in ("mentioned", "commented")),
    *(f"policy.{what}" for what in ("submitted", "approved", "rejected", "acknowledge", "acknowledge_again")),
    *(f"coverage.{what}" for what in ("lost", "conflict", "reworded", "rules_changed")),
    "webhook.disabled",
)

MailChoice = Literal["IMMEDIATELY", "DAILY", "OFF"]
MAIL_CHOICES: tuple[MailChoice, ...] = ("IMMEDIATELY", "DAILY", "OFF")
DEFAULT_CHOICE: MailChoice = "DAILY"  # of an organization that has not chosen


def _known_type(name: str) -> str:
    if name not in NOTIFICATION_TYPES:
        raise ValueError(f"must be a type of notifications: {', '.join(NOTIFICATION_TYPES)}")
    return name


MailColumn = Annotated[MailChoice, mapped_column(text(16), info=CODED)]
MailByType = Annotated[
    dict[Annotated[str, AfterValidator(_known_type)], MailChoice],
    Field(examples=[{"record.assigned": "IMMEDIATELY"}]),
    mapped_column(Document()),
]
