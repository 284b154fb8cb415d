"""The roles that a provider's groups give their members.

A group gives the role that its name, or its external id, has in a mapping. An owner is made by people alone: whoever
holds the provider's token could put anybody into a group, so that a group gives at most the role of an admin.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy import bindparam, select

from normata.core.db.transaction import Transaction
from normata.core.http.roles import ROLES, Role
from normata.core.schema.table import sql_table
from normata.identity.provisioning_model import ProvisionedGroup, ProvisionedGroupMember

T = TypeVar("T")

DEFAULT_ROLE: Role = "viewer"  # of a person whose groups give none
LARGEST: Role = "admin"

# The names that give roles where nothing else is set for the organization.
USUAL_NAMES: Mapping[str, Role] = {f"normata-{role}": role for role in ROLES if role != "owner"}

_AT_ONCE = 1_000  # ids in a statement


def largest(roles: Collection[Role]) -> Role | None:
    """The largest of some roles, null if there is none; an auditor's is after that of a viewer."""
    return max(roles, key=ROLES.index) if roles else None


def role_of_group(roles: Mapping[str, Role], name: str, external_id: str | None) -> Role | None:
    """The role that a group gives, null for none."""
    found = largest([roles[one] for one in (name, external_id) if one is not None and one in roles])
    return LARGEST if found == "owner" else found


def roles_by_groups(
    transaction: Transaction, organization_id: str, roles: Mapping[str, Role], member_ids: Sequence[str]
) -> dict[str, Role]:
    """The role that their groups give each of these members; those whose groups give none are not in it."""
    found: dict[str, Role] = {}
    for some in parts(member_ids):
        for row in transaction.rows(_GROUPS, {"organization": organization_id, "members": some}):
            role = role_of_group(roles, row.name, row.external_id)
            if role is not None:
                found[row.membership_id] = largest([role, found.get(row.membership_id, role)]) or role
    return found


def parts(every: Sequence[T]) -> Iterator[Sequence[T]]:
    """A sequence in parts for one statement each."""
    for start in range(0, len(every), _AT_ONCE):
        yield every[start : start + _AT_ONCE]


_GROUP, _GROUP_MEMBER = sql_table(ProvisionedGroup), sql_table(ProvisionedGroupMember)
_GROUPS: Any = (
    select(_GROUP_MEMBER.c.membership_id, _GROUP.c.name, _GROUP.c.external_id)
    .join(_GROUP, _GROUP.c.id == _GROUP_MEMBER.c.group_id)
    .where(
        _GROUP_MEMBER.c.organization_id == bindparam("organization"),
        _GROUP_MEMBER.c.membership_id.in_(bindparam("members", expanding=True)),
    )
)
