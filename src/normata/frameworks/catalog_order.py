"""Pages in catalog order: where their controls stand, so that nothing has to be sorted or skipped to find them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from sqlalchemy import ColumnElement, Select, String, and_, cast, func, select

from normata.core.db.transaction import NO_PARAMETERS, Parameters, Transaction
from normata.core.schema.paging import matching
from normata.frameworks.model import Control


class SortedQuery(Protocol):
    """What a page is asked for with."""

    @property
    def limit(self) -> int:
        """How many items the page has at most."""

    @property
    def sort_direction(self) -> str | None:
        """``desc`` from the end."""

    @property
    def offset(self) -> int | None:
        """How many rows come before the page; null for a page that cannot exist."""


def part(query: SortedQuery, total: int) -> tuple[int, int]:
    """From which row in catalog order up to which the page goes; from the end where that is the order."""
    start = total if query.offset is None else min(query.offset, total)
    stop = min(start + query.limit, total)
    return (total - stop, total - start) if query.sort_direction == "desc" else (start, stop)


def spans(frameworks: Iterable[tuple[str, int]], start: int, stop: int) -> Iterator[tuple[str, int, int]]:
    """Which places (framework, first, last) the rows from ``start`` up to ``stop`` have.

    ``frameworks`` has each framework with how many controls it has, in the order of the list.
    """
    for framework_id, controls in frameworks:
        first, last = max(start, 0), min(stop, controls) - 1
        if first <= last:
            yield framework_id, first, last
        start -= controls
        stop -= controls


def matching_positions(
    transaction: Transaction,
    framework_ids: Sequence[str],
    query: SortedQuery,
    found: Select[Any],
    parameters: Parameters = NO_PARAMETERS,
) -> tuple[dict[str, list[int]], int]:
    """The places on the page, by framework, of the controls that are ``found``, and how many these are in all.

    ``found`` is a selection of :data:`PLACES`. The database has to look at every control anyway. So it tells the places
    of all that it finds, as a text for each framework: to sort and to count them takes it longer than to send them.
    """
    rows = transaction.rows(found.where(Control.framework_id.in_(framework_ids)), parameters)
    by_framework = {row.framework_id: row for row in rows}
    total = sum(row.count for row in rows)
    start, stop = part(query, total)
    wanted: dict[str, list[int]] = {}
    for framework_id in framework_ids:
        count = by_framework[framework_id].count if framework_id in by_framework else 0
        if max(start, 0) < min(stop, count):
            there = sorted(map(int, by_framework[framework_id].places.split(",")))
            wanted[framework_id] = there[max(start, 0) : stop]
        start -= count
        stop -= count
    return wanted, total


def searched(search: str) -> ColumnElement[bool]:
    """Where a control has every word of a search."""
    # The condition of the index for searches, which always holds, and the words.
    return and_(_SEARCHED >= "", matching(_SEARCHED, search))


_SEARCHED = Control.search_text.expression
# The places of controls, of each framework in one text.
PLACES = select(
    Control.framework_id,
    func.count().label("count"),
    func.aggregate_strings(cast(Control.position, String), ",").label("places"),
).group_by(Control.framework_id)
