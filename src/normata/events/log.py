"""The log of an organization by number: only what is sealed, so that whoever follows it misses nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field
from sqlalchemy import bindparam, select

from normata.core.db.transaction import Transaction
from normata.core.http.formats import FormatQuery
from normata.core.schema.table import sql_table
from normata.core.schema.wire import Wire, encode
from normata.events.content import sealed_text
from normata.events.model import AuditEvent, EventLeaf
from normata.events.proofs import size_of

MOST = 1_000  # events at a time
_USUAL = 100
_IN_A_PART = 250  # events that are in memory while lines are sent
LAST_NUMBER = 2**53 - 1  # that JSON has in every language


class SealedEvent(Wire):
    """An event as it was sealed."""

    number: int = Field(description="Its number in the log, from 0, without a hole. It never changes.")
    id: str = Field(description="The id of the event.")
    leaf_hash: str = Field(
        description="The hash of its leaf: SHA-256 of a zero byte and `body`, in hexadecimal digits."
    )
    body: str = Field(
        description="The exact text that was sealed: JSON with the fields of an event, and a salt. Empty if the content"
        " was erased; number and hash stay."
    )


class SealedEvents(Wire):
    """Some sealed events of a log, in order."""

    items: list[SealedEvent]
    next: int | None = Field(
        description="What `after` is in the request for what follows, also if that is not there yet: the number of the"
        " last item, or the `after` of the request; null if the log is empty."
    )
    size: int = Field(description="The number of sealed events: the `size` of the last checkpoint.")


class LogQuery(FormatQuery):
    """The query of the log by number."""

    format: Annotated[
        Literal["json", "ndjson"] | None,
        Field(description="The format of the answer. It wins over `Accept`, so that a link can name it."),
    ] = None  # type: ignore[assignment] # it has formats of its own
    after: Annotated[
        int | None, Field(ge=0, le=LAST_NUMBER, description="Only larger numbers. Left out: from the beginning.")
    ] = None
    limit: Annotated[
        int | None, Field(ge=1, le=MOST, description="At most so many. Left out: 100 as JSON, all as lines.")
    ] = None


def read_log(transaction: Transaction, query: LogQuery) -> dict[str, Any]:
    """The events after a number, in wire form, in two statements. Each takes as long wherever in the log it begins."""
    rows = _rows(transaction, query.organization_id, query.after, query.limit or _USUAL)
    return {
        "items": _items(rows),
        "next": rows[-1].number if rows else query.after,
        "size": size_of(transaction, query.organization_id),
    }


class _Place(NamedTuple):
    """The last number that was sent, and how many more events are wanted; null for all."""

    after: int | None
    wanted: int | None


def read_lines(transaction: Transaction, query: LogQuery, place: _Place | None) -> tuple[bytes, _Place | None]:
    """The lines of some events after a place, and the next place; null if all are there that are sealed by now."""
    after, wanted = place or _Place(query.after, query.limit)
    most = _IN_A_PART if wanted is None else min(wanted, _IN_A_PART)
    rows = _rows(transaction, query.organization_id, after, most)
    left = None if wanted is None else wanted - len(rows)
    is_over = len(rows) < most or left == 0
    return as_lines({"items": _items(rows)}), None if is_over else _Place(rows[-1].number, left)


def as_lines(answer: Mapping[str, Any]) -> bytes:
    """The items of an answer as lines of JSON."""
    return b"".join(encode(item) + b"\n" for item in answer["items"])


def _rows(transaction: Transaction, organization_id: str, after: int | None, limit: int) -> Sequence[Any]:
    return sealed_rows(transaction, organization_id, 0 if after is None else after + 1, limit)


def sealed_rows(transaction: Transaction, organization_id: str, first: int, limit: int) -> Sequence[Any]:
    """The leaves of an organization from a number on, each with its event, which is null in all columns if missing."""
    return transaction.rows(_LEAVES, {"owner": organization_id, "first": first, "limit": limit})


def _items(rows: Sequence[Any]) -> list[dict[str, Any]]:
    # An event that is missing must not look like an erased one; `normata check` and `normata events verify` find it.
    return [as_item(row) for row in rows if row.id is not None]


def as_item(row: Any) -> dict[str, Any]:
    """A sealed event in wire form."""
    return {"number": row.number, "id": row.event_id, "leafHash": row.hash, "body": sealed_text(row)}


_EVENT, _LEAF = sql_table(AuditEvent), sql_table(EventLeaf)
_LEAVES = (
    select(_LEAF.c.number, _LEAF.c.event_id, _LEAF.c.hash, *_EVENT.c)
    .outerjoin(_EVENT, _EVENT.c.id == _LEAF.c.event_id)
    .where(_LEAF.c.organization_id == bindparam("owner"), _LEAF.c.number >= bindparam("first"))
    .order_by(_LEAF.c.number)
    .limit(bindparam("limit"))
)
