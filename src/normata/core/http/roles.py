"""Roles of members and scopes of tokens: each includes all that the smaller ones allow."""

from __future__ import annotations

from typing import Literal, get_args

Role = Literal["viewer", "editor", "admin", "owner"]  # from the lowest to the highest
TokenScope = Literal["read", "write", "admin"]  # from the lowest to the highest

ROLES: tuple[Role, ...] = get_args(Role)
SCOPES: tuple[TokenScope, ...] = get_args(TokenScope)


def role_suffices(role: str, least: Role) -> bool:
    """Whether a member's ``role`` includes the role ``least``."""
    return ROLES.index(role) >= ROLES.index(least)


def scope_suffices(scope: str, least: TokenScope) -> bool:
    """Whether a token's ``scope`` includes the scope ``least``."""
    return SCOPES.index(scope) >= SCOPES.index(least)
