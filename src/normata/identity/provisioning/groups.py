"""The groups that an organization's identity provider maintains, and the roles of their members.

A change of groups sets the role of a member who had the one that their groups gave before. Whoever had another one has
it from people: it stays, unless a group now gives a larger one. The role of an owner stays in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from sqlalchemy import bindparam, delete, insert, select, update

from normata.core.changes.unit_of_work import Change, UnitOfWork, delete_of, insert_of, update_of
from normata.core.db.transaction import Transaction
from normata.core.http.roles import Role, role_suffices
from normata.core.schema.table import new_id, sql_table
from normata.errors import DomainError, NotFound
from normata.identity.authority import lock_members, require_role
from normata.identity.invitations import invitations
from normata.identity.members import members
from normata.identity.memberships import is_out
from normata.identity.model import Membership, User
from normata.identity.provisioning.people import Provider
from normata.identity.provisioning.roles import DEFAULT_ROLE, Among, largest, role_of_group, roles_by_groups
from normata.identity.provisioning_model import ProvisionedGroup, ProvisionedGroupMember

GROUP_WRITES = (
    insert_of(ProvisionedGroup),
    update_of(ProvisionedGroup, "name", "external_id", "changed_at"),
    delete_of(ProvisionedGroup),
    insert_of(ProvisionedGroupMember),
    delete_of(ProvisionedGroupMember),
    *members.CHANGE_WRITES,
)


class NoSuchPerson(DomainError):
    """A member of a group is no person of the organization."""

    message = "A member of the group is no person of this organization."


# --- Reading


def group(transaction: Transaction, organization_id: str, group_id: str) -> Any:
    """The row of a group. Raises NotFound."""
    row = transaction.row(_ONE, {"organization": organization_id, "group": group_id})
    if row is None:
        raise NotFound
    return row


def members_of(transaction: Transaction, organization_id: str, group_ids: Sequence[str]) -> Sequence[Any]:
    """The members of some groups, in a fixed order."""
    return _MEMBERS.rows(transaction, group_ids, organization=organization_id)


def groups_of(transaction: Transaction, organization_id: str, member_ids: Sequence[str]) -> Sequence[Any]:
    """The groups of some people, in a fixed order, each with the id of the membership."""
    return _OF_PEOPLE.rows(transaction, member_ids, organization=organization_id)


# --- Changing


def create(
    unit: UnitOfWork, provider: Provider, name: str, external_id: str | None, member_ids: Collection[str]
) -> str:
    """Create a group, and return its id. Raises NoSuchPerson and InsufficientRole."""
    _begin(unit, provider)
    row = {
        "id": new_id(),
        "organization_id": provider.organization_id,
        "name": name,
        "external_id": external_id,
        "created_at": unit.moment,
        "changed_at": unit.moment,
    }

    def work() -> None:
        unit.rows(_CREATE, row)
        _add(unit, provider, str(row["id"]), list(member_ids))
        counts = {"added": len(member_ids)} if member_ids else None
        unit.publish(Change("create", ProvisionedGroup, provider.organization_id, row["id"], row, counts=counts))

    _with_roles(unit, provider, list(member_ids), work)
    return str(row["id"])


def change(
    unit: UnitOfWork,
    provider: Provider,
    group_id: str,
    name: str,
    external_id: str | None,
    *,
    added: Collection[str] = (),
    removed: Collection[str] = (),
) -> None:
    """Rename a group, and change its members. What it is already writes nothing.

    Those who are ``added`` may be in it, and those who are ``removed`` need not be. Raises NotFound, NoSuchPerson and
    InsufficientRole.
    """
    _begin(unit, provider)
    before = group(unit, provider.organization_id, group_id)
    had = role_of_group(provider.roles, before.name, before.external_id)
    has = role_of_group(provider.roles, name, external_id)
    present = _present(unit, provider, group_id, list({*added, *removed}))
    new = sorted(set(added) - present - set(removed))
    gone = sorted(set(removed) & present)
    is_renamed = (name, external_id) != (before.name, before.external_id)
    if not (is_renamed or new or gone):
        return
    affected = [*new, *gone]
    if had != has:
        affected += unit.scalars(_MEMBER_IDS, {"organization": provider.organization_id, "group": group_id})

    def work() -> None:
        row = before._asdict()
        after = row | {"name": name, "external_id": external_id, "changed_at": unit.moment}
        unit.rows(_CHANGE, {"group": group_id, "new_name": name, "new_id": external_id, "moment": unit.moment})
        _add(unit, provider, group_id, new)
        if gone:
            unit.execute_many(_REMOVE, [{"group": group_id, "member": one} for one in gone])
        counts = {name: len(ids) for name, ids in (("added", new), ("removed", gone)) if ids} or None
        unit.publish(Change("update", ProvisionedGroup, provider.organization_id, group_id, after, row, counts=counts))

    if had is None and has is None:
        work()
    else:
        _with_roles(unit, provider, affected, work)


def remove(unit: UnitOfWork, provider: Provider, group_id: str) -> None:
    """Delete a group; its members lose the role that it alone gives. Raises NotFound and InsufficientRole."""
    _begin(unit, provider)
    before = group(unit, provider.organization_id, group_id)
    affected = unit.scalars(_MEMBER_IDS, {"organization": provider.organization_id, "group": group_id})

    def work() -> None:
        unit.rows(_EMPTY, {"group": group_id})
        unit.rows(_DELETE, {"group": group_id})
        row = before._asdict()
        unit.publish(Change("delete", ProvisionedGroup, provider.organization_id, group_id, None, row))

    _with_roles(unit, provider, affected, work)


def _begin(unit: UnitOfWork, provider: Provider) -> None:
    require_role(unit, provider.organization_id, "admin")
    lock_members(unit, provider.organization_id)


def _present(unit: UnitOfWork, provider: Provider, group_id: str, member_ids: Collection[str]) -> set[str]:
    rows = _IN_GROUP.rows(unit, member_ids, organization=provider.organization_id, group=group_id)
    return {row.membership_id for row in rows}


def _add(unit: UnitOfWork, provider: Provider, group_id: str, member_ids: Sequence[str]) -> None:
    """Add people who are not in the group yet. Raises NoSuchPerson."""
    if not member_ids:
        return
    if len(_PEOPLE.rows(unit, member_ids, organization=provider.organization_id)) != len(member_ids):
        raise NoSuchPerson
    rows = [
        {"organization_id": provider.organization_id, "group_id": group_id, "membership_id": one} for one in member_ids
    ]
    unit.execute_many(_ADD, rows)


def _with_roles(unit: UnitOfWork, provider: Provider, affected: Sequence[str], work: Callable[[], None]) -> None:
    """Do ``work``, and give each member who is ``affected`` the role that their groups give since."""
    organization_id, roles = provider.organization_id, provider.roles
    before = roles_by_groups(unit, organization_id, roles, affected)
    work()
    after = roles_by_groups(unit, organization_id, roles, affected)
    changed = sorted({one for one in affected if before.get(one) != after.get(one)})
    rows = _ROWS.rows(unit, changed, organization=organization_id)
    changes = []
    for row in rows:
        new = _next_role(row.role, before.get(row.id, DEFAULT_ROLE), after.get(row.id, DEFAULT_ROLE))
        if new != row.role and not is_out(row, unit.moment):
            changes.append((row, new))
    if not changes:
        return
    unit.execute_many(_CHANGE_ROLE, [{"member": row.id, "new_role": new} for row, new in changes])
    for row, new in changes:
        if row.role == "admin" and not role_suffices(new, row.role):
            invitations.revoke_of_inviter(unit, organization_id, row.user_id)
        values = row._asdict()
        unit.publish(Change("update", Membership, organization_id, row.id, values | {"role": new}, values))


def _next_role(current: Role, before: Role, after: Role) -> Role:
    if current == "owner":
        return current
    return after if current == before else largest([current, after]) or current


_GROUP, _GROUP_MEMBER = sql_table(ProvisionedGroup), sql_table(ProvisionedGroupMember)
_MEMBER, _USER = sql_table(Membership), sql_table(User)
_IS_OURS = _GROUP_MEMBER.c.organization_id == bindparam("organization")
_OF_GROUP = _GROUP_MEMBER.c.group_id == bindparam("group")
EVERY: Any = select(*_GROUP.c).where(_GROUP.c.organization_id == bindparam("organization"))
_ONE = EVERY.where(_GROUP.c.id == bindparam("group"))
_MEMBERS = Among(
    select(_GROUP_MEMBER.c.group_id, _GROUP_MEMBER.c.membership_id)
    .where(_IS_OURS)
    .order_by(_GROUP_MEMBER.c.group_id, _GROUP_MEMBER.c.membership_id),
    _GROUP_MEMBER.c.group_id,
)
_OF_PEOPLE = Among(
    select(_GROUP_MEMBER.c.membership_id, _GROUP.c.id, _GROUP.c.name)
    .join(_GROUP, _GROUP.c.id == _GROUP_MEMBER.c.group_id)
    .where(_IS_OURS)
    .order_by(_GROUP_MEMBER.c.membership_id, _GROUP.c.id),
    _GROUP_MEMBER.c.membership_id,
)
_MEMBER_IDS = select(_GROUP_MEMBER.c.membership_id).where(_IS_OURS, _OF_GROUP)
_IN_GROUP = Among(_MEMBER_IDS, _GROUP_MEMBER.c.membership_id)
_PEOPLE = Among(
    select(_MEMBER.c.id)
    .join(_USER, _USER.c.id == _MEMBER.c.user_id)
    .where(_MEMBER.c.organization_id == bindparam("organization"), _USER.c.organization_id.is_(None)),
    _MEMBER.c.id,
)
_ROWS = Among(select(*_MEMBER.c).where(_MEMBER.c.organization_id == bindparam("organization")), _MEMBER.c.id)
_CREATE = insert(_GROUP).values({column.name: bindparam(column.name, type_=column.type) for column in _GROUP.c})
_CHANGE = (
    update(_GROUP)
    .where(_GROUP.c.id == bindparam("group"))
    .values(
        name=bindparam("new_name"),
        external_id=bindparam("new_id"),
        changed_at=bindparam("moment", type_=_GROUP.c.changed_at.type),
    )
)
_DELETE = delete(_GROUP).where(_GROUP.c.id == bindparam("group"))
_ADD = insert(_GROUP_MEMBER).values({column.name: bindparam(column.name) for column in _GROUP_MEMBER.c})
_REMOVE = delete(_GROUP_MEMBER).where(_OF_GROUP, _GROUP_MEMBER.c.membership_id == bindparam("member"))
_EMPTY = delete(_GROUP_MEMBER).where(_OF_GROUP)
_CHANGE_ROLE = (
    update(_MEMBER)
    .where(_MEMBER.c.id == bindparam("member"))
    .values(role=bindparam("new_role", type_=_MEMBER.c.role.type))
)
