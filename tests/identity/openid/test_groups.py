"""The role that somebody gets from their groups, and the one that they keep."""

from __future__ import annotations

import pytest

from normata.core.http.roles import Role
from normata.identity.openid.groups import GroupRoles, next_role


@pytest.mark.parametrize(
    ("managed", "role", "current", "becomes"),
    [
        # Groups give a role to whoever has none, or a smaller one.
        ({"editor"}, "editor", None, "editor"),
        ({"editor"}, "editor", "viewer", "editor"),
        ({"editor"}, "editor", "editor", "editor"),
        ({"editor", "admin"}, "admin", "editor", "admin"),
        # A role that was given by hand stays where it is the larger one.
        ({"editor"}, "editor", "owner", "owner"),
        ({"editor"}, None, "owner", "owner"),
        ({"admin"}, None, "viewer", "viewer"),
        # One that groups manage goes with the group.
        ({"editor", "admin"}, "editor", "admin", "editor"),
        ({"editor", "admin"}, None, "admin", None),
        ({"owner"}, None, "owner", None),
        ({"viewer"}, None, None, None),
        # An auditor is more than a viewer, and less than whoever changes something.
        ({"viewer", "auditor"}, "auditor", "viewer", "auditor"),
        ({"viewer"}, "viewer", "auditor", "auditor"),
        ({"editor"}, "editor", "auditor", "editor"),
        ({"auditor"}, None, "auditor", None),
    ],
)
def test_the_role_by_groups(managed: set[Role], role: Role | None, current: Role | None, becomes: Role | None) -> None:
    assert next_role(GroupRoles("alpha", frozenset(managed), role), current) == becomes
