"""The outbox: what of the notifications is to be mailed, when, and what became of it.

A row is planned first: that decides by the choice of its user when it is due, and in which message it is. Then a
process claims a message, sends it, and ends its rows. If it is killed in between, the claim ends, and the same message
is sent again: with the same Message-ID, so that mail programs can recognize it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sqlalchemy import Update, bindparam, or_, select, update

from normata.core.changes.unit_of_work import update_of
from normata.core.db.transaction import Transaction
from normata.core.db.types import format_timestamp
from normata.core.schema.table import sql_table
from normata.identity.model import Membership, Organization, User
from normata.notifications.model import Notification, Outcome, OutgoingMail

MAILING_WRITES = (
    update_of(OutgoingMail, "message", "due_at", "attempts", "ended_at", "outcome"),
    update_of(User, "refused_email"),
)
CLAIMED_FOR = timedelta(minutes=2)  # more than sending a message may take
PLANNED_AT_ONCE = 500  # rows in one transaction
ALONE = 5  # immediate notifications to one user at a time that are messages of their own; more are one message
MORNING = 7  # the hour of the daily message, in the user's time zone
_LAST_MINUTE = timedelta(minutes=1)
_FIRST_DELAY = timedelta(minutes=1)  # after the server has not taken a message; doubled after each further attempt
_LONGEST_DELAY = timedelta(hours=4)
MOST_ATTEMPTS = 36  # in about five days (RFC 5321, section 4.5.4.1)


@dataclass(frozen=True, slots=True)
class Claimed:
    """A message that this process sends. ``notifications`` are the unread ones in it, oldest first; none to skip it.

    They have all columns of a notification, and the address, name and time zone of the user and the name and slug of
    the organization.
    """

    message: str
    until: str
    attempts: int
    notifications: Sequence[Any]


def find(transaction: Transaction, organizations: Sequence[str], moment: str) -> list[str]:
    """The organizations among these that have something to plan or to send."""
    return transaction.scalars(_WITH_DUE, {"organizations": organizations, "moment": moment})


def plan(transaction: Transaction, organization_id: str, moment: str) -> int:
    """Plan new rows, and return their number. There may be more where it is :data:`PLANNED_AT_ONCE`."""
    rows = transaction.rows(_UNPLANNED, {"organization": organization_id, "moment": moment})
    over: list[dict[str, Any]] = []
    planned: list[dict[str, Any]] = []
    immediate: defaultdict[str, list[str]] = defaultdict(list)
    for row in rows:
        choice = _choice(row)
        if row.type is None or row.read_at is not None or choice == "OFF":
            over.append({"row": row.id, "moment": moment, "new_outcome": "LEFT_OUT"})
        elif choice == "IMMEDIATELY":
            immediate[row.user_id].append(row.id)
        else:
            morning = next_morning(moment, row.time_zone)
            planned.append({"row": row.id, "new_message": _daily(organization_id, row.user_id, morning, moment)})
            planned[-1]["new_due_at"] = morning
    for ids in immediate.values():
        together = ids[0] if len(ids) > ALONE else None
        planned.extend({"row": one, "new_message": together or one, "new_due_at": moment} for one in ids)
    if over:
        transaction.execute_many(_END_ONE, over)
    if planned:
        transaction.execute_many(_PLAN, planned)
    return len(rows)


def _choice(row: Any) -> str:
    """When the user of a notification wants it mailed, as they or the organization have chosen by now."""
    found: str = (row.mail_by_type or {}).get(row.type, row.mail or row.default_choice)
    return found


def next_morning(moment: str, time_zone: str | None) -> str:
    """The next time after a moment at which the daily message is due for somebody in a time zone; null for UTC."""
    try:
        zone = ZoneInfo(time_zone or "UTC")
    except (ZoneInfoNotFoundError, ValueError):  # the system's tz database no longer has it
        zone = ZoneInfo("UTC")
    local = datetime.fromisoformat(moment).astimezone(zone)
    morning = local.replace(hour=MORNING, minute=0, second=0, microsecond=0)
    return format_timestamp(morning if morning > local else morning + timedelta(days=1))


def _daily(organization_id: str, user_id: str, morning: str, moment: str) -> str:
    """The id of a user's message of a morning. What comes in the last minute before is a message of its own.

    Another process, whose clock is ahead, may already have sent the first.
    """
    is_late = datetime.fromisoformat(morning) - datetime.fromisoformat(moment) < _LAST_MINUTE
    parts = (organization_id, user_id, morning, moment if is_late else "")
    return sha256("\n".join(parts).encode()).hexdigest()


def claim(transaction: Transaction, organization_id: str, moment: str) -> Claimed | None:
    """Claim the next due message; null if there is none.

    What nobody can or need read any more is left out, and what its user has chosen to get no mail about since then.
    """
    key = {"organization": organization_id, "moment": moment}
    message = transaction.scalar(_NEXT, key)
    if message is None:
        return None
    until = _after(moment, CLAIMED_FOR)
    rows = transaction.rows(_CLAIM, {**key, "of_message": message, "until": until})
    content = transaction.rows(_CONTENT, {**key, "of_message": message, "until": until})
    found = [row for row in content if _choice(row) != "OFF"]
    wanted = {row.id for row in found}
    over = [row.id for row in rows if row.id not in wanted]
    if over:
        transaction.execute_many(_END_ONE, [{"row": one, "moment": moment, "new_outcome": "LEFT_OUT"} for one in over])
    return Claimed(message, until, max((row.attempts for row in rows), default=0), found)


def end(transaction: Transaction, organization_id: str, claimed: Claimed, outcome: Outcome, moment: str) -> None:
    """End a claimed message, unless another process has claimed it by now."""
    transaction.rows(_END, {**_own(organization_id, claimed), "moment": moment, "new_outcome": outcome})


def delay(transaction: Transaction, organization_id: str, claimed: Claimed, moment: str) -> None:
    """Have a claimed message sent again later: after ever longer pauses, and not any more after some days."""
    if claimed.attempts >= MOST_ATTEMPTS:
        end(transaction, organization_id, claimed, "REJECTED", moment)
        return
    pause = min(_FIRST_DELAY * (1 << min(claimed.attempts - 1, 20)), _LONGEST_DELAY)
    transaction.rows(_POSTPONE, {**_own(organization_id, claimed), "new_due_at": _after(moment, pause)})


def release(transaction: Transaction, organization_id: str, claimed: Claimed, moment: str) -> None:
    """Give a claimed message back, as if it had not been claimed, because no message can be sent now."""
    transaction.rows(_RELEASE, {**_own(organization_id, claimed), "new_due_at": moment})


def refuse(transaction: Transaction, user_id: str, email: str) -> None:
    """Note that the server has refused an address for good, if it is still the user's."""
    transaction.rows(_REFUSE, {"user": user_id, "address": email})


def _own(organization_id: str, claimed: Claimed) -> dict[str, str]:
    return {"organization": organization_id, "of_message": claimed.message, "until": claimed.until}


def _after(moment: str, pause: timedelta) -> str:
    return format_timestamp(datetime.fromisoformat(moment) + pause)


_TABLE, _NOTIFICATION = sql_table(OutgoingMail), sql_table(Notification)
_USER, _MEMBER, _ORGANIZATION = sql_table(User), sql_table(Membership), sql_table(Organization)
_TIME = _TABLE.c.due_at.type
_MOMENT, _UNTIL = bindparam("moment", type_=_TIME), bindparam("until", type_=_TIME)
_IS_OPEN = _TABLE.c.ended_at.is_(None)
_IS_DUE = _IS_OPEN & (_TABLE.c.due_at <= _MOMENT)
_IS_OF_ORGANIZATION = _TABLE.c.organization_id == bindparam("organization")
_IS_OF_MESSAGE = _IS_OF_ORGANIZATION & (_TABLE.c.message == bindparam("of_message")) & _IS_OPEN
_IS_CLAIMED = _IS_OF_MESSAGE & (_TABLE.c.due_at == _UNTIL)
_ENDED = {"ended_at": _MOMENT, "outcome": bindparam("new_outcome")}

_WITH_DUE = (
    select(_TABLE.c.organization_id)
    .where(_TABLE.c.organization_id.in_(bindparam("organizations", expanding=True)), _IS_DUE)
    .distinct()
)
_UNPLANNED = (
    select(
        _TABLE.c.id,
        _TABLE.c.user_id,
        _NOTIFICATION.c.type,
        _NOTIFICATION.c.read_at,
        *(_USER.c[name] for name in ("mail", "mail_by_type", "time_zone")),
        _ORGANIZATION.c.mail.label("default_choice"),
    )
    .select_from(_TABLE)
    .join(_ORGANIZATION, _ORGANIZATION.c.id == _TABLE.c.organization_id)
    .outerjoin(_NOTIFICATION, _NOTIFICATION.c.id == _TABLE.c.id)
    .outerjoin(_USER, _USER.c.id == _TABLE.c.user_id)
    .where(_IS_OF_ORGANIZATION, _IS_DUE, _TABLE.c.message.is_(None))
    .order_by(_TABLE.c.due_at, _TABLE.c.id)
    .limit(PLANNED_AT_ONCE)
)
_NEXT = (
    select(_TABLE.c.message)
    .where(_IS_OF_ORGANIZATION, _IS_DUE, _TABLE.c.message.is_not(None))
    .order_by(_TABLE.c.due_at, _TABLE.c.message)
    .limit(1)
)
_CONTENT = (
    select(
        *_NOTIFICATION.c,
        *(_USER.c[name] for name in ("email", "mail", "mail_by_type", "time_zone")),
        _USER.c.name.label("user_name"),
        _ORGANIZATION.c.mail.label("default_choice"),
        _ORGANIZATION.c.name.label("organization_name"),
        _ORGANIZATION.c.slug.label("organization_slug"),
    )
    .select_from(_TABLE)
    .join(_NOTIFICATION, _NOTIFICATION.c.id == _TABLE.c.id)
    .join(_ORGANIZATION, _ORGANIZATION.c.id == _TABLE.c.organization_id)
    .join(_USER, _USER.c.id == _TABLE.c.user_id)
    .join(_MEMBER, (_MEMBER.c.user_id == _TABLE.c.user_id) & (_MEMBER.c.organization_id == _TABLE.c.organization_id))
    .where(
        _IS_CLAIMED,
        _NOTIFICATION.c.read_at.is_(None),
        _MEMBER.c.removed_at.is_(None),
        or_(_MEMBER.c.expires_at.is_(None), _MEMBER.c.expires_at > _MOMENT),
        _USER.c.removed_at.is_(None),
        _USER.c.email.is_not(None),
        or_(_USER.c.refused_email.is_(None), _USER.c.refused_email != _USER.c.email),
    )
    .order_by(_NOTIFICATION.c.created_at, _NOTIFICATION.c.id)
)


def _set(condition: Any, **values: Any) -> Update:
    return update(_TABLE).where(condition).values(**values)


_PLAN = _set(
    (_TABLE.c.id == bindparam("row")) & _IS_OPEN,
    message=bindparam("new_message"),
    due_at=bindparam("new_due_at", type_=_TIME),
)
_CLAIM = _set(_IS_OF_MESSAGE & _IS_DUE, due_at=_UNTIL, attempts=_TABLE.c.attempts + 1).returning(
    _TABLE.c.id, _TABLE.c.attempts
)
_END_ONE = _set((_TABLE.c.id == bindparam("row")) & _IS_OPEN, **_ENDED)
_END = _set(_IS_CLAIMED, **_ENDED)
_POSTPONE = _set(_IS_CLAIMED, due_at=bindparam("new_due_at", type_=_TIME))
_RELEASE = _set(_IS_CLAIMED, due_at=bindparam("new_due_at", type_=_TIME), attempts=_TABLE.c.attempts - 1)
_REFUSE = (
    update(_USER)
    .where(_USER.c.id == bindparam("user"), _USER.c.email == bindparam("address"))
    .values(refused_email=bindparam("address"))
)
