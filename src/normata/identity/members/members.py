"""The members of an organization: who they are, their roles, and how they leave.

A membership stays when its member is removed, because records name it. From then on it allows nothing, in any process:
every request looks up the memberships.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field
from sqlalchemy import BindParameter, Select, bindparam, exists, select, update

from normata.core.changes.unit_of_work import Change, UnitOfWork, update_of
from normata.core.db.transaction import Transaction
from normata.core.http.roles import Role, role_suffices
from normata.core.schema.fields import Timestamp
from normata.core.schema.paging import PageQuery, envelope, fetch_page
from normata.core.schema.table import sql_table
from normata.core.schema.wire import Wire
from normata.errors import Forbidden, LastOwner, MemberRemoved, NotFound
from normata.identity import users
from normata.identity.authority import lock_members, require_role
from normata.identity.invitations import invitations
from normata.identity.memberships import is_out, require_end
from normata.identity.model import AccessToken, Membership, Organization, User
from normata.identity.provisioning_model import ProvisionedPerson
from normata.identity.sign_in_model import Session

CHANGE_WRITES = (update_of(Membership, "role", "expires_at"), *invitations.REVOKING_WRITES)
REMOVAL_WRITES = (
    update_of(Membership, "removed_at"),
    update_of(AccessToken, "revoked_at"),
    update_of(Session, "ended_at"),
    update_of(User, "removed_at"),
    *invitations.REVOKING_WRITES,
)


class Member(Wire):
    """A member of an organization: a person, or a service account."""

    id: str = Field(description="The id of the membership. Records name their owners and assignees by it.")
    organization_id: str
    user_id: str = Field(description="The id of the user.")
    name: str
    email: str | None = Field(description="The email address; null for a service account.")
    role: Role = Field(description="What the member may do in the organization.")
    is_service_account: bool = Field(description="Whether it is a program rather than a person.")
    is_provisioned: bool = Field(description="Whether the organization's identity provider maintains the member.")
    removed_at: Timestamp | None = Field(description="When the member was removed; null for those who are members.")
    expires_at: Timestamp | None = Field(
        description="When the membership ends, or has ended; null if it has no end. The member is removed then."
    )


class MemberQuery(PageQuery):
    """The query of the list of members."""

    removed: Annotated[
        Literal["exclude", "only", "include"],
        Field(description="Whether members who were removed are listed: not at all, alone, or along with the others."),
    ] = "exclude"
    email: users.Addresses | None = None

    repeated: ClassVar[tuple[str, ...]] = ("email",)


# --- Reading


def list_members(transaction: Transaction, query: MemberQuery) -> dict[str, Any]:
    """A page of an organization's members, by their names; in two statements."""
    statement = _EVERY.where(_MEMBER.c.organization_id == query.organization_id)
    if query.removed != "include":
        is_removed = _MEMBER.c.removed_at.is_not(None)
        statement = statement.where(is_removed if query.removed == "only" else ~is_removed)
    if query.email:
        statement = statement.where(_USER.c.email_folded.in_(query.email))
    found = fetch_page(transaction, statement, [_USER.c.name, _MEMBER.c.id], query)
    return envelope([as_wire(row) for row in found.rows], found, query)


def every_member(transaction: Transaction, organization_id: str) -> Sequence[Any]:
    """The rows of all members of an organization, removed ones included, by name. For commands."""
    return transaction.rows(_OF_ORGANIZATION, {"organization": organization_id})


def one_member(transaction: Transaction, organization_id: str, member_id: str) -> dict[str, Any]:
    """A member of an organization, in wire form. Raises NotFound."""
    row = transaction.row(_ONE, {"member": member_id})
    if row is None or row.organization_id != organization_id:
        raise NotFound
    return as_wire(row)


def as_wire(row: Any) -> dict[str, Any]:
    """A member in wire form."""
    return {
        "id": row.id,
        "organizationId": row.organization_id,
        "userId": row.user_id,
        "name": row.name,
        "email": row.email,
        "role": row.role,
        "isServiceAccount": row.account_of is not None,
        "isProvisioned": row.is_provisioned,
        "removedAt": row.removed_at,
        "expiresAt": row.expires_at,
    }


def member_named(transaction: Transaction, member_id: str) -> Any | None:
    """The row of a member, removed or not; null if there is none."""
    return transaction.row(_ONE, {"member": member_id})


def member_of(transaction: Transaction, organization_id: str, user_id: str) -> Any | None:
    """The row of a user's membership of an organization, removed or not; null if there is none."""
    return transaction.row(_OF_USER, {"organization": organization_id, "user": user_id})


def has_other_owner(transaction: Transaction, member: Any) -> bool:
    """Whether the organization of a member has an owner besides them."""
    others = {"organization": member.organization_id, "member": member.id}
    return transaction.row(_OTHER_OWNER, others) is not None


# --- Changing


def found(unit: UnitOfWork, member_id: str) -> Any:
    """The row of a member, locked until the transaction ends. Raises NotFound and InsufficientRole."""
    row = unit.row(_ONE, {"member": member_id})
    if row is None:
        raise NotFound
    unit.require_reach(row.organization_id)
    lock_members(unit, row.organization_id)
    # The row is locked now, so read it again.
    return unit.row(_ONE, {"member": member_id})


def change(
    unit: UnitOfWork,
    member_id: str,
    changed: Mapping[str, Any],
    require_current: Callable[[Any], None] = lambda _: None,
) -> Any:
    """Give a member another ``role``, another ``expires_at``, or both, and return the row of the member.

    Raises NotFound, InsufficientRole, Forbidden if either role is larger than the actor's own, LastOwner,
    MemberRemoved, and FaultyInput. With a smaller role, the invitations that they have made end, because these may have
    a larger role. ``require_current`` gets the member in wire form, before the change.
    """
    before = found(unit, member_id)
    role = changed.get("role") or before.role
    require_role(unit, before.organization_id, "admin", before.role, role)
    if is_out(before, unit.moment):
        raise MemberRemoved
    if role == "owner" and before.account_of is not None:
        raise Forbidden("A service account cannot be an owner.")
    if before.role == "owner" != role:
        _require_another_owner(unit, before)
    require_current(as_wire(before))
    after = {"role": role, "expires_at": changed.get("expires_at", before.expires_at)}
    if after != {"role": before.role, "expires_at": before.expires_at}:
        require_end(unit, role, after["expires_at"])
        unit.rows(_CHANGE, {"member": member_id, "new_role": role, "new_end": after["expires_at"]})
        if not role_suffices(role, before.role):
            invitations.revoke_of_inviter(unit, before.organization_id, before.user_id)
        _publish(unit, "update", before, **after)
    return unit.row(_ONE, {"member": member_id})


def remove(unit: UnitOfWork, member_id: str) -> Any:
    """End a membership, and return the row of the member. Repeating it is harmless.

    The user's sessions end, and so do their tokens that are narrowed to the organization; their other tokens do not
    reach the organization any more. Invitations that they have made end: they know the links, and could come back with
    them. A service account ends completely. Everybody may leave. Removing others needs the role of an admin, and one as
    large as theirs. Raises NotFound, InsufficientRole, Forbidden and LastOwner.
    """
    before = found(unit, member_id)
    if before.user_id != unit.actor.user_id:
        require_role(unit, before.organization_id, "admin", before.role)
    if before.removed_at is not None:
        _keep_out(unit, before)
        return before
    if before.role == "owner":
        _require_another_owner(unit, before)
    parameters = {"organization": before.organization_id, "user": before.user_id, "moment": unit.moment}
    end(unit, before, "remove")
    sessions = unit.scalars(_END_SESSIONS, parameters)
    if sessions:
        # The organization must not learn where the person was signed in.
        unit.publish(Change("end", Session, before.organization_id, counts={"ended": len(sessions)}))
    return unit.row(_ONE, {"member": member_id})


def end(unit: UnitOfWork, before: Any, action: str) -> None:
    """End a membership with what depends on it, but for the sessions: they reach the user's other organizations."""
    parameters = {"organization": before.organization_id, "user": before.user_id, "moment": unit.moment}
    unit.rows(_REMOVE, {"member": before.id, "moment": unit.moment})
    _publish(unit, action, before, removed_at=unit.moment)
    for token in unit.rows(_REVOKE_TOKENS, parameters):
        row = token._asdict()
        unit.publish(Change("revoke", AccessToken, before.organization_id, token.id, row, row | {"revoked_at": None}))
    invitations.revoke_of_inviter(unit, before.organization_id, before.user_id)
    if before.account_of is not None:
        account = {"id": before.user_id, "organization_id": before.account_of, "removed_at": None}
        unit.rows(_REMOVE_USER, parameters)
        after = account | {"removed_at": unit.moment}
        unit.publish(Change("remove", User, before.account_of, before.user_id, after, account))


def _keep_out(unit: UnitOfWork, member: Any) -> None:
    """Mark a membership that ended with its organization as removed, so that a restore does not bring it back."""
    if unit.rows(_KEEP_OUT, {"member": member.id, "moment": unit.moment}):
        _publish(unit, "remove", member, removed_at=unit.moment)


def _require_another_owner(unit: UnitOfWork, member: Any) -> None:
    if not has_other_owner(unit, member):
        raise LastOwner


def _publish(unit: UnitOfWork, action: str, member: Any, **changed: Any) -> None:
    before = {column.name: getattr(member, column.name) for column in _MEMBER.c}
    unit.publish(Change(action, Membership, member.organization_id, member.id, before | changed, before))


_MEMBER, _USER, _TOKEN, _SESSION = (sql_table(one) for one in (Membership, User, AccessToken, Session))
_PERSON = sql_table(ProvisionedPerson)
_ORGANIZATION = sql_table(Organization)
_MOMENT = bindparam("moment", type_=_MEMBER.c.removed_at.type)
_IS_USERS: BindParameter[str] = bindparam("user")

_IS_PROVISIONED = exists().where(
    _PERSON.c.organization_id == _MEMBER.c.organization_id, _PERSON.c.membership_id == _MEMBER.c.id
)
_EVERY: Select[Any] = select(
    *_MEMBER.c,
    _USER.c.name,
    _USER.c.email,
    _USER.c.organization_id.label("account_of"),
    _IS_PROVISIONED.label("is_provisioned"),
).join(_USER, _USER.c.id == _MEMBER.c.user_id)
_ONE = _EVERY.where(_MEMBER.c.id == bindparam("member"))
_OF_USER = _EVERY.where(_MEMBER.c.organization_id == bindparam("organization"), _MEMBER.c.user_id == _IS_USERS)
_OF_ORGANIZATION = _EVERY.where(_MEMBER.c.organization_id == bindparam("organization")).order_by(
    _USER.c.name, _MEMBER.c.id
)
_OTHER_OWNER = (
    select(_MEMBER.c.id)
    .join(_USER, _USER.c.id == _MEMBER.c.user_id)
    .where(
        _USER.c.removed_at.is_(None),
        _MEMBER.c.organization_id == bindparam("organization"),
        _MEMBER.c.role == "owner",
        _MEMBER.c.removed_at.is_(None),
        _MEMBER.c.id != bindparam("member"),
    )
    .limit(1)
)
_CHANGE = (
    update(_MEMBER)
    .where(_MEMBER.c.id == bindparam("member"))
    .values(role=bindparam("new_role"), expires_at=bindparam("new_end", type_=_MEMBER.c.expires_at.type))
)
_REMOVE = update(_MEMBER).where(_MEMBER.c.id == bindparam("member")).values(removed_at=_MOMENT)
_KEEP_OUT = (
    update(_MEMBER)
    .where(
        _MEMBER.c.id == bindparam("member"),
        _MEMBER.c.removed_at
        == select(_ORGANIZATION.c.removed_at).where(_ORGANIZATION.c.id == _MEMBER.c.organization_id).scalar_subquery(),
    )
    .values(removed_at=_MOMENT)
    .returning(_MEMBER.c.id)
)
_REVOKE_TOKENS = (
    update(_TOKEN)
    .where(
        _TOKEN.c.user_id == _IS_USERS,
        _TOKEN.c.organization_id == bindparam("organization"),
        _TOKEN.c.revoked_at.is_(None),
    )
    .values(revoked_at=_MOMENT)
    .returning(*(column for column in _TOKEN.c if column.name in (AccessToken.readable or ())))
)
_END_SESSIONS = (
    update(_SESSION)
    .where(_SESSION.c.user_id == _IS_USERS, _SESSION.c.ended_at.is_(None))
    .values(ended_at=_MOMENT)
    .returning(_SESSION.c.id)
)
_REMOVE_USER = update(_USER).where(_USER.c.id == _IS_USERS).values(removed_at=_MOMENT)
