"""Names of rows in one common shape, by id or for choosing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field
from sqlalchemy import ColumnElement, Select, UnaryExpression

from normata.core.db.transaction import Transaction
from normata.core.schema.fields import Identifier
from normata.core.schema.paging import PageQuery, Search, envelope, fetch_page, matching
from normata.core.schema.wire import Wire

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


class Naming(NamedTuple):
    """How rows of a kind are named.

    ``rows`` selects those of the organization, with the columns of :class:`Name`, but ``is_live``. Then come the
    expressions: the id, whether it is live, the folded text to search, and the order, which ends with the id.
    """

    rows: Select[Any]
    id: ColumnElement[str]
    is_live: ColumnElement[bool]
    search_text: ColumnElement[str]
    order: Sequence[ColumnElement[Any] | UnaryExpression[Any]]


def list_names(transaction: Transaction, naming: Naming, query: NameQuery) -> dict[str, Any]:
    """A page of names, in two statements; in one if at most a page of ids is requested."""
    statement = naming.rows.add_columns(naming.is_live.label("is_live"))
    if query.id is not None:
        statement = statement.where(naming.id.in_(query.id))
    if query.archived == "exclude":
        statement = statement.where(naming.is_live)
    if query.search:
        statement = statement.where(matching(naming.search_text, query.search))
    if query.id is not None and query.offset == 0 and len(query.id) <= query.limit:
        rows: Sequence[Any] = transaction.rows(statement.order_by(*naming.order))
        return envelope([name_of(row._asdict()) for row in rows], len(rows), query)
    rows, total = fetch_page(transaction, statement, naming.order, query)
    return envelope([name_of(row._asdict()) for row in rows], total, query)


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
