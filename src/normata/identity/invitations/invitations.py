"""Invitations, by which people become members.

An invitation is sent to an email address, with a secret in a link. A person who opens the link within seven days
becomes a member, once. They need nothing but the link. So it is looked up without row-level security, and accepted in
the scope of its organization and of the one user whom it makes a member.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar, NamedTuple

from pydantic.alias_generators import to_camel
from sqlalchemy import bindparam, insert, select, update

from normata.core.changes.unit_of_work import Change, UnitOfWork, insert_of, update_of
from normata.core.db.database import Database
from normata.core.db.lookup import Lookup
from normata.core.db.transaction import NO_ORGANIZATION, TenantScope, Transaction
from normata.core.db.types import UtcTimestamp, format_timestamp, now, text
from normata.core.http.roles import Role
from normata.core.schema.addresses import email_key
from normata.core.schema.paging import PageQuery, envelope, fetch_page
from normata.core.schema.table import new_id, sql_table
from normata.errors import AlreadyMember, InvitationClosed, NotFound
from normata.identity import memberships, users
from normata.identity.authority import lock_members, require_role
from normata.identity.model import Invitation, Membership, Organization, User
from normata.identity.secrets import digest_of, is_secret, new_secret

LIFETIME = timedelta(days=7)
PATH = "/sign-in/invitation/"

INVITING_WRITES = (insert_of(Invitation), update_of(Invitation, "revoked_at"))
REVOKING_WRITES = (update_of(Invitation, "revoked_at"),)
ACCEPTING_WRITES = (
    update_of(Invitation, "accepted_at"),
    *users.CREATION_WRITES,
    *memberships.JOINING_WRITES,
)


class Invited(NamedTuple):
    """A new invitation, and the secret for its link."""

    invitation: Any
    secret: str


def link(public_url: str, secret: str) -> str:
    """The URL that a person opens. ``public_url`` is the setting, and never comes from a request."""
    return f"{public_url.rstrip('/')}{PATH}?secret={secret}"


# --- Inviting


def invite(
    unit: UnitOfWork, organization_id: str, email: str, role: Role, membership_expires_at: str | None = None
) -> Invited:
    """Invite the owner of an email address to become a member. An earlier invitation of the address ends.

    Raises NotFound, InsufficientRole, Forbidden if the role is larger than the actor's own, FaultyInput, and
    AlreadyMember.
    """
    require_role(unit, organization_id, "admin", role)
    memberships.require_end(unit, role, membership_expires_at)
    return offer(unit, organization_id, email, role, membership_expires_at)


def offer(
    unit: UnitOfWork, organization_id: str, email: str, role: Role, membership_expires_at: str | None = None
) -> Invited:
    """Like :func:`invite`, whatever the actor's role: for the owner of an organization that an operator creates."""
    lock_members(unit, organization_id)
    if unit.scalar(_IS_REMOVED, {"organization": organization_id}):
        raise NotFound("The organization was removed.")
    key = email_key(email)
    parameters = {"organization": organization_id, "email": key}
    member = unit.scalar(_MEMBER_WITH, parameters | {"moment": unit.moment})
    if member is not None:
        raise AlreadyMember(member)
    for older in unit.rows(_OPEN_OF, parameters):
        _end(unit, older)
    secret = new_secret()
    row: dict[str, Any] = {
        "id": new_id(),
        "organization_id": organization_id,
        "email": email,
        "email_folded": key,
        "role": role,
        "created_at": unit.moment,
        "created_by": unit.actor.user_id,
        "expires_at": format_timestamp(datetime.fromisoformat(unit.moment) + LIFETIME),
        "accepted_at": None,
        "revoked_at": None,
        "membership_expires_at": membership_expires_at,
    }
    unit.rows(_CREATE, row | {"digest": digest_of(secret)})
    unit.publish(Change("create", Invitation, organization_id, row["id"], row))
    return Invited(unit.row(_ONE, {"invitation": row["id"]}), secret)


def revoke(unit: UnitOfWork, invitation_id: str) -> Any:
    """End an invitation, and return it. Repeating it is harmless.

    Raises NotFound, InsufficientRole and InvitationClosed.
    """
    found = unit.row(_ONE, {"invitation": invitation_id})
    if found is None:
        raise NotFound
    require_role(unit, found.organization_id, "admin")
    lock_members(unit, found.organization_id)
    found = unit.row(_ONE, {"invitation": invitation_id})
    if found is None or found.accepted_at is not None:
        raise InvitationClosed
    if found.revoked_at is None:
        _end(unit, found)
    return unit.row(_ONE, {"invitation": invitation_id})


def revoke_of_address(unit: UnitOfWork, email: str) -> Sequence[str]:
    """End all open invitations to an address, of all organizations, and return their ids. For commands."""
    found = unit.rows(_OPEN_OF_ADDRESS, {"email": email_key(email)})
    for one in found:
        _end(unit, one)
    return [one.id for one in found]


def revoke_of_inviter(unit: UnitOfWork, organization_id: str, user_id: str) -> None:
    """End all open invitations to an organization that a user has made."""
    for one in unit.rows(_OPEN_OF_INVITER, {"organization": organization_id, "user": user_id}):
        _end(unit, one)


def _end(unit: UnitOfWork, found: Any) -> None:
    unit.rows(_REVOKE, {"invitation": found.id, "moment": unit.moment})
    row = found._asdict()
    unit.publish(Change("revoke", Invitation, found.organization_id, found.id, row | {"revoked_at": unit.moment}, row))


class InvitationQuery(PageQuery):
    """The query of the list of invitations."""

    email: users.Addresses | None = None

    repeated: ClassVar[tuple[str, ...]] = ("email",)


def list_invitations(transaction: Transaction, query: InvitationQuery) -> dict[str, Any]:
    """A page of an organization's invitations that are open, newest first."""
    statement = select(*_SHOWN).where(
        _TABLE.c.organization_id == query.organization_id,
        _IS_OPEN,
        _TABLE.c.expires_at > bindparam("moment", type_=_TABLE.c.expires_at.type),
    )
    if query.email:
        statement = statement.where(_TABLE.c.email_folded.in_(query.email))
    order = [_TABLE.c.created_at.desc(), _TABLE.c.id.desc()]
    found = fetch_page(transaction, statement, order, query, {"moment": now()})
    return envelope([as_wire(row) for row in found.rows], found, query)


def one_invitation(transaction: Transaction, organization_id: str, invitation_id: str) -> dict[str, Any]:
    """An invitation of an organization, open or not. Raises NotFound."""
    row = transaction.row(_ONE, {"invitation": invitation_id})
    if row is None or row.organization_id != organization_id:
        raise NotFound
    return as_wire(row)


def as_wire(row: Any) -> dict[str, Any]:
    """An invitation in wire form: without its secret and the digest."""
    return {to_camel(column.name): getattr(row, column.name) for column in _SHOWN}


# --- Accepting


def _lookup(name: str, column: str) -> Lookup:
    """The lookup of open invitations whose ``column`` is the argument, with their users, if there are any."""

    def question(value: str, *, source: str, number: str) -> str:
        first = number and f"{number},"
        return (
            f"SELECT {first} invitation.id, invitation.organization_id, organization.name AS organization_name,"  # noqa: S608 - built from constants
            " invitation.email, invitation.role, invitation.expires_at, account.id AS user_id,"
            " account.name AS user_name, account.removed_at AS user_removed_at"
            f" FROM {source and source + ' JOIN'} invitation {source and f'ON invitation.{column} = {value}'}"
            " JOIN organization ON organization.id = invitation.organization_id"
            " LEFT JOIN user_account AS account ON account.email_folded = invitation.email_folded"
            f" WHERE invitation.{column} = {value} AND invitation.accepted_at IS NULL"
            " AND invitation.revoked_at IS NULL AND organization.removed_at IS NULL"
            f" ORDER BY {first} invitation.created_at, invitation.id"
        )

    columns = (
        *("id", "organization_id", "organization_name", "email", "role"),
        *("expires_at", "user_id", "user_name", "user_removed_at"),
    )
    return Lookup(
        name=name,
        arguments=("wanted",),
        columns={column: UtcTimestamp() if column.endswith("_at") else text() for column in columns},
        select=question,
    )


# By the digest of the secret, or by an address in the form of `email_key`, for a person who has proved it.
INVITATION_LOOKUP = _lookup("normata_invitation", "digest")
INVITATIONS_OF_ADDRESS = _lookup("normata_invitations_of_address", "email_folded")


async def find_open(database: Database, secret: str) -> Any | None:
    """The open invitation with this secret; null if there is none, or it has expired.

    Its columns are those of :data:`INVITATION_LOOKUP`. Raises Unavailable.
    """
    if not is_secret(secret):
        return None
    found = await database.look_up(INVITATION_LOOKUP, digest_of(secret))
    return next((row for row in found if row.expires_at > now()), None)


def reach_of(found: Any) -> TenantScope:
    """The tenant scope for accepting a found invitation: its organization, and its user.

    If there is no user yet, the scope has the id of the one that will be created.
    """
    organization_id = str(found.organization_id)
    return TenantScope(
        readable=(organization_id,),
        writable=(NO_ORGANIZATION, organization_id),
        users=(str(found.user_id or new_id()),),
    )


def accept(unit: UnitOfWork, found: Any, name: str = "", *, user_id: str | None = None) -> str:
    """Make the user of a found invitation a member, and return the user's id.

    If there is no user yet, it will be ``user_id``, by default the only one in the scope.

    The unit of work has the scope of :func:`reach_of` and may write :data:`ACCEPTING_WRITES`. ``name`` is that of a new
    user, by default the address. A former member becomes one again. Raises InvitationClosed.
    """
    row = unit.row(_ACCEPT, {"invitation": found.id, "moment": unit.moment})
    if row is None:
        raise InvitationClosed
    lock_members(unit, row.organization_id)
    alone = unit.scope.users[0] if unit.scope is not None else new_id()
    user_id = str(found.user_id or user_id or alone)
    if found.user_id is None:
        users.create(unit, user_id, email=row.email, name=name)
    else:
        users.bring_back(unit, user_id)
    memberships.join(unit, row.organization_id, user_id, row.role, row.membership_expires_at)
    after = row._asdict()
    unit.publish(Change("accept", Invitation, row.organization_id, row.id, after, after | {"accepted_at": None}))
    return user_id


_TABLE, _MEMBER, _USER = sql_table(Invitation), sql_table(Membership), sql_table(User)
_ORGANIZATION = sql_table(Organization)
_SHOWN = [
    column for column in _TABLE.c if column.name in (Invitation.readable or ()) and not column.info.get("derived")
]
_IS_OPEN = _TABLE.c.accepted_at.is_(None) & _TABLE.c.revoked_at.is_(None)

_ONE = select(*_SHOWN).where(_TABLE.c.id == bindparam("invitation"))
_OPEN_OF = select(*_SHOWN).where(
    _TABLE.c.organization_id == bindparam("organization"), _TABLE.c.email_folded == bindparam("email"), _IS_OPEN
)
_OPEN_OF_INVITER = select(*_SHOWN).where(
    _TABLE.c.organization_id == bindparam("organization"), _TABLE.c.created_by == bindparam("user"), _IS_OPEN
)
_OPEN_OF_ADDRESS = select(*_SHOWN).where(_TABLE.c.email_folded == bindparam("email"), _IS_OPEN).order_by(_TABLE.c.id)
_MEMBER_WITH = (
    select(_MEMBER.c.id)
    .join(_USER, _USER.c.id == _MEMBER.c.user_id)
    .where(
        _MEMBER.c.organization_id == bindparam("organization"),
        memberships.is_in(bindparam("moment", type_=_MEMBER.c.expires_at.type)),
        _USER.c.email_folded == bindparam("email"),
    )
)
_IS_REMOVED = select(_ORGANIZATION.c.id).where(
    _ORGANIZATION.c.id == bindparam("organization"), _ORGANIZATION.c.removed_at.is_not(None)
)
_CREATE = insert(_TABLE).values({column.name: bindparam(column.name, type_=column.type) for column in _TABLE.c})
_REVOKE = (
    update(_TABLE)
    .where(_TABLE.c.id == bindparam("invitation"))
    .values(revoked_at=bindparam("moment", type_=_TABLE.c.revoked_at.type))
)
_ACCEPT = (
    update(_TABLE)
    .where(
        _TABLE.c.id == bindparam("invitation"),
        _IS_OPEN,
        _TABLE.c.expires_at > bindparam("moment", type_=_TABLE.c.expires_at.type),
        _TABLE.c.membership_expires_at.is_(None)
        | (_TABLE.c.membership_expires_at > bindparam("moment", type_=_TABLE.c.expires_at.type)),
    )
    .values(accepted_at=bindparam("moment", type_=_TABLE.c.accepted_at.type))
    .returning(*_SHOWN)
)
