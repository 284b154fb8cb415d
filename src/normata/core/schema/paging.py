"""Paging, sorting and searching, for all lists."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Generic, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel
from sqlalchemy import Column, ColumnElement, Select, String, UnaryExpression, and_, bindparam, func

from normata.core.db.transaction import NO_PARAMETERS, Parameters, Transaction
from normata.core.schema.fields import Timestamp
from normata.core.schema.text import fold

Item = TypeVar("Item")

_INTEGER = re.compile(r"-?[0-9]+", re.ASCII)

FEW_WORDS = 4  # words in a search; statements for so many are worth caching

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
    """The base of query models, without parameters."""

    model_config = ConfigDict(alias_generator=to_camel)

    @classmethod
    def read(cls, pairs: Sequence[tuple[str, str]]) -> Self:
        """The query from the names and values of a query string. If a name is repeated, the last value counts.

        Raises :class:`pydantic.ValidationError`.
        """
        return cls.model_validate(dict(pairs))


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
    """The query of a list of the caller's own rows."""

    limit: Annotated[int, Field(ge=5, le=100, description="Items a page."), digits_only] = 100
    page: Annotated[int, Field(ge=1, description="The page, from 1. One past the end has no items."), digits_only] = 1

    @property
    def offset(self) -> int | None:
        """The number of rows before the page; null if it is too large for a database, so that the page is empty."""
        offset = (self.page - 1) * self.limit
        return offset if offset <= _MAX_OFFSET else None


class PageQuery(OwnPageQuery, OrganizationQuery):
    """The query of every list of an organization."""


class PastPageQuery(PageQuery, PastQuery):
    """The query of a list that can be read of the past."""


class Page(BaseModel, Generic[Item]):
    """The envelope of all lists."""

    items: list[Item]
    total: int = Field(description="How many items there are on all pages together, after filtering.")
    page: int
    limit: int


def envelope(items: Sequence[Mapping[str, Any]], total: int, query: OwnPageQuery) -> dict[str, Any]:
    """A page in wire form."""
    return {"items": items, "total": total, "page": query.page, "limit": query.limit}


def fetch_page(
    transaction: Transaction,
    rows: Select[Any],
    order: Sequence[ColumnElement[Any] | UnaryExpression[Any]],
    query: OwnPageQuery,
    parameters: Parameters = NO_PARAMETERS,
    *,
    total: int | None = None,
    scans: bool = False,
    count: Callable[[], int] | None = None,
) -> tuple[Sequence[Any], int]:
    """The rows of one page in ``order``, and the total, in at most two statements.

    It takes one if the total is known, or the first page is not full. ``order`` must be total (end with an id), so that
    pages never overlap. ``scans`` is true if the database must read every row anyway: then it counts them along with
    the page. ``count`` counts the rows; null to use a statement.
    """
    page = rows.order_by(*order).limit(query.limit).offset(query.offset)
    count = count or (lambda: count_rows(transaction, rows, parameters))
    if total is None and scans and query.offset is not None:
        counting = rows.add_columns(func.count().over().label("total"))
        found = transaction.rows(counting.order_by(*order).limit(query.limit).offset(query.offset), parameters)
        if found or query.offset == 0:  # an empty first page means that there are none, so nothing has to be counted
            return found, found[0].total if found else 0
    if total is None and query.offset == 0:
        found = transaction.rows(page, parameters)
        return found, len(found) if len(found) < query.limit else count()
    total = count() if total is None else total
    if query.offset is None or query.offset >= total:
        return [], total
    return transaction.rows(page, parameters), total


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


def matching(column: ColumnElement[str], search: str) -> ColumnElement[bool]:
    """The condition that ``column``, see :func:`normata.core.schema.text.search_text`, has every word of ``search``."""
    return and_(True, *(column.contains(word, autoescape=True) for word in fold(search).split()))


def has_words(column: ColumnElement[str], name: str, number: int) -> ColumnElement[bool]:
    """The condition that ``column`` has a number of words, which are parameters: see :func:`words_as`.

    It is for statements that are built once, because large ones take longer to build than to execute.
    """
    words = (bindparam(f"{name}_{place}", type_=String()) for place in range(number))
    return and_(True, *(column.like(word, escape="/") for word in words))


def words_as(name: str, words: Sequence[str]) -> dict[str, str]:
    """The words of a search as the parameters of :func:`has_words`."""
    return {f"{name}_{place}": f"%{_SPECIAL.sub(_escaped, word)}%" for place, word in enumerate(words)}


_SPECIAL = re.compile("[/%_]")  # in a pattern of LIKE


def _escaped(match: re.Match[str]) -> str:
    return f"/{match[0]}"
