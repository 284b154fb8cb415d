"""Organizations, their members, and the tokens that members act with."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import StringConstraints
from sqlalchemy import Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from normata.db.types import text
from normata.identity.roles import Role, TokenScope
from normata.schema.fields import Email, Identifier, Name, Slug, Timestamp
from normata.schema.table import Table, defaults_to, derived, foreign_key
from normata.schema.text import fold

Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$"), mapped_column(text(64))]
RoleColumn = Annotated[Role, mapped_column(text(8))]
ScopeColumn = Annotated[TokenScope, mapped_column(text(8))]


class Organization(Table):
    """A tenant: everything that it owns is invisible to every other one."""

    __tablename__ = "organization"
    array = "organizations"
    fixed = ()

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    name: Mapped[Name]
    slug: Mapped[Slug] = mapped_column(unique=True)

    __table_args__ = ({"info": {"organization_column": "id"}},)


class User(Table):
    """A person or a program. Organizations know them through memberships."""

    __tablename__ = "user_account"  # `user` is a reserved word in SQL
    array = "users"
    generated = frozenset({"name"})
    readable = frozenset({"id", "name"})  # what lists show of people; the token lookup tells the rest
    fixed = ()

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    email: Mapped[Email]
    name: Mapped[Name]
    email_folded: Mapped[Email] = derived()

    # Whoever shares an organization with the caller: what the service may read of others is nobody.
    __table_args__ = (UniqueConstraint("email_folded"), {"info": {"seen_by": ("membership", "user_id")}})

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
    role: Mapped[RoleColumn] = defaults_to("viewer")

    __table_args__ = (
        UniqueConstraint("user_id", "organization_id"),
        UniqueConstraint("organization_id", "id"),
    )


class AccessToken(Table):
    """A bearer token. Only its SHA-256 is kept: a copy of the database lets nobody in."""

    __tablename__ = "access_token"
    array = "accessTokens"
    readable = frozenset({"id"})  # so that its last use can be noted; never the digest
    fixed = ("user_id",)

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    user_id: Mapped[Identifier] = mapped_column(foreign_key("user_account.id"), info={"refers_to": "user_account"})
    digest: Mapped[Digest] = mapped_column(unique=True)
    scope: Mapped[ScopeColumn]
    created_at: Mapped[Timestamp]
    expires_at: Mapped[Timestamp | None]
    last_used_at: Mapped[Timestamp | None]
    revoked_at: Mapped[Timestamp | None]

    __table_args__ = (Index(None, "user_id"),)
