"""The deliveries in the database: which webhooks are due, who sends, and how far they have come.

A process claims a webhook, and moves the end of its claim while it sends. If it is killed, the claim ends, and another
process goes on where the last one had stored that it was: what was sent since is sent again, with the same id.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Select, bindparam, func, or_, select, update

from normata.core.changes.unit_of_work import Change, UnitOfWork, update_of
from normata.core.db.transaction import TenantScope, Transaction
from normata.core.db.types import format_timestamp
from normata.core.schema.table import sql_table
from normata.events.log import sealed_rows
from normata.events.model import EventCheckpoint
from normata.identity.model import Organization
from normata.webhooks.commands import lock_of
from normata.webhooks.model import Reason, Webhook, WebhookDelivery

# More than the time between two moves of a claim: a request of 10 seconds, and what the database may take.
CLAIMED_FOR = timedelta(seconds=20)
_FIRST_DELAY = timedelta(seconds=5)  # after a failure; doubled after each further one
LONGEST_DELAY = timedelta(hours=6)
FAILS_FOR = timedelta(days=3)
FEWEST_ATTEMPTS = 13  # before it is disabled: those of the first half day, since the service may have been stopped
AT_ONCE = 100  # events that are read at a time

_DELIVERY_COLUMNS = (
    *("next_number", "due_at", "claim", "attempts", "failing_since", "last_at", "last_status", "last_reason"),
    *("delivered_number", "delivered_at"),
)
DELIVERY_WRITES = (update_of(WebhookDelivery, *_DELIVERY_COLUMNS),)
DISABLING_WRITES = (update_of(Webhook, "disabled_at", "disabled_reason", "updated_at"), *DELIVERY_WRITES)


@dataclass(frozen=True, slots=True)
class Claimed:
    """A webhook that this process sends, from the event ``next_number`` on. ``attempts`` have failed before."""

    webhook_id: str
    owner: str
    claim: str
    next_number: int
    attempts: int
    failing_since: str | None

    @property
    def scope(self) -> TenantScope:
        """The tenant scope of its deliveries."""
        return TenantScope(readable=(self.owner,), writable=(self.owner,))


class Progress(NamedTuple):
    """How far a process has come since it has last stored that.

    ``status`` and ``reason`` are those of the last attempt, ``last_at`` its time; null if there was none.
    ``delivered_number`` and ``delivered_at`` are those of the last event that was taken; null if none was.
    """

    next_number: int
    last_at: str | None = None
    status: int | None = None
    reason: Reason | None = None
    delivered_number: int | None = None
    delivered_at: str | None = None


class Places(NamedTuple):
    """How many webhooks a process may begin to send.

    ``of_failing`` is how many of them may have failed last, ``of_one_owner`` how many may be of one organization; those
    in ``taken_by`` have no more than that.
    """

    free: int
    of_failing: int
    of_one_owner: int
    taken_by: Sequence[str]


class Batch(NamedTuple):
    """The webhook as it is now, and the next events with their leaves, in order."""

    webhook: Any
    rows: Sequence[Any]


def due(transaction: Transaction, moment: str, places: Places) -> list[Any]:
    """The deliveries that may go on, have something to send, and get one of the free places.

    Those that have waited longest come first. What gets no place, such as all but a few of an organization that has
    many, does not hide what does.
    """
    latest = _after(moment, LONGEST_DELAY + CLAIMED_FOR)  # later only by a clock that was ahead
    key: dict[str, Any] = {"moment": moment, "latest": latest}
    owners = {*transaction.scalars(_OWNERS, key)}.difference(places.taken_by)
    if not owners:
        return []
    transaction.extend(TenantScope(readable=tuple(sorted(owners))))
    key |= {"owners": sorted(owners), "of_one": places.of_one_owner}
    rows = transaction.rows(_DUE[False], {**key, "limit": places.free})
    rows += transaction.rows(_DUE[True], {**key, "limit": min(places.free, places.of_failing)})
    return sorted(rows, key=lambda row: str(row.due_at))


def claim(transaction: Transaction, rows: Sequence[Any], new_id: Callable[[], str], moment: str) -> list[Claimed]:
    """Claim due deliveries, and return those that no other process has claimed meanwhile."""
    claimed = []
    for row in sorted(rows, key=lambda one: str(one.webhook_id)):  # a fixed order prevents deadlocks
        own = new_id()
        key = {"webhook": row.webhook_id, "found_at": row.due_at, "own_claim": own}
        if transaction.rows(_CLAIM, {**key, "ends_at": _after(moment, CLAIMED_FOR)}):
            claimed.append(Claimed(row.webhook_id, row.owner, own, row.next_number, row.attempts, row.failing_since))
    return claimed


def next_batch(transaction: Transaction, claimed: Claimed, first: int) -> Batch | None:
    """The next events; null if nothing is to be sent any more. Two statements."""
    webhook = transaction.row(_WEBHOOK, {"webhook": claimed.webhook_id, "own_claim": claimed.claim})
    if webhook is None:
        return None
    return Batch(webhook, sealed_rows(transaction, claimed.owner, first, AT_ONCE))


def secrets_of() -> Select[Any]:
    """The statement that reads a webhook with its encrypted secrets, by its id."""
    return _WHOLE


def advance(transaction: Transaction, claimed: Claimed, progress: Progress, moment: str, *, ends: bool) -> bool:
    """Store progress without a failure, and move the claim, or give it back if it ``ends``.

    Returns false if it is no longer this process's, so that it must stop.
    """
    values = {
        **_of(claimed, progress),
        "new_due_at": moment if ends else _after(moment, CLAIMED_FOR),
        "new_claim": None if ends else claimed.claim,
    }
    return bool(transaction.rows(_ADVANCE if progress.delivered_at is None else _DELIVER, values))


def fail(
    transaction: Transaction, claimed: Claimed, progress: Progress, moment: str, retry_after: float | None
) -> bool:
    """Store progress that ends with a failure, and when the next attempt is.

    Returns false if the claim is no longer this process's.
    """
    attempts = claimed.attempts + 1
    values = {
        **_of(claimed, progress),
        "new_due_at": _after(moment, delay(attempts, retry_after)),
        "new_attempts": attempts,
        "since": claimed.failing_since or moment,
    }
    return bool(transaction.rows(_FAIL if progress.delivered_at is None else _DELIVER_AND_FAIL, values))


def delay(attempts: int, retry_after: float | None) -> timedelta:
    """How long to wait after a number of failed attempts, longer if the receiver asks for it; six hours at most."""
    usual = _FIRST_DELAY * (1 << min(attempts - 1, 20))
    return min(max(usual, timedelta(seconds=retry_after or 0)), LONGEST_DELAY)


def has_failed_for_days(claimed: Claimed, moment: str) -> bool:
    """Whether one more failure is the last one."""
    if claimed.failing_since is None or claimed.attempts + 1 < FEWEST_ATTEMPTS:
        return False
    return datetime.fromisoformat(moment) - datetime.fromisoformat(claimed.failing_since) >= FAILS_FOR


def disable(unit: UnitOfWork, claimed: Claimed, progress: Progress, stop: str) -> bool:
    """Disable a webhook after a failure, with an event; admins are notified by that.

    Returns false if the claim is no longer this process's.
    """
    unit.lock(lock_of(claimed.webhook_id))
    before = unit.row(_CLAIMED_WEBHOOK, {"webhook": claimed.webhook_id, "own_claim": claimed.claim})
    if before is None or not fail(unit, claimed, progress, unit.moment, None):
        return False
    unit.rows(_STOP, {"webhook": claimed.webhook_id})
    after = before._asdict() | {"disabled_at": unit.moment, "disabled_reason": stop, "updated_at": unit.moment}
    unit.rows(_DISABLE, {"webhook": claimed.webhook_id, "moment": unit.moment, "stop": stop})
    unit.publish(Change("disable", Webhook, claimed.owner, claimed.webhook_id, after, before._asdict()))
    return True


def figures(transaction: Transaction) -> tuple[int, int, int]:
    """The numbers of webhooks that fail, of those that are disabled, and of events that active ones are behind."""
    owners = tuple(sorted(transaction.scalars(_EVERY_OWNER)))
    if not owners:
        return 0, 0, 0
    transaction.extend(TenantScope(readable=owners))
    row = transaction.row(_FIGURES)
    assert row is not None  # noqa: S101 - counts always return a row
    return row.failing or 0, row.disabled or 0, row.behind or 0


def _of(claimed: Claimed, progress: Progress) -> dict[str, Any]:
    return {
        "webhook": claimed.webhook_id,
        "own_claim": claimed.claim,
        "number": progress.next_number,
        "last": progress.last_at,
        "status": progress.status,
        "reason": progress.reason,
        **(
            {}
            if progress.delivered_at is None
            else {"delivered": progress.delivered_number, "delivered_at_": progress.delivered_at}
        ),
    }


def _after(moment: str, pause: timedelta) -> str:
    return format_timestamp(datetime.fromisoformat(moment) + pause)


# --- Statements

_TABLE, _DELIVERY = sql_table(Webhook), sql_table(WebhookDelivery)
_ORGANIZATION, _CHECKPOINT = sql_table(Organization), sql_table(EventCheckpoint)
_TIME = _DELIVERY.c.due_at.type
_SIZE = (
    select(func.max(_CHECKPOINT.c.size))
    .where(_CHECKPOINT.c.organization_id == _DELIVERY.c.owner)
    .correlate(_DELIVERY)
    .scalar_subquery()
)
_MAY_GO_ON = or_(
    _DELIVERY.c.due_at <= bindparam("moment", type_=_TIME), _DELIVERY.c.due_at > bindparam("latest", type_=_TIME)
)
_OWNERS: Select[Any] = select(_DELIVERY.c.owner).where(_MAY_GO_ON).distinct()
_EVERY_OWNER: Select[Any] = select(_DELIVERY.c.owner).distinct()
_ORDER = (_DELIVERY.c.due_at, _DELIVERY.c.webhook_id)


def _due(*, failing: bool) -> Select[Any]:
    """Those that have waited longest, of each organization a few: by whether their last attempt has failed."""
    has_failed = _DELIVERY.c.attempts > 0 if failing else _DELIVERY.c.attempts == 0
    found = (
        select(*_DELIVERY.c, func.row_number().over(partition_by=_DELIVERY.c.owner, order_by=_ORDER).label("place"))
        .join(_ORGANIZATION, _ORGANIZATION.c.id == _DELIVERY.c.owner)
        .where(_MAY_GO_ON, has_failed, _DELIVERY.c.owner.in_(bindparam("owners", expanding=True)))
        .where(_ORGANIZATION.c.removed_at.is_(None), _DELIVERY.c.next_number < _SIZE)
        .subquery()
    )
    return (
        select(*found.c)
        .where(found.c.place <= bindparam("of_one"))
        .order_by(found.c.due_at, found.c.webhook_id)
        .limit(bindparam("limit"))
    )


_DUE = {failing: _due(failing=failing) for failing in (False, True)}
_CLAIM = (
    update(_DELIVERY)
    .where(_DELIVERY.c.webhook_id == bindparam("webhook"), _DELIVERY.c.due_at == bindparam("found_at", type_=_TIME))
    .values(due_at=bindparam("ends_at", type_=_TIME), claim=bindparam("own_claim"))
    .returning(_DELIVERY.c.webhook_id)
)
_IS_CLAIMED = (_DELIVERY.c.webhook_id == bindparam("webhook")) & (_DELIVERY.c.claim == bindparam("own_claim"))
_CLAIMED_WEBHOOK = (
    select(*(column for column in _TABLE.c if column.name not in ("secret", "former_secret")))
    .join(_DELIVERY, _DELIVERY.c.webhook_id == _TABLE.c.id)
    .where(_IS_CLAIMED)
)
_WEBHOOK = (
    select(*_TABLE.c, _ORGANIZATION.c.slug.label("organization_slug"), _ORGANIZATION.c.name.label("organization_name"))
    .join(_DELIVERY, _DELIVERY.c.webhook_id == _TABLE.c.id)
    .join(_ORGANIZATION, _ORGANIZATION.c.id == _TABLE.c.organization_id)
    .where(_IS_CLAIMED, _TABLE.c.disabled_at.is_(None), _ORGANIZATION.c.removed_at.is_(None))
)
_WHOLE: Select[Any] = select(*_TABLE.c).where(_TABLE.c.id == bindparam("webhook"))
_DUE_AT = bindparam("new_due_at", type_=_TIME)
_LAST = {
    "last_at": func.coalesce(bindparam("last", type_=_TIME), _DELIVERY.c.last_at),
    "last_status": bindparam("status"),
    "last_reason": bindparam("reason"),
}
_TAKEN = {"delivered_number": bindparam("delivered"), "delivered_at": bindparam("delivered_at_", type_=_TIME)}
_STEP = {"next_number": bindparam("number"), "due_at": _DUE_AT}
_GOOD = {**_STEP, "claim": bindparam("new_claim"), "attempts": 0, "failing_since": None}
_BAD = {
    **_STEP,
    **_LAST,
    "claim": None,
    "attempts": bindparam("new_attempts"),
    "failing_since": bindparam("since", type_=_TIME),
}


def _set(**values: Any) -> Any:
    return update(_DELIVERY).where(_IS_CLAIMED).values(**values).returning(_DELIVERY.c.webhook_id)


# What moves without an attempt leaves what the last one was.
_ADVANCE = _set(**_STEP, claim=bindparam("new_claim"))
_DELIVER = _set(**_GOOD, **_LAST, **_TAKEN)
_FAIL = _set(**_BAD)
_DELIVER_AND_FAIL = _set(**_BAD, **_TAKEN)
_STOP = update(_DELIVERY).where(_DELIVERY.c.webhook_id == bindparam("webhook")).values(due_at=None)
_DISABLE = (
    update(_TABLE)
    .where(_TABLE.c.id == bindparam("webhook"))
    .values(
        disabled_at=bindparam("moment", type_=_TIME),
        updated_at=bindparam("moment", type_=_TIME),
        disabled_reason=bindparam("stop"),
    )
)
_IS_ACTIVE = _DELIVERY.c.due_at.is_not(None)
_FIGURES = select(
    func.count().filter(_IS_ACTIVE, _DELIVERY.c.attempts > 0).label("failing"),
    func.count().filter(_DELIVERY.c.due_at.is_(None)).label("disabled"),
    func.sum(func.coalesce(_SIZE, 0) - _DELIVERY.c.next_number).filter(_IS_ACTIVE).label("behind"),
).select_from(_DELIVERY)
