"""Who makes a request, and what they may do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from normata.core.db.transaction import NO_ORGANIZATION, TenantScope
from normata.core.http.roles import Role, role_suffices


class Caller(NamedTuple):
    """The user whom a token acts as, and the token's limits: its scope, and the organization that it is narrowed to.

    ``roles`` has the user's role in each organization that the user is a member of; where the request is about one
    organization, in no other. ``revisions`` has, for each of these, that of the list that the request is for; empty
    if it is for none, or the list's pages are not kept.
    """

    user_id: str
    user_name: str
    token_id: str
    scope: str
    narrowed_to: str | None
    roles: Mapping[str, str]
    revisions: Mapping[str, str]

    def reach(self, least: Role) -> TenantScope:
        """What an operation that takes at least the role ``least`` may read and change as this caller."""
        writable = (name for name, role in self.roles.items() if role_suffices(role, least))
        return TenantScope(readable=tuple(self.roles), writable=tuple(writable), users=(self.user_id,))

    def own_reach(self, *made: str) -> TenantScope:
        """What an operation about the caller's own may read and change: of organizations only those that it ``made``.

        Its events belong to the operator's log, which it cannot read.
        """
        readable = (*self.roles, *made)
        return TenantScope(readable=readable, writable=(NO_ORGANIZATION, *made), users=(self.user_id,))


class Authenticator(Protocol):
    """Knows the tokens that there are."""

    def is_well_formed(self, token: str) -> bool:
        """Whether a text can be a token: no look-up is needed for one that cannot."""

    async def caller(
        self, token: str, organization_id: str | None, list_name: str | None, *, is_use: bool
    ) -> Caller | None:
        """Whom a token acts as; null for one that is unknown, expired or revoked. Raises Unavailable.

        ``organization_id`` is the organization that the request is about, null if that is not known yet, and
        ``list_name`` the cached list that it asks for, null for none: the caller has the roles and the revisions of
        these. ``is_use`` says whether this counts as a use of the token.
        """
