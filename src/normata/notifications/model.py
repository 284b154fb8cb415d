"""A message to one user about one organization, the outbox of mail, and sent reminders."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, JsonValue, StringConstraints
from pydantic.alias_generators import to_camel
from sqlalchemy import Index, text
from sqlalchemy.orm import Mapped, mapped_column

from normata.core.db.types import Document
from normata.core.db.types import text as db_text
from normata.core.schema.fields import Count, Identifier, ShortName, ShortText, Timestamp, Token
from normata.core.schema.table import CODED, Table, defaults_to, foreign_key, known

# An id of 255 characters is up to twelve times as long when escaped.
Address = Annotated[str, StringConstraints(max_length=4_000)]


class NotificationPayload(BaseModel):
    """The content of a notification: keys of translated texts, their parameters, and a link."""

    model_config = ConfigDict(
        alias_generator=to_camel, extra="forbid", json_schema_serialization_defaults_required=True
    )

    title_key: ShortText | None = None
    body_key: ShortText | None = None
    params: dict[str, JsonValue] = {}
    url: Address | None = None
    entity_type: ShortText | None = None
    entity_id: ShortText | None = None
    entity_label: ShortText | None = None
    entity_meta: ShortText | None = None


Payload = Annotated[NotificationPayload, mapped_column(Document())]


class Notification(Table):
    """A notification, which only its user reads; unread as long as ``read_at`` is null."""

    __tablename__ = "notification"
    array = "notifications"
    published = False

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    organization_id: Mapped[Identifier] = mapped_column(foreign_key("organization.id"))
    user_id: Mapped[Identifier] = mapped_column(foreign_key("user_account.id"), info={"refers_to": "user_account"})
    type: Mapped[ShortText] = defaults_to("notice")
    category: Mapped[Token] = known(
        "POLICIES",
        "TASKS",
        "FINDINGS",
        "ASSETS",
        "AUDITS",
        "FRAMEWORKS",
        "CONTROLS",
        "INCIDENTS",
        "RECORDS",
        "RISKS",
        "REVIEWS",
        "VENDORS",
        "INTEGRATIONS",
        "VOCABULARY",
        "SYSTEM",
        default="SYSTEM",
    )
    payload: Mapped[Payload] = defaults_to(NotificationPayload().model_dump(by_alias=True))
    read_at: Mapped[Timestamp | None]
    created_at: Mapped[Timestamp]

    __table_args__ = (
        # Read backwards, it has the newest first.
        Index(None, "organization_id", "user_id", "created_at", "id"),
        Index(
            "ix_notification_unread",
            *("organization_id", "user_id", "created_at", "id"),
            sqlite_where=text("read_at IS NULL"),
            postgresql_where=text("read_at IS NULL"),
        ),
    )


class Reminder(Table):
    """A sent reminder of one of a record's dates, so that it is not sent again.

    ``kind`` is the path of the kind, ``what`` the column of the date and ``due_at`` the date itself: if it changes, new
    reminders are due. ``which`` is ``soon`` for the reminder a week before, ``now`` for that of the day; where the time
    matters, for those 24 and 4 hours before.
    """

    __tablename__ = "reminder"
    published = False  # a reminder is no event

    organization_id: Mapped[Identifier] = mapped_column(foreign_key("organization.id"), primary_key=True)
    kind: Mapped[ShortName] = mapped_column(primary_key=True)
    record_id: Mapped[Identifier] = mapped_column(primary_key=True)
    what: Mapped[ShortName] = mapped_column(primary_key=True)
    due_at: Mapped[Timestamp] = mapped_column(primary_key=True)
    which: Mapped[ShortName] = mapped_column(primary_key=True)
    reminded_at: Mapped[Timestamp]


Outcome = Literal["SENT", "LEFT_OUT", "REFUSED", "REJECTED"]


class OutgoingMail(Table):
    """A notification that may have to be mailed; ``id`` is the notification's. It is written in its transaction.

    The job that mails first decides when, and in which ``message``: several notifications can be in one. ``message`` is
    null until then. A process that sends a message moves ``due_at`` to the end of its claim. ``outcome`` is null until
    the end: the server has accepted the message, there was nothing to mail any more, the server has refused the
    address, or the message.
    """

    __tablename__ = "outgoing_mail"
    published = False

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    organization_id: Mapped[Identifier] = mapped_column(foreign_key("organization.id"))
    user_id: Mapped[Identifier] = mapped_column(foreign_key("user_account.id"))
    message: Mapped[str | None] = mapped_column(db_text(64), info=CODED)
    due_at: Mapped[Timestamp]
    attempts: Mapped[Count]
    ended_at: Mapped[Timestamp | None]
    outcome: Mapped[Outcome | None] = mapped_column(db_text(16), info=CODED)

    __table_args__ = tuple(
        Index(
            f"ix_outgoing_mail_{name}",
            *("organization_id", column),
            sqlite_where=text(condition),
            postgresql_where=text(condition),
        )
        for name, column, condition in (
            ("due", "due_at", "ended_at IS NULL"),
            ("message", "message", "ended_at IS NULL"),
            ("ended", "ended_at", "ended_at IS NOT NULL"),
        )
    )
