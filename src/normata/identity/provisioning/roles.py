"""The roles that a provider's groups give their members.

A group gives the role that its name, or its external id, has in a mapping. An owner is made by people alone: whoever
holds the provider's token could put anybody into a group, so that a group gives at most the role of an admin.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Column, Select, bindparam, select

from normata.core.db.transaction import Transaction
from normata.core.http.roles import ROLES, Role
from normata.core.schema.table import sql_table
from normata.identity.provisioning_model import ProvisionedGroup, ProvisionedGroupMember

DEFAULT_ROLE: Role = "viewer"  # of a person whose groups give none
LARGEST: Role = "admin"

# The names that give roles where nothing else is set for the organization.
USUAL_NAMES: Mapping[str, Role] = {f"normata-{role}": role for role in ROLES if role != "owner"}

_FEW = 500  # ids in a statement; PostgreSQL compares more of them with each row


class Among:
    """The rows of a statement in which a column is among some ids."""

    def __init__(self, every: Select[Any], column: Column[Any]) -> None:
        self._every = every
        self._few = every.where(column.in_(bindparam("among", expanding=True)))
        self._name = column.name

    def rows(self, transaction: Transaction, ids: Collection[str], **parameters: Any) -> Sequence[Any]:
        """The rows with these ids. For many of them, all rows are read."""
        wanted = set(ids)
        if not wanted:
            return []
        if len(wanted) <= _FEW:
            return transaction.rows(self._few, parameters | {"among": sorted(wanted)})
        return [row for row in transaction.rows(self._every, parameters) if getattr(row, self._name) in wanted]


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
    for row in _GROUPS.rows(transaction, member_ids, organization=organization_id):
        role = role_of_group(roles, row.name, row.external_id)
        if role is not None:
            found[row.membership_id] = largest([role, found.get(row.membership_id, role)]) or role
    return found


_GROUP, _GROUP_MEMBER = sql_table(ProvisionedGroup), sql_table(ProvisionedGroupMember)
_GROUPS = Among(
    select(_GROUP_MEMBER.c.membership_id, _GROUP.c.name, _GROUP.c.external_id)
    .join(_GROUP, _GROUP.c.id == _GROUP_MEMBER.c.group_id)
    .where(_GROUP_MEMBER.c.organization_id == bindparam("organization")),
    _GROUP_MEMBER.c.membership_id,
)
