"""Organizations, their members, and the tokens that members act with."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import StringConstraints
from sqlalchemy import Index, UniqueConstraint, literal_column
from sqlalchemy.orm import Mapped, mapped_column

from normata.database import text
from normata.vocabulary import (
    Email,
    Identifier,
    Name,
    ShortText,
    Slug,
    Table,
    Timestamp,
    derived,
    filled,
    fold,
    foreign_key,
    new_id,
)

Role = Annotated[Literal["owner", "admin", "editor", "viewer"], mapped_column(text(8))]
ShortName = Annotated[str, StringConstraints(min_length=1, max_length=64), mapped_column(text(64))]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$"), mapped_column(text(64))]
Scope = Annotated[Literal["read", "write"], mapped_column(text(8))]

# Who may change records; the rest may read.
EDITORS = ("owner", "admin", "editor")


class Organization(Table):
    """A tenant: everything that it owns is invisible to every other one."""

    __tablename__ = "organization"
    array = "organizations"
    fixed = ()

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    name: Mapped[Name]
    slug: Mapped[Slug] = mapped_column(unique=True)

    # Another one whenever what its lists of controls and frameworks show may have changed; see frameworks/revision.py.
    revision: Mapped[str] = mapped_column(text(36), server_default=literal_column("''"), info={"derived": True})

    __table_args__ = ({"info": {"organization_column": "id"}},)

    @classmethod
    def derive(cls, row: dict[str, Any]) -> None:
        row["revision"] = new_id() if row["revision"] is None else row["revision"]


class User(Table):
    """A person or a program. Organizations know them through memberships."""

    __tablename__ = "user_account"  # `user` is a reserved word in SQL
    array = "users"
    filled = frozenset({"name"})
    fixed = ()

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    email: Mapped[Email]
    name: Mapped[Name]
    email_folded: Mapped[Email] = derived()

    __table_args__ = (UniqueConstraint("email_folded"),)

    @classmethod
    def fill(cls, row: dict[str, Any]) -> None:
        row["name"] = row["name"] or row["email"]

    @classmethod
    def derive(cls, row: dict[str, Any]) -> None:
        row["email_folded"] = fold(row["email"])


class Membership(Table):
    """A user's place in an organization; records name their owners and assignees by it."""

    __tablename__ = "membership"
    array = "memberships"

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    organization_id: Mapped[Identifier] = mapped_column(foreign_key("organization.id"))
    user_id: Mapped[Identifier] = mapped_column(foreign_key("user_account.id"), info={"refers_to": "user_account"})
    role: Mapped[Role] = filled("viewer")

    __table_args__ = (
        UniqueConstraint("user_id", "organization_id"),
        UniqueConstraint("organization_id", "id"),
        {"info": {"seen_by_its_user": True}},
    )


class AccessToken(Table):
    """A bearer token. Only its SHA-256 is kept: a copy of the database lets nobody in."""

    __tablename__ = "access_token"
    array = "accessTokens"
    fixed = ("user_id",)

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    user_id: Mapped[Identifier] = mapped_column(foreign_key("user_account.id"), info={"refers_to": "user_account"})
    digest: Mapped[Digest] = mapped_column(unique=True)
    scope: Mapped[Scope]
    created_at: Mapped[Timestamp]
    expires_at: Mapped[Timestamp | None]
    last_used_at: Mapped[Timestamp | None]
    revoked_at: Mapped[Timestamp | None]

    __table_args__ = (Index(None, "user_id"), {"info": {"service_may": "UPDATE (last_used_at)"}})


class AuditEvent(Table):
    """What somebody did to a record, written in the transaction that did it."""

    __tablename__ = "audit_event"
    array = "auditEvents"

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    organization_id: Mapped[Identifier] = mapped_column(foreign_key("organization.id"))
    at: Mapped[Timestamp]
    action: Mapped[ShortName]
    entity_type: Mapped[ShortName]
    entity_id: Mapped[Identifier]
    user_id: Mapped[Identifier]
    token_id: Mapped[Identifier]
    request_id: Mapped[ShortText]

    __table_args__ = (Index(None, "organization_id", "at"), {"info": {"service_may": "INSERT"}})
