"""The session lookup: the person who has signed in with this browser, their organizations and roles.

Every request of a signed-in person uses it. So a removed person, or one whose session was ended, has no access from the
next request on, in every process.
"""

from __future__ import annotations

from normata.core.db.lookup import Lookup
from normata.core.db.types import UtcTimestamp, text


def _select(digest: str, *, source: str, number: str) -> str:
    return (
        f"SELECT {number and number + ','} session.id AS session_id, session.user_id, account.name AS user_name,"  # noqa: S608 - built from constants
        " session.created_at, session.last_used_at, session.expires_at,"
        " organization.id AS organization_id, organization.name AS organization_name,"
        " organization.slug AS organization_slug, membership.role, membership.expires_at AS member_until,"
        " account.time_zone, account.date_format, account.theme"
        f" FROM {source and source + ' JOIN'} session {source and 'ON session.digest = ' + digest}"
        " JOIN user_account AS account ON account.id = session.user_id"
        " LEFT JOIN membership ON membership.user_id = session.user_id AND membership.removed_at IS NULL"
        " LEFT JOIN organization ON organization.id = membership.organization_id"
        f" WHERE session.digest = {digest} AND session.ended_at IS NULL"
        " AND account.removed_at IS NULL AND account.organization_id IS NULL"
        f" ORDER BY {number and number + ','} organization.name, organization.id"
    )


# One row for each organization of the person, or one without an organization. No row if the session is unknown or has
# been ended. The caller checks whether it, or a membership, has expired.
SESSION_LOOKUP = Lookup(
    name="normata_session_lookup_3",  # the previous version calls the one before, which has other columns
    arguments=("digest",),
    columns={
        "session_id": text(),
        "user_id": text(),
        "user_name": text(),
        "created_at": UtcTimestamp(),
        "last_used_at": UtcTimestamp(),
        "expires_at": UtcTimestamp(),
        "organization_id": text(),
        "organization_name": text(),
        "organization_slug": text(),
        "role": text(),
        "member_until": UtcTimestamp(),
        "time_zone": text(),
        "date_format": text(),
        "theme": text(),
    },
    select=_select,
)
