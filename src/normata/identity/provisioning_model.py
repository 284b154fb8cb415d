"""The tables of people and groups that an identity provider maintains over SCIM."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ForeignKeyConstraint, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from normata.core.schema.addresses import email_key
from normata.core.schema.fields import Flag, Identifier, Json, Name, Timestamp
from normata.core.schema.table import Table, derived, foreign_key, refers_to


def _refers(column: str, table: str) -> ForeignKeyConstraint:
    return ForeignKeyConstraint(
        ["organization_id", column],
        [f"{table}.organization_id", f"{table}.id"],
        deferrable=True,
        initially="DEFERRED",
    )


class ProvisionedPerson(Table):
    """What an organization's provider says of a member. The row ends when the provider deletes the person.

    ``user_name`` is the provider's, and ``details`` has the names and addresses as it sent them. ``made_account`` is
    true if the account was made for this person. The row belongs to the organization, and is about one user.
    """

    __tablename__ = "provisioned_person"
    array = "provisionedPeople"
    event_columns = frozenset({"id", "organization_id", "membership_id", "created_at", "changed_at"})

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    organization_id: Mapped[Identifier] = mapped_column(foreign_key("organization.id"))
    user_id: Mapped[Identifier] = mapped_column(foreign_key("user_account.id"), info={"refers_to": "user_account"})
    membership_id: Mapped[Identifier] = refers_to("membership")
    user_name: Mapped[Name]
    user_name_folded: Mapped[Name] = derived()
    external_id: Mapped[Name | None]
    details: Mapped[Json]
    made_account: Mapped[Flag]
    created_at: Mapped[Timestamp]
    changed_at: Mapped[Timestamp]

    __table_args__ = (
        _refers("membership_id", "membership"),
        UniqueConstraint("organization_id", "membership_id"),
        UniqueConstraint("organization_id", "user_name_folded"),
        Index(None, "organization_id", "external_id"),
        {"info": {"owned_by": "user_id"}},
    )

    @classmethod
    def derive(cls, row: dict[str, Any]) -> None:
        row["user_name_folded"] = email_key(row["user_name"])


class ProvisionedGroup(Table):
    """A group of an organization's provider, whose name or external id may give its members a role."""

    __tablename__ = "provisioned_group"
    array = "provisionedGroups"

    id: Mapped[Identifier] = mapped_column(primary_key=True)
    organization_id: Mapped[Identifier] = mapped_column(foreign_key("organization.id"))
    name: Mapped[Name]
    external_id: Mapped[Name | None]
    created_at: Mapped[Timestamp]
    changed_at: Mapped[Timestamp]

    __table_args__ = (UniqueConstraint("organization_id", "id"),)


class ProvisionedGroupMember(Table):
    """A member of a provider's group. Its changes are told with those of the group, as numbers."""

    __tablename__ = "provisioned_group_member"
    published = False

    organization_id: Mapped[Identifier] = mapped_column(foreign_key("organization.id"))
    group_id: Mapped[Identifier] = mapped_column(primary_key=True, info={"refers_to": "provisioned_group"})
    membership_id: Mapped[Identifier] = mapped_column(primary_key=True, info={"refers_to": "membership"})

    __table_args__ = (
        _refers("group_id", "provisioned_group"),
        _refers("membership_id", "membership"),
        Index(None, "organization_id", "membership_id"),
    )
