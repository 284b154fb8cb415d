"""The checks of events by ``normata check``: changed, missing, inserted, or not sealed for a long time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

from sqlalchemy import bindparam, func, or_, select

from normata.core.db.transaction import Transaction
from normata.core.db.types import format_timestamp
from normata.core.schema.table import sql_table
from normata.events.contents import Contents, contents_of, parts_of
from normata.events.erasures import Erasure, stored_erasures
from normata.events.keys import Signer
from normata.events.model import AuditEvent, EventCheckpoint, EventLeaf, UnsealedEvent
from normata.events.sealing import named
from normata.events.seals import Seals, owners, seals_of, sentences

_PATIENCE = timedelta(minutes=1)  # an event without a leaf is reported after that time


def event_faults(transaction: Transaction, signer: Signer | None = None) -> Iterator[str]:
    """The faults of events and their logs, a sentence each, in one transaction. Raises KeyUnusable.

    ``signer`` has the key that erasures have to be signed with. It finds all changes by hand, unless somebody has
    rewritten events, leaves and checkpoints consistently. A checkpoint that was stored elsewhere detects that.
    """
    every = [seals_of(transaction, owner) for owner in owners(transaction)]
    parts = [part for seals in every for part in parts_of(seals.owner, 0, seals.end)]
    contents = [contents_of(transaction, part) for part in parts]
    yield from log_faults(transaction, every, contents, signer)
    yield from unsealed_faults(transaction)


def log_faults(
    transaction: Transaction, every: Iterable[Seals], contents: Iterable[Contents], signer: Signer | None
) -> Iterator[str]:
    """The faults of logs whose seals and contents were checked before. Raises KeyUnusable.

    Erasures since then are found in this transaction, which also reads their events.
    """
    by_owner: defaultdict[str, list[Contents]] = defaultdict(list)
    for one in contents:
        by_owner[one.part.owner].append(one)
    # This query reads all events, so it is only made if some have no content.
    is_any_empty = any(one.empty for some in by_owner.values() for one in some)
    erasures = stored_erasures(transaction, signer) if is_any_empty else {}
    for seals in every:
        of_log = erasures.get(seals.owner, {})
        faults = [fault for one in by_owner[seals.owner] for fault in one.faults]
        for number, event_id in (place for one in by_owner[seals.owner] for place in one.empty):
            name = f"the event {event_id} (leaf {number})"
            faults += ((number, fault) for fault in _erasure_faults(name, of_log.get(event_id)))
        yield from sentences(seals, faults)


def a_minute_ago() -> str:
    """The time before which events should have been sealed."""
    return format_timestamp(datetime.now(UTC) - _PATIENCE)


def _erasure_faults(name: str, erasure: Erasure | None) -> Iterator[str]:
    if erasure is None:
        yield f"{name} has lost its content, and no event records an erasure"
    elif not erasure.is_signed:
        yield (
            f"{name} has lost its content; the event {erasure.event_id} says that it was erased, and is not signed with"
            " the key of the events"
        )


def pending(transaction: Transaction) -> tuple[int, str | None]:
    """The number of events to be sealed, and the time of the oldest; null if there is none.

    This is not a fault, however old they are: the backup of a busy service has some, and nothing seals them there.
    """
    count, since = transaction.rows(_PENDING)[0]
    return count, since


def _passed_over(transaction: Transaction) -> str:
    """The time before which noted events should have been sealed, because sealers have worked since then."""
    last = transaction.scalar(_LAST_SEAL)
    moment = datetime.fromisoformat(last) if last else datetime(1970, 1, 2, tzinfo=UTC)
    return format_timestamp(moment - _PATIENCE)


def unsealed_faults(transaction: Transaction) -> Iterator[str]:
    """The events that nothing will seal, or that sealing has passed over, a sentence each."""
    for row in transaction.stream(_WITHOUT_LEAF, {"moment": _passed_over(transaction)}):
        event = f"the event {row.id} of {named(row.organization_id or '')}"
        if row.owner is None:
            yield f"{event} has no leaf, and nothing will seal it: it was inserted by hand, or its note was removed"
        elif row.owner != (row.organization_id or ""):
            yield f"{event} was inserted by hand: it is noted to be sealed for {named(row.owner)}"
        else:
            yield (
                f"{event} has not been sealed since {row.at}, and later ones were: it was inserted by hand, or sealing"
                " fails"
            )
    for event_id in transaction.scalars(_NOTED_AGAIN):
        yield f"the event {event_id} is noted to be sealed, and is sealed already: the note was inserted by hand"
    for event_id in transaction.scalars(_GONE):
        yield f"the event {event_id} is missing: it was removed before it was sealed"


_EVENT, _LEAF = sql_table(AuditEvent), sql_table(EventLeaf)
_CHECKPOINT, _UNSEALED = sql_table(EventCheckpoint), sql_table(UnsealedEvent)

# Whatever time the event claims: only noted events wait to be sealed, and not for long.
_WITHOUT_LEAF = (
    select(_EVENT.c.id, _EVENT.c.organization_id, _EVENT.c.at, _UNSEALED.c.owner)
    .outerjoin(_LEAF, _LEAF.c.event_id == _EVENT.c.id)
    .outerjoin(_UNSEALED, _UNSEALED.c.event_id == _EVENT.c.id)
    .where(
        _LEAF.c.event_id.is_(None),
        or_(
            _UNSEALED.c.event_id.is_(None),
            _UNSEALED.c.owner != func.coalesce(_EVENT.c.organization_id, ""),
            _EVENT.c.at < bindparam("moment", type_=_EVENT.c.at.type),
        ),
    )
    .order_by(_EVENT.c.at, _EVENT.c.id)
)
_LAST_SEAL = select(func.max(_CHECKPOINT.c.at))
_PENDING = (
    select(func.count(), func.min(_EVENT.c.at))
    .select_from(_UNSEALED)
    .join(_EVENT, _EVENT.c.id == _UNSEALED.c.event_id)
    .outerjoin(_LEAF, _LEAF.c.event_id == _EVENT.c.id)
    .where(_LEAF.c.event_id.is_(None))
)
_NOTED_AGAIN = (
    select(_UNSEALED.c.event_id).join(_LEAF, _LEAF.c.event_id == _UNSEALED.c.event_id).order_by(_UNSEALED.c.event_id)
)
_GONE = (
    select(_UNSEALED.c.event_id)
    .outerjoin(_EVENT, _EVENT.c.id == _UNSEALED.c.event_id)
    .where(_EVENT.c.id.is_(None))
    .order_by(_UNSEALED.c.event_id)
)
