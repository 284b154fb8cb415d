"""The token lookup: the user of a token, their organizations and roles.

Every request uses it. It also returns the revision of the requested list, so that a cached page needs no other query.
"""

from __future__ import annotations

from normata.core.db.lookup import Lookup
from normata.core.db.types import UtcTimestamp, text


def _select(digest: str, organization: str, list_name: str, *, source: str, number: str) -> str:
    return (
        f"SELECT {number and number + ','} token.user_id, account.name AS user_name, token.id AS token_id,"  # noqa: S608 - built from constants
        " token.scope, token.organization_id AS narrowed_to, token.last_used_at, token.expires_at,"
        " membership.organization_id, membership.role, membership.expires_at AS member_until, list_revision.revision"
        f" FROM {source and source + ' JOIN'} access_token AS token {source and 'ON token.digest = ' + digest}"
        " JOIN user_account AS account ON account.id = token.user_id"
        " LEFT JOIN membership ON membership.user_id = token.user_id AND membership.removed_at IS NULL"
        " AND (token.organization_id IS NULL OR membership.organization_id = token.organization_id)"
        # Not one condition with OR, which takes both databases longer than everything else.
        f" AND ({organization} IS NULL OR membership.organization_id = {organization}"
        f" OR membership.organization_id = (SELECT id FROM organization WHERE slug = {organization}))"
        " LEFT JOIN list_revision ON list_revision.organization_id = membership.organization_id"
        f" AND list_revision.list = {list_name}"
        f" WHERE token.digest = {digest} AND token.revoked_at IS NULL AND account.removed_at IS NULL"
        f" ORDER BY {number and number + ','} membership.organization_id"
    )


# One row for each organization of the token's owner. With an organization, by id or slug, only those that it names:
# one, or two if one has the other's id as its slug. An owner without any has one row without an organization. No row if
# the token is unknown or revoked. Answers are cached, so the caller checks
# whether the token, or a membership, has expired.
TOKEN_LOOKUP = Lookup(
    name="normata_token_lookup_3",  # the previous version calls the one before, which has other columns
    arguments=("digest", "organization", "list"),
    columns={
        "user_id": text(),
        "user_name": text(),
        "token_id": text(),
        "scope": text(),
        "narrowed_to": text(),
        "last_used_at": UtcTimestamp(),
        "expires_at": UtcTimestamp(),
        "organization_id": text(),
        "role": text(),
        "member_until": UtcTimestamp(),
        "revision": text(),
    },
    select=_select,
)
