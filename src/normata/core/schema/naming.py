"""Names of rows in one common shape, by id or for choosing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Field
from sqlalchemy import ColumnElement, Select, UnaryExpression, bindparam

from normata.core.db.transaction import Transaction
from normata.core.db.trigrams import NO_HITS, among_few
from normata.core.schema.fields import Identifier
from normata.core.schema.paging import Found, PageQuery, Search, envelope, fetch_page
from normata.core.schema.positions import with_todays_position
from normata.core.schema.text import fold
from normata.core.schema.wire import Wire
from normata.core.schema.word_search import matching

_MAX_IDS = 100  # the number of rows on a page


class Name(Wire):
    """The name of a row."""

    id: str = Field(description="Its id.")
    label: str = Field(description="Its name, title or acronym.")
    identifier: str | None = Field(
        description="What tells it from others of the same name: a short id, or the identifier of a control or a"
        " framework. Null where there is none."
    )
    is_live: bool = Field(
        description="False for what is archived or removed, for frameworks that are not adopted, and their controls."
    )
    control_id: str | None = Field(description="The control that an assessment is about; null for all else.")


class NameQuery(PageQuery):
    """The query for names. A subclass adds the kind."""

    id: Annotated[
        list[Identifier] | None,
        Field(max_length=_MAX_IDS, description="Only what has this id, or one of these where it is repeated."),
    ] = None
    search: Annotated[Search | None, Field(description="Words that must all occur in it, in any case.")] = None
    archived: Annotated[
        Literal["exclude", "include"],
        Field(description="Whether what is not live is listed, too."),
    ] = "exclude"


@dataclass(frozen=True, eq=False)
class Naming:
    """How rows of a kind are named.

    ``rows`` selects those of the organization, which is the parameter ``organization``, with the columns of
    :class:`Name`, but ``is_live``. Then come the expressions: the id, whether it is live, the folded text to search,
    and the order, which ends with the id. ``indexed`` is the table of the text if its texts are indexed, else empty;
    ``text_of`` the id of the text's row there, if it is another one. ``has_order`` are conditions that always hold for
    live rows: with these an index has them in the order. ``position`` is the sort key before the id if that is a
    position, which moves when others are added.
    """

    rows: Select[Any]
    id: ColumnElement[str]
    is_live: ColumnElement[bool]
    search_text: ColumnElement[str]
    order: Sequence[ColumnElement[Any] | UnaryExpression[Any]]
    indexed: str = ""
    text_of: ColumnElement[str] | None = None
    has_order: Sequence[ColumnElement[bool]] = ()
    position: ColumnElement[int] | None = None

    @cached_property
    def of_all(self) -> Select[Any]:
        """The names of all rows, live or not."""
        return self.rows.add_columns(self.is_live.label("is_live"))

    @cached_property
    def by_ids(self) -> Select[Any]:
        """The names of the rows with the parameter ``ids``. A page names rows of many kinds: it is built once."""
        return self.of_all.where(self.id.in_(bindparam("ids", expanding=True))).order_by(*self.order)

    @cached_property
    def position_of(self) -> Select[Any]:
        """The position of the row with the id ``last``."""
        assert self.position is not None  # noqa: S101 - narrows the type
        position: Select[Any] = self.rows.with_only_columns(self.position, maintain_column_froms=True)
        return position.where(self.id == bindparam("last"))


def list_names(transaction: Transaction, naming: Naming, query: NameQuery) -> dict[str, Any]:
    """A page of names, in two statements; in one if at most a page of ids is requested. Raises UnfitCursor.

    It takes one more after a cursor in an order of positions.
    """
    parameters: dict[str, Any] = {"organization": query.organization_id}
    if query.id is not None and not query.search and query.is_first and len(query.id) <= query.limit:
        of_ids = transaction.rows(naming.by_ids, parameters | {"ids": query.id})
        named = [name_of(row._asdict()) for row in of_ids if row.is_live or query.archived == "include"]
        return envelope(named, Found((), len(named)), query)
    statement = naming.of_all
    if query.id is not None:
        statement = statement.where(naming.id.in_(query.id))
    if query.archived == "exclude":
        statement = statement.where(naming.is_live)
    table, hits = naming.indexed, NO_HITS
    if query.search and table:
        hits = transaction.hits(fold(query.search).split(), query.organization_id, [table])
    if table in hits.few:
        statement = statement.where(among_few(naming.id if naming.text_of is None else naming.text_of, table))
        parameters |= hits.parameters()
    elif query.archived == "exclude" and query.id is None:
        statement = statement.where(*naming.has_order)
    if query.search:
        statement = statement.where(matching(naming.search_text, query.search, is_common=table in hits.common))
    if naming.position is not None:
        query = with_todays_position(transaction, query, naming.order, naming.position_of, parameters)
    found = fetch_page(transaction, statement, naming.order, query, parameters)
    return envelope([name_of(row._asdict()) for row in found.rows], found, query)


def name_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """A name in wire form, from a row with the columns of :class:`Name`; missing ones are null."""
    identifier = row.get("identifier")
    return {
        "id": row["id"],
        "label": row["label"],
        "identifier": None if identifier is None else str(identifier),
        "isLive": bool(row["is_live"]),
        "controlId": row.get("control_id"),
    }
