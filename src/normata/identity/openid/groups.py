"""Roles that members get from their groups at the provider.

The setting names pairs of an organization and a role. Only groups give such a role: members have it as long as they are
in a group that gives it. Roles that the setting does not name are given by people, and stay.

So does the end that an admin has set: groups neither move it, nor bring back a member who is out since then. A person
in groups that give several roles gets the largest; an auditor's is the largest after that of an editor.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from sqlalchemy import bindparam, func, or_, select, update

from normata.core.changes.unit_of_work import Change, UnitOfWork
from normata.core.db.database import Database
from normata.core.db.lookup import Lookup
from normata.core.db.transaction import Transaction
from normata.core.db.types import text
from normata.core.http.roles import ROLES, Role, role_suffices
from normata.core.schema.table import sql_table
from normata.identity.authority import lock_members
from normata.identity.invitations import invitations
from normata.identity.members import members
from normata.identity.memberships import JOINING_WRITES, is_valid, join
from normata.identity.model import Membership, Organization, User
from normata.identity.openid.configuration import Grant
from normata.identity.provisioning.people import is_active_at_provider
from normata.identity.provisioning.roles import DEFAULT_ROLE, USUAL_NAMES, roles_by_groups
from normata.identity.provisioning.roles import largest as _largest

GROUP_WRITES = (*JOINING_WRITES, *members.REMOVAL_WRITES)


class GroupRoles(NamedTuple):
    """The ``role`` that a person's groups give them in an organization, and all roles that groups give there.

    ``mapping`` has the role of each group by its name.
    """

    organization_id: str
    managed: frozenset[Role]
    role: Role | None
    mapping: Mapping[str, Role] = MappingProxyType({})


async def roles_of_groups(
    database: Database, grants: Sequence[Grant], groups: Collection[str]
) -> tuple[list[GroupRoles], list[str]]:
    """The roles that groups give in each organization of the setting; and the names that no organization has."""
    by_organization: dict[str, list[Grant]] = {}
    unknown = []
    for name in dict.fromkeys(grant.organization for grant in grants):
        # An id takes precedence over a slug with the same spelling.
        found = sorted(
            (row.organization_id for row in await database.look_up(ORGANIZATION_LOOKUP, name)),
            key=lambda organization_id: organization_id != name,
        )
        if not found:
            unknown.append(name)
            continue
        by_organization.setdefault(found[0], []).extend(grant for grant in grants if grant.organization == name)
    found_roles = [
        GroupRoles(
            organization_id,
            frozenset(grant.role for grant in named),
            _largest({grant.role for grant in named if grant.group in groups}),
            _mapping(named),
        )
        for organization_id, named in sorted(by_organization.items())
    ]
    return found_roles, unknown


def mapping_of(transaction: Transaction, organization_id: str, grants: Sequence[Grant]) -> Mapping[str, Role]:
    """The roles that groups give in an organization, by the names of the groups.

    Where the setting does not name the organization, these are :data:`USUAL_NAMES`.
    """
    slug = transaction.scalar(_SLUG, {"organization": organization_id}) if grants else None
    return _mapping([grant for grant in grants if grant.organization in (organization_id, slug)]) or USUAL_NAMES


def _mapping(grants: Sequence[Grant]) -> Mapping[str, Role]:
    return {grant.group: grant.role for grant in sorted(grants, key=lambda grant: ROLES.index(grant.role))}


def unknown_organizations(transaction: Transaction, grants: Sequence[Grant]) -> list[str]:
    """The names in the setting that no organization has. The transaction must see all organizations."""
    names = dict.fromkeys(grant.organization for grant in grants)
    return [name for name in names if transaction.scalar(_CALLED, {"name": name}) is None]


def next_role(group_roles: GroupRoles, current: Role | None) -> Role | None:
    """The new role of somebody with the role ``current`` (null: not a member); null if they are not a member."""
    by_hand = {current} if current is not None and current not in group_roles.managed else set()
    return _largest(by_hand | ({group_roles.role} if group_roles.role is not None else set()))


def apply_roles(unit: UnitOfWork, user_id: str, found_roles: Sequence[GroupRoles]) -> list[str]:
    """Give a user the roles of their groups.

    Returns the organizations that would lose their last owner: there the role stays. The user is the actor of ``unit``,
    which has all these organizations in its scope and may write GROUP_WRITES.
    """
    last_owner_of = []
    for group_roles in found_roles:  # in a fixed order, so that two sign-ins cannot deadlock
        organization_id = group_roles.organization_id
        lock_members(unit, organization_id)
        parameters = {"organization": organization_id, "user": user_id}
        member = unit.row(_MEMBER, parameters)
        if member is not None and not is_valid(member.expires_at, unit.moment):
            continue  # only people bring somebody back whose membership has ended
        current = member.role if member is not None and member.removed_at is None else None
        is_active = None if member is None else is_active_at_provider(unit, organization_id, member.id)
        if current is None and is_active is False:
            continue  # only people, and the provider over SCIM, bring back whom it has ended so
        role = next_role(group_roles if member is None else _with_provisioned(unit, group_roles, member.id), current)
        if current is not None and role is None and is_active:
            role = DEFAULT_ROLE  # the provider ends a membership over SCIM, and not by naming no group
        if member is None or current is None:
            if role is not None:
                join(unit, organization_id, user_id, role)
        elif current == "owner" != role and not unit.scalar(_OTHER_OWNERS, parameters):
            last_owner_of.append(organization_id)
        elif role is None:
            members.remove(unit, member.id)
        elif role != current:
            before = member._asdict()
            after = before | {"role": role} | ({"expires_at": None} if role == "owner" else {})
            unit.rows(_CHANGE, {"member": member.id, "new_role": role, "new_end": after["expires_at"]})
            if not role_suffices(role, current):
                invitations.revoke_of_inviter(unit, organization_id, user_id)
            unit.publish(Change("update", Membership, organization_id, member.id, after, before))
    return last_owner_of


def _with_provisioned(unit: UnitOfWork, group_roles: GroupRoles, member_id: str) -> GroupRoles:
    """The same with the groups in which a member is over SCIM: a provider need not name them at each sign-in."""
    found = roles_by_groups(unit, group_roles.organization_id, group_roles.mapping, [member_id])
    roles = [role for role in (group_roles.role, found.get(member_id)) if role is not None]
    return group_roles._replace(role=_largest(roles))


def _select(name: str, *, source: str, number: str) -> str:
    return (
        f"SELECT {number and number + ','} organization.id AS organization_id"  # noqa: S608 - built from constants
        f" FROM {source and source + ' JOIN'} organization"
        f" {source and f'ON organization.id = {name} OR organization.slug = {name}'}"
        f" WHERE (organization.id = {name} OR organization.slug = {name}) AND organization.removed_at IS NULL"
        f" ORDER BY {number and number + ','} organization.id"
    )


ORGANIZATION_LOOKUP = Lookup(
    name="normata_organization_lookup",
    arguments=("wanted",),
    columns={"organization_id": text()},
    select=_select,
)

_TABLE, _ORGANIZATION, _USER = sql_table(Membership), sql_table(Organization), sql_table(User)
_CALLED = select(_ORGANIZATION.c.id).where(
    or_(_ORGANIZATION.c.id == bindparam("name"), _ORGANIZATION.c.slug == bindparam("name")),
    _ORGANIZATION.c.removed_at.is_(None),
)
_SLUG = select(_ORGANIZATION.c.slug).where(_ORGANIZATION.c.id == bindparam("organization"))
_IS_THEIRS = _TABLE.c.organization_id == bindparam("organization")
_MEMBER = select(*_TABLE.c).where(_IS_THEIRS, _TABLE.c.user_id == bindparam("user"))
_OTHER_OWNERS = select(func.count(_TABLE.c.id)).where(
    _IS_THEIRS,
    _TABLE.c.user_id != bindparam("user"),
    _TABLE.c.role == "owner",
    _TABLE.c.removed_at.is_(None),
    _TABLE.c.user_id.in_(select(_USER.c.id).where(_USER.c.removed_at.is_(None))),
)
_CHANGE = (
    update(_TABLE)
    .where(_TABLE.c.id == bindparam("member"))
    .values(role=bindparam("new_role"), expires_at=bindparam("new_end", type_=_TABLE.c.expires_at.type))
)
