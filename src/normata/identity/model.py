"""The tables of organizations, their members, and access tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Literal
from zoneinfo import available_timezones

from pydantic import AfterValidator, Field, StringConstraints
from sqlalchemy import Index, Integer, UniqueConstraint, false
from sqlalchemy import text as sql_text
from sqlalchemy.orm import Mapped, mapped_column

from normata.core.db.types import text
from normata.core.http.roles import AUDITOR, Role, TokenScope
from normata.core.schema.addresses import email_key
from normata.core.schema.fields import Email, Flag, Identifier, Name, RiskLevels, Slug, Text, Timestamp
from normata.core.schema.table import CODED, Table, defaults_to, derived, foreign_key
from normata.identity.mail_choices import DEFAULT_CHOICE, MailByType, MailColumn

Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$"), mapped_column(text(64), info=CODED)]
# What happens to an assessment whose review is overdue: it is only shown as stale, or it lapses.
StaleAssessments = Annotated[Literal["FLAG", "LAPSE"], mapped_column(text(8), info=CODED)]
Days = Annotated[int, Field(ge=1, le=36_500), mapped_column(Integer())]


@cache
def time_zones() -> frozenset[str]:
    """The names of all time zones that the system's tz database has."""
    return frozenset(available_timezones())


def _known_zone(name: str) -> str:
    if name not in time_zones():
        raise ValueError("must be the name of a time zone in the tz database, such as Europe/Berlin")
    return name


# The preferences of a user, see `preferences`.
TimeZone = Annotated[
    str, StringConstraints(max_length=64), AfterValidator(_known_zone), mapped_column(text(64), info=CODED)
]
DateFormat = Annotated[
    Literal["DAY_MONTH_YEAR", "YEAR_MONTH_DAY", "MONTH_DAY_YEAR"], mapped_column(text(16), info=CODED)
]
Theme = Annotated[Literal["LIGHT", "DARK"], mapped_column(text(8), info=CODED)]

# The condition of the index of memberships that will expire.
WILL_EXPIRE = "expires_at IS NOT NULL AND removed_at IS NULL"
RoleColumn = Annotated[Role, mapped_column(text(8), info=CODED)]
ScopeColumn = Annotated[TokenScope, mapped_column(text(8), info=CODED)]


class Organization(Table):
    """A tenant: no other organization sees anything that it owns.

    A removed one has no members, so nobody sees it. Everything that it owns stays, and it can be restored.
    """

    __tablename__ = "organization"
    array = "organizations"
    fixed = ()

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    name: Mapped[Name]
    slug: Mapped[Slug] = mapped_column(unique=True)
    removed_at: Mapped[Timestamp | None]
    stale_assessments: Mapped[StaleAssessments] = mapped_column(server_default="FLAG", info={"default": "FLAG"})
    scope: Mapped[Text | None]  # what its management system is about (ISO/IEC 27001, 4.3)
    risk_levels: Mapped[RiskLevels | None]  # of the cells of its risk matrix; null for the usual ones
    # When notifications are mailed to members who have not chosen.
    mail: Mapped[MailColumn] = mapped_column(server_default=DEFAULT_CHOICE, info={"default": DEFAULT_CHOICE})
    keep_replaced_files_days: Mapped[Days | None]  # since a record gave up a file; null for ever
    allows_self_approval: Mapped[Flag] = mapped_column(server_default=false(), info={"default": False})

    # Whether somebody else than its owner has to verify a finding before it is closed.
    verifies_findings: Mapped[Flag] = mapped_column(server_default=false(), info={"default": False})

    __table_args__ = ({"info": {"organization_column": "id"}},)


class User(Table):
    """A person, or the service account of a program. Organizations know them through memberships.

    A service account belongs to one organization, and has no email address. Nobody can sign in as it. ``mail`` and
    ``mail_by_type`` say when notifications are mailed; null for the organization's default. ``refused_email`` is the
    address that the mail server has refused for good: while it is the user's, nothing is mailed there.
    """

    __tablename__ = "user_account"  # `user` is a reserved word in SQL
    array = "users"
    generated = frozenset({"name"})
    event_columns = frozenset({"id", "organization_id", "removed_at"})
    readable = event_columns | {
        *("email", "email_folded", "name", "time_zone", "date_format", "theme"),
        *("mail", "mail_by_type", "refused_email"),
    }
    fixed = ()

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    email: Mapped[Email | None]
    name: Mapped[Name]
    email_folded: Mapped[Email | None] = derived()  # as `email_key` folds it, so it is compared exactly
    organization_id: Mapped[Identifier | None] = mapped_column(foreign_key("organization.id"))
    removed_at: Mapped[Timestamp | None]
    time_zone: Mapped[TimeZone | None]
    date_format: Mapped[DateFormat | None]
    theme: Mapped[Theme | None]
    mail: Mapped[MailColumn | None]
    mail_by_type: Mapped[MailByType | None]
    refused_email: Mapped[Email | None]

    # A user can be read by members of the same organizations: through row-level security, no other users are visible.
    __table_args__ = (
        UniqueConstraint("email_folded"),
        {"info": {"owned_by": "id", "seen_by": ("membership", "user_id")}},
    )

    @classmethod
    def fill(cls, row: dict[str, Any]) -> None:
        row["name"] = row["name"] or row["email"] or row["id"]

    @classmethod
    def needs(cls, row: Mapping[str, Any]) -> Sequence[str]:
        return () if row["organization_id"] or row["removed_at"] else ("email",)

    @classmethod
    def derive(cls, row: dict[str, Any]) -> None:
        row["email_folded"] = None if row["email"] is None else email_key(row["email"])


class Operator(Table):
    """A user who administers the instance: they create organizations, and import centralized catalogs.

    This shows them no organization's data. The service cannot make operators; commands on the database can.
    """

    __tablename__ = "operator"
    array = "operators"

    user_id: Mapped[Identifier] = mapped_column(foreign_key("user_account.id"), primary_key=True)
    since: Mapped[Timestamp]

    __table_args__ = ({"info": {"owned_by": "user_id"}},)


class Membership(Table):
    """A user's place in an organization; records name their owners and assignees by it.

    So the row stays when the member is removed. From then on it allows nothing. One with ``expires_at`` allows nothing
    from that moment on, and a job removes it then. An owner's has none.
    """

    __tablename__ = "membership"
    array = "memberships"
    named_if = ("removed_at", "role")

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    organization_id: Mapped[Identifier] = mapped_column(foreign_key("organization.id"))
    user_id: Mapped[Identifier] = mapped_column(foreign_key("user_account.id"), info={"refers_to": "user_account"})
    role: Mapped[RoleColumn] = defaults_to("viewer")
    removed_at: Mapped[Timestamp | None]
    expires_at: Mapped[Timestamp | None]

    __table_args__ = (
        UniqueConstraint("user_id", "organization_id"),
        UniqueConstraint("organization_id", "id"),
        # The few that will expire, for the job that removes them.
        Index(
            "ix_membership_expires_at",
            "organization_id",
            "expires_at",
            sqlite_where=sql_text(WILL_EXPIRE),
            postgresql_where=sql_text(WILL_EXPIRE),
        ),
    )

    @classmethod
    def unnamed_because(cls, row: Mapping[str, Any]) -> str | None:
        if row["role"] == AUDITOR and row["removed_at"] is None:
            return "of an auditor, who is responsible for nothing"
        return super().unnamed_because(row)


class AccessToken(Table):
    """A bearer token. Only its SHA-256 is stored, so nobody can use a copy of the database to sign in.

    A narrowed token reaches only its organization; with null it reaches all organizations of its user.
    """

    __tablename__ = "access_token"
    array = "accessTokens"
    event_columns = frozenset({"id", "user_id", "scope", "created_at", "expires_at", "revoked_at", "organization_id"})
    readable = event_columns | {"last_used_at", "name"}  # all but the digest
    fixed = ("user_id", "organization_id")

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    user_id: Mapped[Identifier] = mapped_column(foreign_key("user_account.id"), info={"refers_to": "user_account"})
    digest: Mapped[Digest] = mapped_column(unique=True)
    scope: Mapped[ScopeColumn]
    created_at: Mapped[Timestamp]
    expires_at: Mapped[Timestamp | None]
    last_used_at: Mapped[Timestamp | None]
    revoked_at: Mapped[Timestamp | None]
    organization_id: Mapped[Identifier | None] = mapped_column(foreign_key("organization.id"))
    name: Mapped[Name | None]

    __table_args__ = (
        Index(None, "user_id"),
        {"info": {"owned_by": "user_id", "seen_by": ("membership", "user_id")}},
    )


class CalendarAddress(Table):
    """The secret address of a person's calendar. Only its SHA-256 is stored, and nobody has more than one.

    The calendar has what is due in the organization that it is narrowed to; with null, in all organizations of the
    person. The row is theirs alone, and no organization's.
    """

    __tablename__ = "calendar_address"
    array = "calendarAddresses"
    event_columns = frozenset({"id", "user_id", "narrowed_to", "created_at"})
    readable = event_columns | {"last_used_at"}
    fixed = ("user_id",)

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    user_id: Mapped[Identifier] = mapped_column(foreign_key("user_account.id"), unique=True)
    digest: Mapped[Digest] = mapped_column(unique=True)
    narrowed_to: Mapped[Identifier | None] = mapped_column(foreign_key("organization.id"))
    created_at: Mapped[Timestamp]
    last_used_at: Mapped[Timestamp | None]

    __table_args__ = ({"info": {"owned_by": "user_id"}},)


class Invitation(Table):
    """An offer to become a member, valid for seven days. Only the SHA-256 of its link's secret is stored.

    A person who accepts it becomes a user, if no user has this address, and a member: until ``membership_expires_at``,
    if that is not null.
    """

    __tablename__ = "invitation"
    array = "invitations"
    transient = True
    event_columns = frozenset(
        {
            "id",
            "organization_id",
            "role",
            "created_at",
            "expires_at",
            "accepted_at",
            "revoked_at",
            "membership_expires_at",
        }
    )
    readable = event_columns | {"email", "email_folded", "created_by"}

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    organization_id: Mapped[Identifier] = mapped_column(foreign_key("organization.id"))
    email: Mapped[Email]
    email_folded: Mapped[Email] = derived()  # as that of a user
    role: Mapped[RoleColumn]
    digest: Mapped[Digest] = mapped_column(unique=True)
    created_at: Mapped[Timestamp]
    created_by: Mapped[Identifier | None] = mapped_column(foreign_key("user_account.id"))
    expires_at: Mapped[Timestamp]
    accepted_at: Mapped[Timestamp | None]
    revoked_at: Mapped[Timestamp | None]
    membership_expires_at: Mapped[Timestamp | None]

    __table_args__ = (Index(None, "organization_id", "email_folded"), Index(None, "email_folded"))

    @classmethod
    def derive(cls, row: dict[str, Any]) -> None:
        row["email_folded"] = email_key(row["email"])
