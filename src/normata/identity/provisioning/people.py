"""The people whom an organization's identity provider creates, changes, ends and brings back.

A person here is a member who is no service account. The provider sees all of them, and what it says of one is in a row
of :class:`ProvisionedPerson`. It does to members what an admin may do, with the role of its token's user:

- It makes accounts, and members of these. Whoever has an account elsewhere is not made a member by it, but invited:
  otherwise admins could learn whose address has an account, and end the sessions of strangers by removing them.
- An account's address and its ways to sign in never change. Its name follows the provider if the account was made for
  the person, and nobody else relies on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Select, bindparam, delete, insert, select, update

from normata.core.changes.unit_of_work import Change, UnitOfWork, delete_of, insert_of, update_of
from normata.core.db.lookup import Lookup
from normata.core.db.transaction import Transaction
from normata.core.db.types import text
from normata.core.http.roles import Role
from normata.core.schema.addresses import email_key
from normata.core.schema.table import new_id, sql_table
from normata.errors import AlreadyMember, DomainError, LastOwner, NotFound
from normata.identity import memberships, users
from normata.identity.authority import lock_members, require_role
from normata.identity.members import members
from normata.identity.memberships import is_out, is_valid
from normata.identity.model import Membership, User
from normata.identity.provisioning.roles import DEFAULT_ROLE, roles_by_groups
from normata.identity.provisioning_model import ProvisionedGroupMember, ProvisionedPerson

_ACTIVE = "active"  # in the details of a person, where the provider says that they are not

PEOPLE_WRITES = (
    insert_of(ProvisionedPerson),
    update_of(ProvisionedPerson, "user_name", "user_name_folded", "external_id", "details", "changed_at"),
    delete_of(ProvisionedPerson),
    delete_of(ProvisionedGroupMember),
    *users.CREATION_WRITES,
    *users.RENAME_WRITES,
    *memberships.JOINING_WRITES,
    *members.REMOVAL_WRITES,
)


class AccountElsewhere(DomainError):
    """An account with this address exists already, and belongs to no member of the organization."""

    message = (
        "An account with this address exists, and is no member of this organization. Invite the person: once they have"
        " accepted, the provider finds them."
    )


class EndedByPeople(DomainError):
    """The membership has ended at the time that an admin has set, so only people bring it back."""

    message = "The membership has ended at the time that an admin has set. Invite the person to bring them back."


class RelianceUnknown(Exception):
    """Whether others rely on an account is not known yet, and takes a lookup; ``user_id`` is that of the account."""

    def __init__(self, user_id: str) -> None:
        super().__init__(user_id)
        self.user_id = user_id


@dataclass(frozen=True, slots=True)
class Profile:
    """What the provider says of a person.

    ``email`` is the address of an account to make, ``name`` its name. ``details`` are the names and addresses as the
    provider sent them. ``active`` is null if it does not say.
    """

    user_name: str
    email: str
    name: str
    external_id: str | None
    details: Mapping[str, Any]
    active: bool | None = None


@dataclass(frozen=True, slots=True)
class Provider:
    """The provider of a request.

    ``new_user`` is the id of an account that it may make, ``roles`` has the roles that its groups give by their names,
    and ``is_alone`` the accounts of which it is known whether nobody else relies on them.
    """

    organization_id: str
    new_user: str = ""
    roles: Mapping[str, Role] = field(default_factory=dict)
    is_alone: Mapping[str, bool] = field(default_factory=dict)


# --- Reading


def person(transaction: Transaction, organization_id: str, membership_id: str, moment: str) -> Any:
    """The row of a person, out or not. Raises NotFound, also for members who were removed by people alone."""
    row = transaction.row(_ONE, {"organization": organization_id, "member": membership_id})
    if row is None or (row.provisioned_id is None and is_out(row, moment)):
        raise NotFound
    return row


def is_active_at_provider(transaction: Transaction, organization_id: str, membership_id: str) -> bool | None:
    """Whether the provider says that a member is one; null if it says nothing of them."""
    row = transaction.row(_ONE, {"organization": organization_id, "member": membership_id})
    if row is None or row.provisioned_id is None:
        return None
    return row.provisioned_details.get(_ACTIVE) is not False


# --- Changing


def create(unit: UnitOfWork, provider: Provider, profile: Profile) -> str:
    """Make a person a member, and return the id of the membership.

    A former member comes back with the same membership. Raises AlreadyMember, AccountElsewhere, EndedByPeople,
    InsufficientRole and Forbidden.
    """
    organization_id = provider.organization_id
    require_role(unit, organization_id, "admin", DEFAULT_ROLE)
    lock_members(unit, organization_id)
    before = unit.row(_OF_ADDRESS, {"organization": organization_id, "email": email_key(profile.email)})
    if before is not None and (before.provisioned_id is not None or not is_out(before, unit.moment)):
        raise AlreadyMember(before.id)
    _require_free_name(unit, organization_id, profile.user_name, None)
    if before is not None:
        _bring_back(unit, provider, before)
        member_id, user_id = str(before.id), str(before.user_id)
    else:
        user_id = _new_account(unit, provider, profile)
        member_id = memberships.join(unit, organization_id, user_id, DEFAULT_ROLE)
    _record(unit, organization_id, member_id, user_id, profile, made_account=before is None)
    if profile.active is False:
        end(unit, provider, member_id)
    return member_id


def change(unit: UnitOfWork, provider: Provider, membership_id: str, profile: Profile) -> None:
    """Take over what the provider says of a person; what it has sent before writes nothing.

    Raises NotFound, AlreadyMember if another person has the user name, LastOwner, EndedByPeople, InsufficientRole,
    Forbidden, and RelianceUnknown.
    """
    organization_id = provider.organization_id
    require_role(unit, organization_id, "admin")
    lock_members(unit, organization_id)
    before = person(unit, organization_id, membership_id, unit.moment)
    _require_free_name(unit, organization_id, profile.user_name, membership_id)
    if before.provisioned_id is None:
        _record(unit, organization_id, membership_id, before.user_id, profile, made_account=False)
    else:
        _update(unit, provider, before, profile)
    is_in = not is_out(before, unit.moment)
    if profile.active is False and is_in:
        end(unit, provider, membership_id)
    elif profile.active and not is_in:
        _bring_back(unit, provider, before)


def end(unit: UnitOfWork, provider: Provider, membership_id: str) -> None:
    """End a membership at once, with its sessions and tokens. Raises NotFound, LastOwner and Forbidden."""
    before = person(unit, provider.organization_id, membership_id, unit.moment)
    if before.role == "owner" and not members.has_other_owner(unit, before):
        raise LastOwner  # before the actor's role is compared, because this says more
    members.remove(unit, membership_id)


def remove(unit: UnitOfWork, provider: Provider, membership_id: str) -> None:
    """End a membership, and forget what the provider says of the person. Raises what :func:`end` raises."""
    require_role(unit, provider.organization_id, "admin")
    lock_members(unit, provider.organization_id)
    before = person(unit, provider.organization_id, membership_id, unit.moment)
    if not is_out(before, unit.moment):
        end(unit, provider, membership_id)
    parameters = {"organization": provider.organization_id, "member": membership_id}
    unit.rows(_LEAVE_GROUPS, parameters)
    gone = unit.row(_FORGET, parameters)
    if gone is not None:
        unit.publish(Change("delete", ProvisionedPerson, provider.organization_id, gone.id, None, gone._asdict()))


def _new_account(unit: UnitOfWork, provider: Provider, profile: Profile) -> str:
    """Make an account, and return its id. Raises AccountElsewhere."""
    if unit.is_retry:  # somebody has the address, whom this organization cannot see
        raise AccountElsewhere
    users.create(unit, provider.new_user, email=profile.email, name=profile.name)
    return provider.new_user


def _bring_back(unit: UnitOfWork, provider: Provider, before: Any) -> None:
    """Make somebody a member again, with the role that their groups give. Raises EndedByPeople and AccountElsewhere."""
    if not is_valid(before.expires_at, unit.moment):
        raise EndedByPeople
    if before.user_removed_at is not None:
        raise AccountElsewhere("The account was removed from the whole instance; its operator can bring it back.")
    role = roles_by_groups(unit, provider.organization_id, provider.roles, [before.id]).get(before.id, DEFAULT_ROLE)
    memberships.join(unit, before.organization_id, before.user_id, role, before.expires_at)


def _require_free_name(unit: UnitOfWork, organization_id: str, user_name: str, own: str | None) -> None:
    """Raise AlreadyMember if another person of the organization has a user name."""
    parameters = {"organization": organization_id, "folded": email_key(user_name)}
    for member_id in unit.scalars(_CALLED, parameters):
        if member_id != own:
            raise AlreadyMember(member_id)


def _record(
    unit: UnitOfWork, organization_id: str, membership_id: str, user_id: str, profile: Profile, *, made_account: bool
) -> None:
    row: dict[str, Any] = {
        "id": new_id(),
        "organization_id": organization_id,
        "user_id": user_id,
        "membership_id": membership_id,
        "user_name": profile.user_name,
        "external_id": profile.external_id,
        "details": _details(profile, {}),
        "made_account": made_account,
        "created_at": unit.moment,
        "changed_at": unit.moment,
    }
    ProvisionedPerson.derive(row)
    unit.rows(_CREATE, row)
    unit.publish(Change("create", ProvisionedPerson, organization_id, row["id"], row))


def _update(unit: UnitOfWork, provider: Provider, before: Any, profile: Profile) -> None:
    """Record what the provider says now, if it is not the same. Raises RelianceUnknown."""
    row = {column.name: getattr(before, f"provisioned_{column.name}") for column in _PERSON.c}
    after = row | {
        "user_name": profile.user_name,
        "external_id": profile.external_id,
        "details": _details(profile, before.provisioned_details),
    }
    if after == row:
        return
    after["changed_at"] = unit.moment
    ProvisionedPerson.derive(after)
    unit.rows(_CHANGE, {f"new_{name}": after[name] for name in _CHANGED} | {"person": row["id"]})
    unit.publish(Change("update", ProvisionedPerson, before.organization_id, row["id"], after, row))
    if row["made_account"] and profile.name != before.name and dict(profile.details) != _names_of(row["details"]):
        _rename(unit, provider, before.user_id, profile.name)


def _names_of(details: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in details.items() if name != _ACTIVE}


def _details(profile: Profile, before: Mapping[str, Any]) -> dict[str, Any]:
    """The names and addresses to record, and that the person is not active, where the provider says so."""
    active = before.get(_ACTIVE) if profile.active is None else profile.active
    return dict(profile.details) | ({_ACTIVE: False} if active is False else {})


def _rename(unit: UnitOfWork, provider: Provider, user_id: str, name: str) -> None:
    """Rename an account on which nobody else relies. Raises RelianceUnknown."""
    if user_id not in provider.is_alone:
        raise RelianceUnknown(user_id)
    if provider.is_alone[user_id]:
        users.rename(unit, user_id, name)


# --- Statements


def _alone(user_id: str, organization: str, *, source: str, number: str) -> str:
    return (
        f"SELECT {number and number + ','} account.id AS user_id"  # noqa: S608 - built from constants
        f" FROM {source and source + ' JOIN'} user_account AS account {source and f'ON account.id = {user_id}'}"
        f" WHERE account.id = {user_id} AND account.removed_at IS NULL"
        " AND NOT EXISTS (SELECT 1 FROM operator WHERE operator.user_id = account.id)"
        " AND NOT EXISTS (SELECT 1 FROM password WHERE password.user_id = account.id)"
        " AND NOT EXISTS (SELECT 1 FROM passkey WHERE passkey.user_id = account.id)"
        " AND NOT EXISTS (SELECT 1 FROM membership WHERE membership.user_id = account.id"
        f" AND membership.organization_id <> {organization} AND membership.removed_at IS NULL)"
        f" ORDER BY {number and number + ','} account.id"
    )


# The account itself if no other organization and no credential of its own relies on it. An organization sees neither.
ALONE_LOOKUP = Lookup(
    name="normata_account_alone", arguments=("of_user", "organization"), columns={"user_id": text()}, select=_alone
)

_PERSON, _MEMBER, _USER = sql_table(ProvisionedPerson), sql_table(Membership), sql_table(User)
_GROUP_MEMBER = sql_table(ProvisionedGroupMember)
_ORGANIZATION = _MEMBER.c.organization_id == bindparam("organization")
EVERY: Select[Any] = (
    select(
        *_MEMBER.c,
        _USER.c.name,
        _USER.c.email,
        _USER.c.removed_at.label("user_removed_at"),
        *(column.label(f"provisioned_{column.name}") for column in _PERSON.c),
    )
    .join(_USER, _USER.c.id == _MEMBER.c.user_id)
    .outerjoin(
        _PERSON,
        (_PERSON.c.membership_id == _MEMBER.c.id) & (_PERSON.c.organization_id == _MEMBER.c.organization_id),
    )
    .where(_ORGANIZATION, _USER.c.organization_id.is_(None))
)
_ONE = EVERY.where(_MEMBER.c.id == bindparam("member"))
_OF_ADDRESS = EVERY.where(_USER.c.email_folded == bindparam("email"))
_CALLED = EVERY.with_only_columns(_MEMBER.c.id).where(
    (_PERSON.c.user_name_folded == bindparam("folded"))
    | (_PERSON.c.id.is_(None) & _MEMBER.c.removed_at.is_(None) & (_USER.c.email_folded == bindparam("folded")))
)
_CREATE = insert(_PERSON).values({column.name: bindparam(column.name, type_=column.type) for column in _PERSON.c})
_CHANGED = ("user_name", "user_name_folded", "external_id", "details", "changed_at")
_CHANGE = (
    update(_PERSON)
    .where(_PERSON.c.id == bindparam("person"))
    .values({name: bindparam(f"new_{name}", type_=_PERSON.c[name].type) for name in _CHANGED})
)
_FORGET = (
    delete(_PERSON)
    .where(_PERSON.c.organization_id == bindparam("organization"), _PERSON.c.membership_id == bindparam("member"))
    .returning(*_PERSON.c)
)
_LEAVE_GROUPS = delete(_GROUP_MEMBER).where(
    _GROUP_MEMBER.c.organization_id == bindparam("organization"), _GROUP_MEMBER.c.membership_id == bindparam("member")
)
