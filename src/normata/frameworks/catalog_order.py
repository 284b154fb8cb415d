"""Pages in catalog order: the positions of their controls, so that no rows have to be sorted or skipped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from sqlalchemy import ColumnElement, Select, String, and_, cast, func, select

from normata.core.db.transaction import NO_PARAMETERS, Parameters, Transaction
from normata.core.schema.paging import matching
from normata.frameworks.model import Control


class SortedQuery(Protocol):
    """The parameters of a page."""

    @property
    def limit(self) -> int:
        """The maximum number of items on the page."""

    @property
    def sort_direction(self) -> str | None:
        """``desc`` from the end."""

    @property
    def offset(self) -> int | None:
        """The number of rows before the page; null for a page that cannot exist."""


def part(query: SortedQuery, total: int) -> tuple[int, int]:
    """The first and last row of the page in catalog order, counted from the end for descending order."""
    start = total if query.offset is None else min(query.offset, total)
    stop = min(start + query.limit, total)
    return (total - stop, total - start) if query.sort_direction == "desc" else (start, stop)


def spans(frameworks: Iterable[tuple[str, int]], start: int, stop: int) -> Iterator[tuple[str, int, int]]:
    """The positions (framework, first, last) of the rows from ``start`` up to ``stop``.

    ``frameworks`` has each framework with the number of its controls, in the order of the list.
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
    """The positions on the page, by framework, of the controls that are ``found``, and their total.

    ``found`` is a selection of :data:`PLACES`. The database must read every control anyway. So it returns the positions
    of all that it finds, as a text for each framework: sorting and counting them would take longer than sending them.
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
    """The condition that a control has every word of a search."""
    # The first condition always holds. With it, the databases use the index for searches.
    return and_(_SEARCHED >= "", matching(_SEARCHED, search))


_SEARCHED = Control.search_text.expression
# The positions of the controls of each framework, as one text.
PLACES = select(
    Control.framework_id,
    func.count().label("count"),
    func.aggregate_strings(cast(Control.position, String), ",").label("places"),
).group_by(Control.framework_id)
