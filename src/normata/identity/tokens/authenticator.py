"""Authenticating a token: finds its caller for every request."""

from __future__ import annotations

from normata.core.db.database import Database
from normata.core.db.types import now
from normata.core.http.caller import Caller
from normata.identity.last_use import LastUse
from normata.identity.memberships import is_valid
from normata.identity.tokens.lookup import TOKEN_LOOKUP
from normata.identity.tokens.tokens import digest, is_well_formed


class TokenAuthenticator:
    """Looks up the tokens of a database, and notes their uses."""

    def __init__(self, database: Database, last_use: LastUse) -> None:
        self._database = database
        self._last_use = last_use

    def is_well_formed(self, token: str) -> bool:
        """Whether a text has the form and the checksum of a token."""
        return is_well_formed(token)

    async def caller(
        self, token: str, organization_id: str | None, list_name: str | None, *, is_use: bool
    ) -> Caller | None:
        """The caller of a token, in one lookup; null for a token that is unknown, expired or revoked.

        Raises Unavailable.
        """
        found = await self._database.look_up(TOKEN_LOOKUP, digest(token), organization_id, list_name)
        moment = now()
        if not found or not is_valid(found[0].expires_at, moment):
            return None
        first = found[0]
        if is_use:
            self._last_use.note(first.token_id, first.user_id, first.last_used_at, moment)
        theirs = [row for row in found if row.organization_id is not None and is_valid(row.member_until, moment)]
        roles = {row.organization_id: row.role for row in theirs}
        revisions = {row.organization_id: row.revision or "" for row in theirs}
        return Caller(first.user_id, first.user_name, first.token_id, first.scope, first.narrowed_to, roles, revisions)
