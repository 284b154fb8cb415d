"""The secret address of a person's calendar: made, replaced, removed, and looked up when a program fetches it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pydantic import Field
from sqlalchemy import bindparam, delete, insert, select

from normata.core.changes.unit_of_work import Change, UnitOfWork, delete_of, insert_of
from normata.core.db.lookup import Lookup
from normata.core.db.transaction import Transaction
from normata.core.db.types import UtcTimestamp, text
from normata.core.http.caller import Caller
from normata.core.schema.fields import Timestamp
from normata.core.schema.table import new_id, sql_table
from normata.core.schema.wire import Wire
from normata.errors import Forbidden
from normata.identity.memberships import is_valid
from normata.identity.model import CalendarAddress, User
from normata.identity.organization_lookup import seen
from normata.identity.secrets import digest_of, new_secret

CALENDAR_REMOVAL = (delete_of(CalendarAddress),)
CALENDAR_WRITES = (insert_of(CalendarAddress), *CALENDAR_REMOVAL)


class Calendar(Wire):
    """Whether the caller has a calendar that other programs fetch; all is null if not."""

    created_at: Timestamp | None = Field(description="When its address was made; null if there is none.")
    last_fetched_at: Timestamp | None = Field(
        description="When a program last fetched it, to the minute; null if none has."
    )
    organization_id: str | None = Field(
        description="The only organization whose dates it has; null if it has those of all organizations of the caller."
    )


class NewCalendar(Calendar):
    """A calendar with its address, which is shown once."""

    url: str = Field(description="The address. Whoever knows it can read the calendar.")


class Made(NamedTuple):
    """A new address: its row without the digest, and its secret."""

    row: dict[str, Any]
    secret: str


class Reader(NamedTuple):
    """Whose calendar an address is, and the organizations that it is about, as rows of the lookup."""

    address_id: str
    user_id: str
    last_used_at: str | None
    organizations: Sequence[Any]


def make(unit: UnitOfWork, user_id: str, organization_id: str | None) -> Made:
    """Make the address of a person's calendar, which replaces the one before."""
    unit.lock(f"calendar of {user_id}")  # each of two at the same time would add a row
    remove(unit, user_id)
    secret = new_secret()
    row = {
        "id": new_id(),
        "user_id": user_id,
        "narrowed_to": organization_id,
        "created_at": unit.moment,
        "last_used_at": None,
    }
    unit.rows(_MAKE, {**row, "digest": digest_of(secret)})
    unit.publish(Change("create", CalendarAddress, None, row["id"], row))
    return Made(row, secret)


def make_own(unit: UnitOfWork, caller: Caller, organization: str | None) -> Made:
    """Make the caller's own, about all their organizations, or the one with this id or slug.

    Raises NotFound, and Forbidden for service accounts and tokens that are narrowed to an organization.
    """
    _require_person(unit, caller)
    return make(unit, caller.user_id, None if organization is None else seen(unit, organization))


def remove(unit: UnitOfWork, user_id: str) -> None:
    """End the address of a person's calendar, if there is one."""
    row = unit.row(_REMOVE, {"user": user_id})
    if row is not None:
        unit.publish(Change("remove", CalendarAddress, None, row.id, None, row._asdict()))


def remove_own(unit: UnitOfWork, caller: Caller) -> None:
    """End the caller's own. Raises Forbidden as :func:`make_own` does."""
    _require_person(unit, caller)
    remove(unit, caller.user_id)


def own(transaction: Transaction, user_id: str) -> Any:
    """The row of a person's calendar; null if there is none."""
    return transaction.row(_FIND, {"user": user_id})


def as_wire(row: Any) -> dict[str, Any]:
    """A person's calendar in wire form; of null, if there is none."""
    return {
        "createdAt": row and row.created_at,
        "lastFetchedAt": row and row.last_used_at,
        "organizationId": row and row.narrowed_to,
    }


def reader(found: Sequence[Any], moment: str) -> Reader | None:
    """The reader in the rows of a lookup at ``moment``; null if the address leads to no organization."""
    valid = [row for row in found if is_valid(row.member_until, moment)]
    return Reader(valid[0].address_id, valid[0].user_id, valid[0].last_used_at, valid) if valid else None


def _require_person(unit: UnitOfWork, caller: Caller) -> None:
    account_of = unit.scalar(_ACCOUNT_OF, {"user": caller.user_id})
    if caller.narrowed_to is not None or account_of is not None:
        raise Forbidden("Only a person can do this, with a token that is not narrowed to an organization.")


def _select(digest: str, *, source: str, number: str) -> str:
    return (
        f"SELECT {number and number + ','} address.id AS address_id, address.user_id, address.last_used_at,"  # noqa: S608 - built from constants
        " organization.id AS organization_id, organization.slug AS organization_slug,"
        " organization.name AS organization_name, membership.expires_at AS member_until"
        f" FROM {source and source + ' JOIN'} calendar_address AS address {source and 'ON address.digest = ' + digest}"
        " JOIN user_account AS account ON account.id = address.user_id"
        " JOIN membership ON membership.user_id = address.user_id AND membership.removed_at IS NULL"
        " AND (address.narrowed_to IS NULL OR membership.organization_id = address.narrowed_to)"
        " JOIN organization ON organization.id = membership.organization_id"
        f" WHERE address.digest = {digest} AND account.removed_at IS NULL AND account.organization_id IS NULL"
        f" ORDER BY {number and number + ','} organization.name, organization.id"
    )


# One row for each organization that the calendar of an address is about. No row if the address is unknown, or its
# person has no membership there any more. The caller checks whether a membership has expired.
CALENDAR_LOOKUP = Lookup(
    name="normata_calendar_lookup",
    arguments=("digest",),
    columns={
        "address_id": text(),
        "user_id": text(),
        "last_used_at": UtcTimestamp(),
        "organization_id": text(),
        "organization_slug": text(),
        "organization_name": text(),
        "member_until": UtcTimestamp(),
    },
    select=_select,
)

_ADDRESS, _USER = sql_table(CalendarAddress), sql_table(User)
_SHOWN = [column for column in _ADDRESS.c if column.name != "digest"]
_FIND = select(*_SHOWN).where(_ADDRESS.c.user_id == bindparam("user"))
_MAKE = insert(_ADDRESS).values({column.name: bindparam(column.name, type_=column.type) for column in _ADDRESS.c})
_REMOVE = delete(_ADDRESS).where(_ADDRESS.c.user_id == bindparam("user")).returning(*_SHOWN)
_ACCOUNT_OF = select(_USER.c.organization_id).where(_USER.c.id == bindparam("user"))
