"""Sessions of people who have signed in with a browser: from sign-in to the end."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import bindparam, insert, select, update

from normata.core.changes.unit_of_work import Change, UnitOfWork, insert_of, update_of
from normata.core.db.transaction import Transaction
from normata.core.db.types import format_timestamp
from normata.core.schema.table import new_id, sql_table
from normata.errors import NotFound
from normata.identity.memberships import is_valid
from normata.identity.preferences import Preferences
from normata.identity.secrets import digest_of, new_secret
from normata.identity.sign_in_model import Means, Session

IDLE = timedelta(hours=12)
LONGEST = timedelta(days=7)
_MAX_CLIENT_TEXT = 500

BEGIN_WRITES = (insert_of(Session), update_of(Session, "ended_at"))
END_WRITES = (update_of(Session, "ended_at"),)


class SignedInMembership(NamedTuple):
    """An organization that a person is a member of, their role there, and when that ends; null for never."""

    organization_id: str
    organization_name: str
    role: str
    organization_slug: str
    expires_at: str | None


class Visitor(NamedTuple):
    """The person who makes a request with a session."""

    session_id: str
    user_id: str
    user_name: str
    signed_in_at: str
    memberships: tuple[SignedInMembership, ...]
    preferences: Preferences


def begin(
    unit: UnitOfWork, user_id: str, means: Means, *, address: str, user_agent: str, replaces: str | None = None
) -> str:
    """Create a session, and return its secret. ``replaces`` is the id of the browser's earlier session, which ends."""
    if replaces is not None:
        end(unit, replaces)
    begun = datetime.fromisoformat(unit.moment)
    secret = new_secret()
    row = {
        "id": new_id(),
        "user_id": user_id,
        "means": means,
        "created_at": unit.moment,
        "last_used_at": unit.moment,
        "expires_at": format_timestamp(begun + LONGEST),
        "ended_at": None,
        "address": address[:_MAX_CLIENT_TEXT],
        "user_agent": user_agent[:_MAX_CLIENT_TEXT],
    }
    unit.rows(_BEGIN, {**row, "digest": digest_of(secret)})
    unit.publish(Change("create", Session, None, row["id"], row))
    return secret


def visitor(found: Sequence[Any], moment: str) -> Visitor | None:
    """The visitor in the rows of a session lookup at ``moment``; null if there is no session, or it has expired."""
    if not found:
        return None
    first = found[0]
    idle_since = format_timestamp(datetime.fromisoformat(moment) - IDLE)
    if first.expires_at <= moment or first.last_used_at <= idle_since:
        return None
    memberships = tuple(
        SignedInMembership(
            row.organization_id, row.organization_name, row.role, row.organization_slug, row.member_until
        )
        for row in found
        if row.organization_id is not None and is_valid(row.member_until, moment)
    )
    preferences = Preferences(first.time_zone, first.date_format, first.theme)
    return Visitor(first.session_id, first.user_id, first.user_name, first.created_at, memberships, preferences)


def end(unit: UnitOfWork, session_id: str) -> bool:
    """End a session. Returns false if there is none in scope, or it has ended before."""
    row = unit.row(_END, {"session": session_id, "moment": unit.moment})
    if row is None:
        return False
    _publish_end(unit, row)
    return True


def end_own(unit: UnitOfWork, user_id: str, session_id: str) -> dict[str, Any]:
    """End a session of a user, and return it. Repeating it is harmless. Raises NotFound."""
    end_one = unit.row(_END_OWN, {"session": session_id, "user": user_id, "moment": unit.moment})
    if end_one is not None:
        _publish_end(unit, end_one)
        return _as_row(end_one)
    row = unit.row(_FIND, {"session": session_id, "user": user_id})
    if row is None:
        raise NotFound
    return _as_row(row)


def end_others(unit: UnitOfWork, user_id: str, but: str | None = None) -> int:
    """End all sessions of a user, optionally except one, and return their number."""
    rows = unit.rows(_END_OTHERS, {"user": user_id, "but": but or "", "moment": unit.moment})
    for row in rows:
        _publish_end(unit, row)
    return len(rows)


def open_sessions(transaction: Transaction, user_id: str, moment: str) -> list[Any]:
    """A user's sessions that are open at ``moment``, the one last used first."""
    return transaction.rows(OPEN.order_by(*ORDER), when_open(user_id, moment))


def means_of(transaction: Transaction, session_id: str) -> Means | None:
    """The means of sign-in of a session of the user in scope; null if there is no such session."""
    means: Means | None = transaction.scalar(_MEANS, {"session": session_id})
    return means


def when_open(user_id: str, moment: str) -> dict[str, str]:
    """The parameters of :data:`OPEN` for a user's sessions at ``moment``."""
    idle_since = format_timestamp(datetime.fromisoformat(moment) - IDLE)
    return {"user": user_id, "moment": moment, "idle_since": idle_since}


def _publish_end(unit: UnitOfWork, row: Any) -> None:
    after = _as_row(row)
    unit.publish(Change("end", Session, None, row.id, after, {**after, "ended_at": None}))


def _as_row(row: Any) -> dict[str, Any]:
    found: dict[str, Any] = row._asdict()
    return found


_SESSION = sql_table(Session)
_SHOWN = [column for column in _SESSION.c if column.name != "digest"]
_IS_OPEN = _SESSION.c.ended_at.is_(None)
_IS_OWN = _SESSION.c.user_id == bindparam("user")
_MOMENT = bindparam("moment", type_=_SESSION.c.ended_at.type)

_BEGIN = insert(_SESSION).values({column.name: bindparam(column.name, type_=column.type) for column in _SESSION.c})
_END = (
    update(_SESSION).where(_SESSION.c.id == bindparam("session"), _IS_OPEN).values(ended_at=_MOMENT).returning(*_SHOWN)
)
_END_OWN = _END.where(_IS_OWN)
_END_OTHERS = (
    update(_SESSION)
    .where(_IS_OWN, _SESSION.c.id != bindparam("but"), _IS_OPEN)
    .values(ended_at=_MOMENT)
    .returning(*_SHOWN)
)
_MEANS = select(_SESSION.c.means).where(_SESSION.c.id == bindparam("session"))
_FIND = select(*_SHOWN).where(_SESSION.c.id == bindparam("session"), _IS_OWN)
OPEN = select(*_SHOWN).where(
    _IS_OWN,
    _IS_OPEN,
    _SESSION.c.expires_at > _MOMENT,
    _SESSION.c.last_used_at > bindparam("idle_since", type_=_SESSION.c.last_used_at.type),
)
ORDER = (_SESSION.c.last_used_at.desc(), _SESSION.c.id)
