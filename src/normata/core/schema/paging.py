"""Paging, sorting and searching, for all lists."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Generic, Literal, NamedTuple, Self, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, StringConstraints
from pydantic.alias_generators import to_camel
from sqlalchemy import (
    Column,
    ColumnElement,
    Select,
    UnaryExpression,
    func,
    literal_column,
    select,
    true,
)

from normata.core.db.transaction import NO_PARAMETERS, Parameters, Transaction
from normata.core.schema.cursors import Cursor, Order, Part, SortKeys, decode, digest, encode
from normata.core.schema.fields import Timestamp
from normata.errors import PageTooDeep, UnfitCursor

Item = TypeVar("Item")

_INTEGER = re.compile(r"-?[0-9]+", re.ASCII)

MOST_COUNTED = 10_000  # rows of most lists; so far their pages have numbers, too

_MAX_OFFSET = 2**63 - 1  # the largest number that databases can handle

OrganizationId = Annotated[
    str,
    StringConstraints(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f\x7f]+$"),
    Field(description="The organization whose data is asked for: its id or its slug."),
]


def _strict_flag(value: object) -> object:
    """Only ``true`` and ``false`` (Python's ``True`` too): a looser reading hides slips such as ``unreadOnly=no``."""
    lowered = value.lower() if isinstance(value, str) else value
    return {"true": True, "false": False}.get(lowered, "") if isinstance(lowered, str) else lowered


QueryFlag = Annotated[bool, BeforeValidator(_strict_flag)]


def _trimmed_search(value: str) -> str:
    trimmed = value.strip()
    if "\0" in trimmed:
        raise ValueError("must not contain NUL")
    if len(trimmed) > 200:
        raise ValueError("must have at most 200 characters")
    return trimmed


Search = Annotated[
    str,
    AfterValidator(_trimmed_search),
    Field(
        description="Words that must all occur, in any case, in identifier, name, slug, purpose or description.",
        json_schema_extra={"maxLength": 200, "pattern": r"^[^\x00]*$"},
    ),
]
SortDirection = Annotated[
    Literal["asc", "desc"], Field(description="The direction of the order; ascending unless said.")
]


def _plain_integer(value: object) -> object:
    """Digits only: Pydantic would take 1_0 and 10.0 for ten, too."""
    return value if isinstance(value, int) or (isinstance(value, str) and _INTEGER.fullmatch(value)) else ""


# At the end of an annotation, because before the bounds it would hide them from OpenAPI.
digits_only = BeforeValidator(_plain_integer)


class Query(BaseModel):
    """The base of query models, without parameters.

    ``repeated`` has the arrays, which are repeated, and ``bracketed`` those that may also be written as ``name[]`` and
    ``name[0]``, both by their names on the wire.
    """

    model_config = ConfigDict(alias_generator=to_camel)

    repeated: ClassVar[tuple[str, ...]] = ()
    bracketed: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def read(cls, pairs: Sequence[tuple[str, str]]) -> Self:
        """The query from the names and values of a query string. If another than an array is repeated, the last counts.

        Raises :class:`pydantic.ValidationError`.
        """
        found: dict[str, Any] = dict(pairs)
        for repeated in found.keys() & cls.repeated:
            found[repeated] = [value for name, value in pairs if name == repeated]
        return cls.model_validate(found)


class OrganizationQuery(Query):
    """The query parameters of every request about an organization."""

    organization_id: OrganizationId


class PastQuery(OrganizationQuery):
    """The query of what can be read of the past."""

    as_of: Annotated[
        Timestamp | None,
        Field(
            description="What held at this moment instead of now; a plain date is the midnight (UTC) at its start."
            " Names and texts are today's. 400 if the moment is to come, or before the organization's past is known."
        ),
    ] = None


class OwnPageQuery(Query):
    """The query of a list of the caller's own rows.

    ``counts_all`` is true if the list counts all its rows, and answers every page by its number.
    """

    counts_all: ClassVar[bool] = False

    limit: Annotated[int, Field(ge=5, le=100, description="Items a page."), digits_only] = 100
    page: Annotated[int, Field(ge=1, description="The page, from 1. One past the end has no items."), digits_only] = 1
    cursor: Annotated[
        str | None,
        Field(
            description="The place where the page starts, from the link `next` of the page before, instead of `page`."
            " The other parameters must be the same, except for `limit`."
        ),
    ] = None

    _belongs_to: str = PrivateAttr("")
    _start: Cursor | None = PrivateAttr(None)

    @property
    def offset(self) -> int | None:
        """The number of rows before the page; null if it is too large for a database, so that the page is empty.

        With a cursor there are none: it says which rows come before.
        """
        offset = 0 if self.cursor is not None else (self.page - 1) * self.limit
        return offset if offset <= _MAX_OFFSET else None

    @property
    def is_first(self) -> bool:
        """Whether it is the query of the first page."""
        return self.page == 1 and self.cursor is None

    @property
    def start(self) -> Cursor | None:
        """The place where the page starts, if a cursor says so."""
        return self._start

    def of_list(self, name: str) -> Self:
        """The query for the list of this name: what cursors belong to. Raises UnfitCursor and PageTooDeep."""
        if not self.counts_all and (self.offset is None or self.offset >= MOST_COUNTED):
            raise PageTooDeep
        bound = self.model_copy()
        bound._belongs_to = digest(name, self.model_dump_json(exclude=_PLACE))
        if self.cursor is not None:
            if "page" in self.model_fields_set:
                raise UnfitCursor("cannot be combined with page", "combined")
            bound._start = decode(self.cursor, bound._belongs_to)
            bound.page = bound._start.page
        return bound

    def starting_after(self, keys: Sequence[Any]) -> Self:
        """The query with a cursor that starts after a row with these sort keys."""
        moved = self.model_copy()
        moved._start = None if self._start is None else self._start._replace(keys=tuple(keys))
        return moved

    def next_cursor(self, keys: Sequence[Any], *, is_uncounted: bool = False) -> str:
        """The cursor of the next page, after a row with these sort keys."""
        return encode(Cursor(self.page + 1, tuple(keys), is_uncounted), self._belongs_to)


_PLACE = {"limit", "page", "cursor"}  # where a page is in a list


class PageQuery(OwnPageQuery, OrganizationQuery):
    """The query of every list of an organization."""


class PastPageQuery(PageQuery, PastQuery):
    """The query of a list that can be read of the past."""


class FullyCountedPage(BaseModel, Generic[Item]):
    """The envelope of lists that count all their items."""

    items: list[Item]
    total: int = Field(description="How many items there are on all pages together, after filtering.")
    page: int
    limit: int


class Page(FullyCountedPage[Item], Generic[Item]):
    """The envelope of all other lists."""

    total: int = Field(
        description="How many items there are on all pages together, after filtering; if there are more than 10,000,"
        " this may be 10,000."
    )
    total_is_exact: bool = Field(
        alias="totalIsExact", description="Whether `total` is their number; if not, there are more of them."
    )


class Counted(NamedTuple):
    """A number of rows; if it is not exact, there are more."""

    total: int
    is_exact: bool = True


MANY = Counted(MOST_COUNTED, is_exact=False)


@dataclass(frozen=True, slots=True)
class Found:
    """The rows of a page, how many there are on all pages, and the cursor of the next page, null after the last row.

    If the total is not exact, there are more rows.
    """

    rows: Sequence[Any] = ()
    total: int = 0
    is_exact: bool = True
    next: str | None = None


class Envelope(dict[str, Any]):
    """A page in wire form, with the cursor of the next one, which the header `Link` has."""

    next: str | None = None


def envelope(items: Sequence[Mapping[str, Any]], found: Found, query: OwnPageQuery) -> Envelope:
    """A page in wire form."""
    made = Envelope(items=items, total=found.total, page=query.page, limit=query.limit)
    if not query.counts_all:
        made["totalIsExact"] = found.is_exact
    made.next = found.next
    return made


def fetch_page(
    transaction: Transaction,
    rows: Select[Any],
    order: Order,
    query: OwnPageQuery,
    parameters: Parameters = NO_PARAMETERS,
    *,
    counted: Counted | None = None,
    scans: bool = False,
    all_rows: Select[Any] | None = None,
    parts: Iterable[Part] | None = None,
) -> Found:
    """The rows of one page in ``order``, and the total. Raises UnfitCursor.

    It takes two statements; one less if the total is known (``counted``), or nothing is behind the page, and one more
    after a cursor where the first null may be on the page. ``order`` must be total (end with an id), so that pages
    never overlap. ``scans`` is true if the database must read every row anyway: then it counts them along with the
    page. Each row ends with its sort keys, after its own columns. ``all_rows`` are counted if ``rows`` has only those
    that can be on the page; null if it has all. ``parts`` are the rows from the place of the cursor on, where indexes
    have parts in ``order``, but not the whole; null to read them as they are. A statement reads each that is needed.
    """
    keys = SortKeys(order)
    start = query.start
    counts_along = scans and counted is None and start is None
    page = rows.add_columns(func.count().over().label("total")) if counts_along else rows
    page = page.add_columns(*keys.columns)
    if parts is None:
        parts = [Part(true(), keys.order)] if start is None else keys.after(start.keys)
    found: list[Any] = []
    if query.offset is not None:
        skipped, before = query.offset, None
        for condition, ordering in parts:
            part = page.where(condition).order_by(*ordering)
            if before is not None and skipped:
                ahead = select(func.count()).select_from(some_of(before).limit(skipped).subquery())
                skipped -= transaction.scalar(ahead, parameters) or 0
            # One more, to see whether there is a next page.
            more = transaction.rows(part.offset(skipped).limit(query.limit + 1 - len(found)), parameters)
            found += more
            if len(found) > query.limit:
                break
            skipped, before = 0 if more else skipped, part
    if counted is None and counts_along and found:
        counted = Counted(found[0].total)
    elif counted is None and start is None and len(found) <= query.limit and (found or query.offset == 0):
        counted = Counted((query.offset or 0) + len(found))
    return found_of(
        found, keys, counted or count(transaction, rows if all_rows is None else all_rows, query, parameters), query
    )


def found_of(rows: Sequence[Any], keys: SortKeys, counted: Counted, query: OwnPageQuery) -> Found:
    """The page of ``rows``: those on it, and one more if there is a next page; each ends with its sort keys."""
    shown, has_more = rows[: query.limit], len(rows) > query.limit
    following = query.next_cursor(keys.of(shown[-1]), is_uncounted=not counted.is_exact) if has_more else None
    return Found(shown, counted.total, counted.is_exact, following)


def count(
    transaction: Transaction, rows: Select[Any], query: OwnPageQuery, parameters: Parameters = NO_PARAMETERS
) -> Counted:
    """How many rows there are; most lists count no more than :data:`MOST_COUNTED`, and on their first pages only."""
    if query.counts_all:
        return Counted(count_rows(transaction, rows, parameters))
    if query.start is not None and query.start.is_uncounted:
        return MANY
    some = some_of(rows).subquery()
    return counted_up_to_most(transaction.scalar(select(func.count()).select_from(some), parameters) or 0)


def some_of(rows: Select[Any]) -> Select[Any]:
    """As many rows as :func:`counted_up_to_most` needs, without their columns."""
    ones: Select[Any] = rows.with_only_columns(literal_column("1"), maintain_column_froms=True)
    return ones.limit(MOST_COUNTED + 1)


def counted_up_to_most(number: int) -> Counted:
    """The total of a list of which so many rows were counted."""
    return Counted(number) if number <= MOST_COUNTED else MANY


def count_rows(transaction: Transaction, rows: Select[Any], parameters: Parameters = NO_PARAMETERS) -> int:
    """How many rows there are."""
    counted = rows.with_only_columns(func.count(), maintain_column_froms=True).order_by(None)
    return transaction.scalar(counted, parameters) or 0


def ordered(
    keys: Sequence[ColumnElement[Any]], direction: str | None, *, tie: ColumnElement[Any]
) -> list[ColumnElement[Any] | UnaryExpression[Any]]:
    """``keys`` in ``direction`` (null: ascending), nulls last in both directions, then ``tie`` ascending."""
    order: list[ColumnElement[Any] | UnaryExpression[Any]] = []
    for key in keys:
        one = key.desc() if direction == "desc" else key.asc()
        # PostgreSQL reads no order with nulls last from an index backwards, even where there are none.
        order.append(one if isinstance(key, Column) and not key.nullable else one.nulls_last())
    return [*order, tie.asc()]
