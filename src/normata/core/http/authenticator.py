"""How the pipeline learns whose token it was sent."""

from __future__ import annotations

from typing import Protocol

from normata.core.http.caller import Caller


class Authenticator(Protocol):
    """Knows the tokens that there are."""

    def is_well_formed(self, token: str) -> bool:
        """Whether a text can be a token: no look-up is needed for one that cannot."""

    async def caller(
        self, token: str, organization_id: str | None, list_name: str | None, *, is_use: bool
    ) -> Caller | None:
        """Whom a token acts as; null for one that is unknown, expired or revoked. Raises Unavailable.

        ``organization_id`` is the organization that the request is about, null where that is not known yet, and
        ``list_name`` the cached list that it asks for, null for none: the caller has the roles and the revisions of
        these. ``is_use`` says whether this counts as a use of the token.
        """
