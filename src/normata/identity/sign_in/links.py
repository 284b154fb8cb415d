"""Links that sign a person in, once, within 15 minutes."""

from __future__ import annotations

from datetime import datetime, timedelta
from urllib.parse import quote

from sqlalchemy import bindparam, insert, select, update

from normata.core.changes.unit_of_work import Change, UnitOfWork, insert_of, update_of
from normata.core.db.lookup import Lookup
from normata.core.db.types import UtcTimestamp, format_timestamp, text
from normata.core.schema.table import new_id, sql_table
from normata.identity.errors import SignInRefused
from normata.identity.secrets import digest_of, new_secret
from normata.identity.sign_in_model import SignInLink

LIFETIME = timedelta(minutes=15)
_PAUSE = timedelta(minutes=2)  # between two links mailed to the same person
PATH = "/sign-in/link/"

CREATE_WRITES = (insert_of(SignInLink),)
USE_WRITES = (update_of(SignInLink, "used_at"),)


def create(unit: UnitOfWork, user_id: str) -> str:
    """Create a link for a user, and return its secret, which is shown once. :func:`link` makes the URL."""
    secret = new_secret()
    row = {
        "id": new_id(),
        "user_id": user_id,
        "created_at": unit.moment,
        "expires_at": format_timestamp(datetime.fromisoformat(unit.moment) + LIFETIME),
        "used_at": None,
    }
    unit.rows(_CREATE, {**row, "digest": digest_of(secret)})
    unit.publish(Change("create", SignInLink, None, row["id"], row))
    return secret


def create_again(unit: UnitOfWork, user_id: str) -> str | None:
    """Like :func:`create`, but null if there is a recent link. It must not fill a mailbox."""
    since = format_timestamp(datetime.fromisoformat(unit.moment) - _PAUSE)
    if unit.row(_RECENT, {"user": user_id, "since": since}) is not None:
        return None
    return create(unit, user_id)


def link(public_url: str, secret: str, *, return_to: str = "") -> str:
    """The address that a person opens, who then comes to the path ``return_to``.

    ``public_url`` is the setting of this name, never taken from a request.
    """
    address = f"{public_url.rstrip('/')}{PATH}?secret={secret}"
    return f"{address}&return_to={quote(return_to, safe='')}" if return_to else address


def use(unit: UnitOfWork, link_id: str) -> None:
    """Use a link. Raises SignInRefused if it has expired or was used, even by a simultaneous request."""
    row = unit.row(_USE, {"link": link_id, "moment": unit.moment})
    if row is None:
        raise SignInRefused("link_used")
    after = row._asdict()
    unit.publish(Change("use", SignInLink, None, link_id, after, {**after, "used_at": None}))


def _select(digest: str, *, source: str, number: str) -> str:
    return (
        f"SELECT {number and number + ','} link.id AS link_id, link.user_id, account.name AS user_name,"  # noqa: S608 - built from constants
        " link.expires_at, link.used_at"
        f" FROM {source and source + ' JOIN'} sign_in_link AS link {source and 'ON link.digest = ' + digest}"
        " JOIN user_account AS account ON account.id = link.user_id"
        f" WHERE link.digest = {digest} AND account.removed_at IS NULL AND account.organization_id IS NULL"
        f" ORDER BY {number and number + ','} link.id"
    )


# The user of a link. No row if there is no such link, or if its user cannot sign in any more.
SIGN_IN_LINK_LOOKUP = Lookup(
    name="normata_sign_in_link_lookup",
    arguments=("digest",),
    columns={
        "link_id": text(),
        "user_id": text(),
        "user_name": text(),
        "expires_at": UtcTimestamp(),
        "used_at": UtcTimestamp(),
    },
    select=_select,
)

_LINK = sql_table(SignInLink)
_CREATE = insert(_LINK).values({column.name: bindparam(column.name, type_=column.type) for column in _LINK.c})
_RECENT = select(_LINK.c.id).where(
    _LINK.c.user_id == bindparam("user"), _LINK.c.created_at > bindparam("since", type_=_LINK.c.created_at.type)
)
_USE = (
    update(_LINK)
    .where(
        _LINK.c.id == bindparam("link"),
        _LINK.c.used_at.is_(None),
        _LINK.c.expires_at > bindparam("moment", type_=_LINK.c.expires_at.type),
    )
    .values(used_at=bindparam("moment", type_=_LINK.c.used_at.type))
    .returning(*(column for column in _LINK.c if column.name != "digest"))
)
