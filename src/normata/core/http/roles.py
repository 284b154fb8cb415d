"""Roles of members and scopes of tokens.

The roles viewer, editor, admin and owner form a ladder: each includes what those before it allow. An auditor stands
beside the ladder. It reads all that an admin reads, and includes a viewer; operations declare what it may change.

The scopes read, write and admin form a ladder as well. The scope scim stands beside it: it is for an identity provider,
which maintains people and does nothing else, and nothing else may do that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

Role = Literal["viewer", "auditor", "editor", "admin", "owner"]  # each after those that it includes
TokenScope = Literal["read", "write", "admin", "scim"]

ROLES: tuple[Role, ...] = get_args(Role)
SCOPES: tuple[TokenScope, ...] = ("read", "write", "admin")  # of operations, from the lowest to the highest
SCIM: TokenScope = "scim"
AUDITOR: Role = "auditor"

_INCLUDED: Mapping[str, frozenset[Role]] = {
    "viewer": frozenset({"viewer"}),
    AUDITOR: frozenset({"viewer", AUDITOR}),
    "editor": frozenset({"viewer", "editor"}),
    "admin": frozenset({"viewer", AUDITOR, "editor", "admin"}),
    "owner": frozenset(ROLES),
}


def role_suffices(role: str, least: Role) -> bool:
    """Whether a member's ``role`` includes the role ``least``."""
    return least in _INCLUDED[role]


def scope_suffices(scope: str, least: TokenScope) -> bool:
    """Whether a token's ``scope`` includes the scope ``least``."""
    if SCIM in (scope, least):
        return scope == least
    return SCOPES.index(scope) >= SCOPES.index(least)
