"""Pages in catalog order: the positions of their controls, so that no rows have to be sorted or skipped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from sqlalchemy import ColumnElement, Select, String, and_, cast, func, select

from normata.core.db.transaction import NO_PARAMETERS, Parameters, Transaction
from normata.core.schema.word_search import matching
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


class Stretch(NamedTuple):
    """The positions of a framework's controls, from the first to the last one, that a page can show."""

    framework_id: str
    first: int
    last: int
    is_all: bool = True

    @property
    def length(self) -> int:
        """The number of positions."""
        return self.last - self.first + 1


class OnPage(NamedTuple):
    """The positions on a page by framework, the total of the list, and whether there is a next page."""

    positions: Mapping[str, Sequence[int]]
    total: int
    has_next: bool


def part(query: SortedQuery, left: int) -> tuple[int, int, bool]:
    """The first row of the page and the row behind it, of so many that are ``left``, and whether there is a next page.

    They are in catalog order, and counted from the end for descending order.
    """
    start = left if query.offset is None else min(query.offset, left)
    stop = min(start + query.limit, left)
    return *((left - stop, left - start) if query.sort_direction == "desc" else (start, stop)), stop < left


def spans(stretches: Iterable[Stretch], start: int, stop: int) -> Iterator[Stretch]:
    """The positions of the rows from ``start`` up to ``stop``, of ``stretches`` in the order of the list."""
    for one in stretches:
        first, last = max(start, 0), min(stop, one.length) - 1
        if first <= last:
            yield Stretch(one.framework_id, one.first + first, one.first + last)
        start -= one.length
        stop -= one.length


def matching_positions(
    transaction: Transaction,
    stretches: Sequence[Stretch],
    query: SortedQuery,
    found: Select[Any],
    parameters: Parameters = NO_PARAMETERS,
) -> OnPage:
    """The positions on the page of the controls that are ``found``.

    ``found`` is a selection of :data:`PLACES`, ``stretches`` what the page can show of them. The database must read
    every control anyway. So it returns the positions of all that it finds, as a text for each framework: sorting and
    counting them would take longer than sending them.
    """
    rows = transaction.rows(found, parameters)
    places = {row.framework_id: row.places for row in rows}
    counts = {row.framework_id: row.count for row in rows}
    for one in stretches:
        if not one.is_all and one.framework_id in places:
            counts[one.framework_id] = len(_positions(places, one))
    start, stop, has_next = part(query, sum(counts.get(one.framework_id, 0) for one in stretches))
    wanted: dict[str, list[int]] = {}
    for one in stretches:
        count = counts.get(one.framework_id, 0)
        if max(start, 0) < min(stop, count):
            wanted[one.framework_id] = _positions(places, one)[max(start, 0) : stop]
        start -= count
        stop -= count
    return OnPage(wanted, sum(row.count for row in rows), has_next)


def _positions(places: Mapping[str, str], stretch: Stretch) -> list[int]:
    found = sorted(map(int, places[stretch.framework_id].split(",")))
    return found if stretch.is_all else [place for place in found if stretch.first <= place <= stretch.last]


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
