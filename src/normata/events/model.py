"""Audit events and their seals: numbered leaves of a Merkle tree, and its checkpoints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

import sqlalchemy
from sqlalchemy import BigInteger, Index, Integer
from sqlalchemy.orm import Mapped, mapped_column

from normata.core.db.schema_items import Trigger
from normata.core.db.transaction import NO_ORGANIZATION
from normata.core.db.types import text
from normata.core.schema.fields import Identifier, ShortName, ShortText, Timestamp
from normata.core.schema.table import CODED, Table, derived, erased_to, foreign_key

# The log for everything without an organization, such as centralized frameworks, users and tokens. Operators read it.
OPERATORS = NO_ORGANIZATION

Body = Annotated[str, mapped_column(text())]
Hash = Annotated[str, mapped_column(text(64), info=CODED)]  # SHA-256, in hexadecimal digits
Owner = Annotated[str, mapped_column(text(255), info=CODED)]  # an organization, or OPERATORS
Number = Annotated[int, mapped_column(BigInteger().with_variant(Integer, "sqlite"))]


# A migration creates it, and `normata check` compares it: an event without a note would never be sealed.
_NOTE_UNSEALED = Trigger(
    "note_unsealed_event",
    """\
CREATE TRIGGER note_unsealed_event AFTER INSERT ON audit_event
BEGIN
    INSERT INTO unsealed_event (event_id, owner) VALUES (NEW.id, coalesce(NEW.organization_id, ''));
END
""",
    "CREATE TRIGGER note_unsealed_event AFTER INSERT ON audit_event FOR EACH ROW"
    " EXECUTE FUNCTION note_unsealed_event()",
    """\
BEGIN
    INSERT INTO public.unsealed_event (event_id, owner) VALUES (NEW.id, coalesce(NEW.organization_id, ''));
    RETURN NULL;
END
""",
)


OF_A_CONTROL = "control_id IS NOT NULL"
_ASSESSMENT = "ControlCoverage"


class AuditEvent(Table):
    """An audit event, written in the transaction of the change.

    ``body`` is the whole event, with the exact bytes that are sealed; the other columns repeat values for searching. It
    is null if an earlier version without bodies wrote it, and empty if it was erased.
    """

    __tablename__ = "audit_event"
    array = "auditEvents"
    published = False

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    organization_id: Mapped[Identifier | None] = mapped_column(foreign_key("organization.id"))
    at: Mapped[Timestamp]
    action: Mapped[ShortName] = mapped_column(info=CODED)
    entity_type: Mapped[ShortName] = mapped_column(info=CODED)
    entity_id: Mapped[Identifier | None] = mapped_column(info=CODED)
    user_id: Mapped[Identifier | None] = mapped_column(info=CODED)
    token_id: Mapped[Identifier | None] = mapped_column(info=CODED)
    request_id: Mapped[ShortText]
    body: Mapped[Body | None] = mapped_column(info=erased_to(""))
    # The control of an assessment, since a control that is assessed anew has another row. It is not sealed.
    control_id: Mapped[Identifier | None] = derived()

    fixed = ("organization_id", "at", "action", "entity_type", "entity_id", "user_id", "token_id", "request_id", "body")

    __table_args__ = (
        # In the order of the list, with the id, because all events of a load have the same time.
        Index(None, "organization_id", "at", "id"),
        Index(None, "organization_id", "entity_id", "at"),
        # For filters: each has the events of one value in this order.
        Index(None, "organization_id", "entity_type", "at", "id"),
        Index(None, "organization_id", "user_id", "at", "id"),
        Index(None, "organization_id", "action", "at", "id"),
        Index(
            "ix_audit_event_control",
            *("organization_id", "control_id", "entity_id"),
            sqlite_where=sqlalchemy.text(OF_A_CONTROL),
            postgresql_where=sqlalchemy.text(OF_A_CONTROL),
        ),
        # Rows without an organization belong to operators, not to everyone.
        {"info": {"nobodys": OPERATORS, "triggers": (_NOTE_UNSEALED,)}},
    )

    @classmethod
    def derive(cls, row: dict[str, Any]) -> None:
        """An erased event keeps its control."""
        row["control_id"] = row["control_id"] or _assessed_control(row)


def _assessed_control(row: Mapping[str, Any]) -> str | None:
    """The control of an assessment, if the event has all its fields: it was made or cleared."""
    if row["entity_type"] != _ASSESSMENT or not row["body"]:
        return None
    values = json.loads(row["body"])
    found: str | None = (values.get("after") or values.get("before") or {}).get("controlId")
    return found


class UnsealedEvent(Table):
    """An event that has no leaf yet. A trigger on events inserts it, so that no writer has to.

    A transaction that commits late is not missed, because its rows are committed with it. ``owner`` is the event's
    organization. The name differs from ``organization_id`` because the sealer reads the rows of all.
    """

    __tablename__ = "unsealed_event"
    published = False

    event_id: Mapped[Identifier] = mapped_column(primary_key=True)
    owner: Mapped[Owner]

    __table_args__ = ({"sqlite_with_rowid": False},)  # one B-tree to write, not two


class EventLeaf(Table):
    """The place of an event in the log of its organization, from 0, and the hash under which it was sealed."""

    __tablename__ = "event_leaf"
    published = False

    organization_id: Mapped[Owner] = mapped_column(primary_key=True)
    number: Mapped[Number] = mapped_column(primary_key=True)
    event_id: Mapped[Identifier] = mapped_column(unique=True, info=CODED)
    hash: Mapped[Hash]

    __table_args__ = ({"sqlite_with_rowid": False},)


class EventCheckpoint(Table):
    """The root of an organization's log when it had ``size`` leaves.

    ``frontier`` has the roots of the perfect subtrees that the tree is made of, the largest first, so that leaves can
    be added without reading earlier ones.
    """

    __tablename__ = "event_checkpoint"
    published = False

    organization_id: Mapped[Owner] = mapped_column(primary_key=True)
    size: Mapped[Number] = mapped_column(primary_key=True)
    root: Mapped[Hash]
    frontier: Mapped[Body] = mapped_column(info=CODED)
    at: Mapped[Timestamp]
