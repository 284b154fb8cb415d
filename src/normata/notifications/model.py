"""A message to one user about one organization."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, JsonValue, StringConstraints
from pydantic.alias_generators import to_camel
from sqlalchemy import Index
from sqlalchemy.orm import Mapped, mapped_column

from normata.db.types import Document
from normata.schema.fields import Identifier, ShortText, Timestamp, Token
from normata.schema.table import Table, defaults_to, foreign_key, known

# An id of 255 characters, escaped, takes twelve times as many.
Address = Annotated[str, StringConstraints(max_length=4_000)]


class NotificationPayload(BaseModel):
    """What a notification says: keys of translated texts, what to fill in, and where to look."""

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
    """Read by its user alone; unread as long as ``read_at`` is null."""

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

    # Read backwards, it has the newest first.
    __table_args__ = (Index(None, "organization_id", "user_id", "created_at", "id"),)
