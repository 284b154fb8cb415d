"""Audit events: what somebody did, written in the transaction that did it."""

from __future__ import annotations

from sqlalchemy import Index
from sqlalchemy.orm import Mapped, mapped_column

from normata.schema.fields import Identifier, ShortName, ShortText, Timestamp
from normata.schema.table import Table, foreign_key


class AuditEvent(Table):
    """What somebody did to a record, written in the transaction that did it."""

    __tablename__ = "audit_event"
    array = "auditEvents"
    published = False

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    organization_id: Mapped[Identifier] = mapped_column(foreign_key("organization.id"))
    at: Mapped[Timestamp]
    action: Mapped[ShortName]
    entity_type: Mapped[ShortName]
    entity_id: Mapped[Identifier]
    user_id: Mapped[Identifier]
    token_id: Mapped[Identifier]
    request_id: Mapped[ShortText]

    __table_args__ = (Index(None, "organization_id", "at"),)
