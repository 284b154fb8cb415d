"""The list of the frameworks that an organization can see, with whether it has adopted them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field
from sqlalchemy import BindParameter, ColumnElement, Select, and_, bindparam, select, type_coerce

from normata.core.db.transaction import Transaction
from normata.core.db.types import UtcTimestamp
from normata.core.schema.fields import Timestamp
from normata.core.schema.paging import PastPageQuery, QueryFlag, Search, SortDirection, envelope, fetch_page, ordered
from normata.core.schema.table import sql_table
from normata.core.schema.wire import Wire, listed_columns, wire, wire_names
from normata.core.schema.word_search import matching
from normata.errors import NotFound
from normata.frameworks.model import Framework as FrameworkTable
from normata.frameworks.model import FrameworkAdoption
from normata.frameworks.visibility import visible_to


class FrameworkCount(Wire):
    """The number of a framework's controls."""

    controls: int


class Adoption(Wire):
    """The adoption of a framework by the organization, with its time."""

    id: str
    adopted_at: Timestamp


class Framework(wire(FrameworkTable)):  # type: ignore[misc] # the base class is created from the table
    """A catalog of controls: a centralized one, or an organization's own (then `organizationId` is set)."""

    is_adopted: bool
    count: FrameworkCount = Field(alias="_count")
    framework_adoptions: list[Adoption] = Field(description="`adoption` as an array: one entry, or none.")
    adoption: Adoption | None


class FrameworkQuery(PastPageQuery):
    """The query of the list of frameworks."""

    counts_all: ClassVar[bool] = True

    include_user_defined: Annotated[
        QueryFlag, Field(description="Whether the organization's own frameworks are listed, too.")
    ] = True
    adopted_only: Annotated[QueryFlag, Field(description="Whether only adopted frameworks are listed.")] = False
    sort_column: Annotated[
        Literal[
            "name",
            "identifier",
            "slug",
            "version",
            "controls",
            "adoptedAt",
            "publishedAt",
            "createdAt",
            "updatedAt",
        ]
        | None,
        Field(description="What to sort by; unless said, by name."),
    ] = None
    sort_direction: SortDirection | None = None
    search: Search | None = None


_SORT_KEYS: dict[str | None, Sequence[ColumnElement[Any]]] = {
    None: (FrameworkTable.name_key.expression,),
    "name": (FrameworkTable.name_key.expression,),
    "identifier": (FrameworkTable.identifier_key.expression,),
    "slug": (FrameworkTable.slug_key.expression,),
    "version": (FrameworkTable.version_key.expression,),
    "controls": (FrameworkTable.control_count.expression,),
    # Null where it is not adopted, which `ordered` does not see from the column.
    "adoptedAt": (type_coerce(FrameworkAdoption.adopted_at, UtcTimestamp()),),
    "publishedAt": (FrameworkTable.published_at.expression,),
    "createdAt": (FrameworkTable.created_at.expression,),
    "updatedAt": (FrameworkTable.updated_at.expression,),
}


def list_frameworks(transaction: Transaction, query: FrameworkQuery) -> dict[str, Any]:
    """A page of frameworks: the active centralized ones, those adopted, and the organization's own; two statements."""
    statement = _is_visible(query.organization_id)
    if not query.include_user_defined:
        statement = statement.where(FrameworkTable.organization_id.is_(None))
    if query.adopted_only:
        statement = statement.where(FrameworkAdoption.id.is_not(None))
    if query.search:
        statement = statement.where(matching(FrameworkTable.search_text.expression, query.search))
    order = ordered(_SORT_KEYS[query.sort_column], query.sort_direction, tie=FrameworkTable.id.expression)
    found = fetch_page(transaction, statement, order, query)
    return envelope([_item(row) for row in found.rows], found, query)


def one_framework(transaction: Transaction, organization_id: str, framework_id: str) -> dict[str, Any]:
    """A framework that the organization can see, in the form of the list. Raises NotFound."""
    row = transaction.row(_ONE, {"organization": organization_id, "framework": framework_id})
    if row is None:
        raise NotFound
    return _item(row)


def _is_visible(organization_id: str | BindParameter[str]) -> Select[Any]:
    """The frameworks that the organization can see, each with its adoption, if any."""
    adopted = and_(
        FrameworkAdoption.framework_id == FrameworkTable.id, FrameworkAdoption.organization_id == organization_id
    )
    return (
        select(
            *sql_table(FrameworkTable).columns,
            FrameworkAdoption.id.label("adoption_id"),
            FrameworkAdoption.adopted_at,
        )
        .outerjoin(FrameworkAdoption, adopted)
        .where(visible_to(organization_id))
    )


_ONE = _is_visible(bindparam("organization")).where(FrameworkTable.id == bindparam("framework"))


def _item(row: Any) -> dict[str, Any]:
    adoption = row.adoption_id and {"id": row.adoption_id, "adoptedAt": row.adopted_at}
    return {name: getattr(row, column) for column, name in _LISTED.items()} | {
        "isAdopted": adoption is not None,
        "_count": {"controls": row.control_count},
        "frameworkAdoptions": [adoption] if adoption else [],
        "adoption": adoption,
    }


_LISTED = {column.name: wire_names(FrameworkTable)[column.name] for column in listed_columns(FrameworkTable)}
