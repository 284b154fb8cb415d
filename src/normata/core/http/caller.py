"""The caller of a request, and their rights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from normata.core.db.transaction import NO_ORGANIZATION, TenantScope


class Caller(NamedTuple):
    """The user whom a token acts as, and the token's limits: its scope, and the organization that it is narrowed to.

    ``roles`` has the user's role in each of their organizations; if the request is about one organization, only in
    that. ``revisions`` has, for each of these, the revision of the requested list; empty if there is none, or the list
    is not cached.
    """

    user_id: str
    user_name: str
    token_id: str
    scope: str
    narrowed_to: str | None
    roles: Mapping[str, str]
    revisions: Mapping[str, str]

    def reach(self, admits: Callable[[str], bool]) -> TenantScope:
        """The tenant scope of this caller for a change that ``admits`` members by their role."""
        writable = (name for name, role in self.roles.items() if admits(role))
        return TenantScope(readable=tuple(self.roles), writable=tuple(writable), users=(self.user_id,))

    def own_reach(self, *made: str) -> TenantScope:
        """The tenant scope of an operation about the caller's own data: of organizations only those that it ``made``.

        Its events belong to the operator's log, which it cannot read.
        """
        readable = (*self.roles, *made)
        return TenantScope(readable=readable, writable=(NO_ORGANIZATION, *made), users=(self.user_id,))


class Authenticator(Protocol):
    """Authenticates tokens."""

    def is_well_formed(self, token: str) -> bool:
        """Whether a text can be a token; others need no lookup."""

    async def caller(
        self, token: str, organization_id: str | None, list_name: str | None, *, is_use: bool
    ) -> Caller | None:
        """The caller of a token; null for a token that is unknown, expired or revoked. Raises Unavailable.

        ``organization_id`` is the organization of the request, null if not known yet, and ``list_name`` the requested
        cached list, null for none: the caller has the roles and the revisions of these. ``is_use`` is true if this
        counts as a use of the token.
        """
