"""The list of the records of a kind, and one of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, WithJsonSchema, create_model
from pydantic.alias_generators import to_camel
from sqlalchemy import (
    Boolean,
    Column,
    ColumnElement,
    Select,
    UnaryExpression,
    bindparam,
    func,
    literal_column,
    select,
    union_all,
)
from typing_extensions import override

from normata.core.db.transaction import Transaction
from normata.core.db.trigrams import among_few, few_with
from normata.core.db.types import Document
from normata.core.schema.cursors import SortKeys
from normata.core.schema.descriptions import known_values
from normata.core.schema.fields import Identifier, Token, parse_timestamp
from normata.core.schema.paging import (
    Found,
    PageQuery,
    QueryFlag,
    Search,
    SortDirection,
    count,
    envelope,
    fetch_page,
    found_of,
    matching,
    ordered,
)
from normata.core.schema.text import fold
from normata.core.schema.wire import as_wire, columns, wire_names
from normata.errors import NotFound
from normata.records.base import NEVER, Restorable, filter_columns, has_order

_MAX_VALUES = 100  # of one filter
_NEVER: ColumnElement[str] = literal_column(NEVER)
_FEW = 2_000  # records; skipping, or collecting and sorting so many takes little time
# Values of a filter that are queried one by one. With more, there would be too many different statements, and
# collecting would take longer than skipping.
_BRANCHES = 8

_Since = Annotated[str, AfterValidator(parse_timestamp), WithJsonSchema({"type": "string", "format": "date-time"})]


class RecordQuery(PageQuery):
    """The query of the list of a kind, besides what follows from its columns."""

    filters: ClassVar[tuple[str, ...]] = ()  # the names of the fields that may be repeated

    archived: Annotated[
        Literal["exclude", "only", "include"],
        Field(description="Whether archived records are listed: not at all, alone, or along with the live ones."),
    ] = "exclude"
    search: Annotated[
        Search | None, Field(description="Words that must all occur, in any case, in the texts of the record.")
    ] = None
    sort_direction: SortDirection | None = None

    @classmethod
    @override
    def read(cls, pairs: Sequence[tuple[str, str]]) -> Self:
        """The query, with all values of repeated filters."""
        names = {to_camel(name) for name in cls.filters}
        repeated: defaultdict[str, list[str]] = defaultdict(list)
        for name, value in pairs:
            if name in names:
                repeated[name].append(value)
        return cls.model_validate(dict(pairs) | repeated)


@cache
def record_query(kind: type[Restorable]) -> type[RecordQuery]:
    """The query model of a kind's list, with its sort columns, and a filter for each column with choices."""
    names = tuple(to_camel(column.name) for column in _sortable(kind))
    fields: dict[str, Any] = {
        "sort_column": (
            Annotated[
                Literal[names] | None, Field(description="What to sort by; unless said, by `createdAt`, newest first.")
            ],
            None,
        )
    }
    if "updated_at" in kind.sql().c:
        described = Field(description="Only records that were changed at this time or later.")
        fields["updated_since"] = (Annotated[_Since | None, described], None)
    filtered = filter_columns(kind)
    for column in filtered:
        fields[column.name] = (_filter(column), None)
    model = create_model(f"{kind.__name__}Query", __base__=RecordQuery, **fields)
    model.filters = tuple(column.name for column in filtered)
    return model


def _sortable(kind: type[Restorable]) -> list[Column[Any]]:
    return [column for column in columns(kind) if not isinstance(column.type, Document)]


def _filter(column: Column[Any]) -> Any:
    known = column.info.get("known", ())
    item: Any = Identifier
    if known:
        item = Annotated[Token, Field(json_schema_extra={"x-extensible-enum": list(known)})]
    elif isinstance(column.type, Boolean):
        item = QueryFlag
    name = to_camel(column.name)
    described = f"Only records whose `{name}` is this, or one of these where it is repeated.{known_values(known)}"
    return Annotated[Annotated[list[item], Field(max_length=_MAX_VALUES)] | None, Field(description=described)]


def list_records(transaction: Transaction, kind: type[Restorable], query: Any) -> dict[str, Any]:
    """A page of the records of a kind. ``query`` is of the kind's :func:`record_query`.

    It takes one statement, one more for a search, and one more to count if there are records behind the page, or if no
    index has its records in order.
    """
    few = few_with(transaction, fold(query.search or "").split(), [kind.__tablename__])
    if few is not None:
        records = _records(kind, query).where(among_few(kind.sql().c.id, kind.__tablename__))
        # No order of an index, so that the database starts from the few ids.
        found = fetch_page(transaction, records, _order(kind, query, by_index=False), query, few)
    elif _is_scattered(query):
        found = _scattered(transaction, kind, query)
    else:
        records, order = _records(kind, query), _order(kind, query)
        # From the newest on: archived records are mostly old, and the index has them, too.
        counted = records.order_by(*order) if query.sort_column is None else records
        found = fetch_page(transaction, records, order, query, all_rows=counted)
    names = tuple(wire_names(kind).values())
    return envelope([dict(zip(names, row, strict=False)) for row in found.rows], found, query)


def _scattered(transaction: Transaction, kind: type[Restorable], query: Any) -> Found:
    """A page of records that no index has in the order of the list."""
    counted = count(transaction, _records(kind, query), query)
    among_many = not counted.is_exact
    table = kind.sql().c
    # Without an index for the order, else SQLite would go through that, past up to a million other records.
    keys = SortKeys(_order(kind, query, by_index=False))
    if _since(query) is not None and not among_many:
        ids = select(table.id).where(*_conditions(kind, query)).order_by(*keys.order)
        if query.start is not None:
            ids = ids.where(*keys.after(query.start.keys))
    elif _repeated(query) and query.offset <= _FEW:
        ids = _first_ids(kind, query, among_many=among_many)
    else:
        rows = _records(kind, query, among_many=among_many)
        return fetch_page(transaction, rows, _order(kind, query), query, counted=counted)
    on_page = table.id.in_(ids.limit(query.limit + 1).offset(query.offset))
    page = select(*columns(kind), *keys.columns).where(table.organization_id == query.organization_id, on_page)
    return found_of(transaction.rows(page.order_by(*keys.order)), keys, counted, query)


def _first_ids(kind: type[Restorable], query: Any, *, among_many: bool) -> Select[Any]:
    """The ids, in the list's order, of the first records with each value of a filter that is repeated.

    An index has the records with one value in this order, but no index has those with any of several. See
    :func:`_conditions` for ``among_many``.
    """
    name, values = min(_repeated(query).items(), key=lambda item: len(item[1]))
    table, others = kind.sql().c, _conditions(kind, query, among_many=among_many, without=name)
    keys = SortKeys(_order(kind, query))
    if query.start is not None:
        others += keys.after(query.start.keys)
    parts = [
        select(table.id, table.created_at)
        .where(*others, table[name] == value)
        .order_by(*keys.order)
        .limit(query.offset + query.limit + 1)
        for value in sorted(values)
    ]
    every = union_all(*(select(*part.subquery().c) for part in parts)).subquery()
    return select(every.c.id).order_by(*_order(kind, query, every.c))


def _records(kind: type[Restorable], query: Any, *, among_many: bool = False) -> Select[Any]:
    return select(*columns(kind)).where(*_conditions(kind, query, among_many=among_many))


def one_record(
    transaction: Transaction, kind: type[Restorable], organization_id: str, record_id: str
) -> dict[str, Any]:
    """A record of the organization in wire form, live or archived. Raises NotFound."""
    row = transaction.row(_one(kind), {"organization": organization_id, "record": record_id})
    if row is None:
        raise NotFound
    return as_wire(kind, row)


def _conditions(
    kind: type[Restorable], query: Any, *, among_many: bool = False, without: str = ""
) -> list[ColumnElement[bool]]:
    """The conditions on a record; that of the organization comes first.

    ``among_many`` is true if so many match that they are best found in the list's order: sorting the ids of 10,000
    takes some milliseconds, skipping others may mean a million. ``without`` is a filter to ignore.
    """
    table = kind.sql().c
    conditions: list[ColumnElement[bool]] = [table.organization_id == query.organization_id]
    if query.archived == "exclude":
        conditions.append(table.archived_at.is_(None))
    elif query.archived == "only":
        conditions.append(table.archived_at.is_not(None))
    for name in query.filters:
        values = getattr(query, name)
        if values and name != without:
            # With `=`, an index has the rows of one value in the order of the list.
            conditions.append(table[name] == values[0] if len(set(values)) == 1 else table[name].in_(values))
    if query.sort_column == "updatedAt":  # it always holds, and opens SQLite's index of this order
        conditions.append(table.updated_at != _NEVER)
    elif query.sort_column is not None and has_order(_sort_key(kind, query.sort_column)):  # so does this
        conditions.append(table.created_at != _NEVER)
    since = _since(query)
    if since is not None and among_many:
        # No index has this expression. Ordering by time would collect and sort all rows.
        conditions.append(func.coalesce(table.updated_at, _NEVER) >= since)
    elif since is not None:
        conditions += [table.updated_at != _NEVER, table.updated_at >= since]
    if query.search:
        conditions.append(matching(table.search_text, query.search))
    return conditions


def _since(query: Any) -> str | None:
    """The condition that a record was changed at a time or later; risk reviews do not have it."""
    return getattr(query, "updated_since", None)


def _repeated(query: Any) -> dict[str, set[Any]]:
    """The filters with several values, but few enough to search them one by one."""
    used = {name: set(getattr(query, name) or ()) for name in query.filters}
    return {name: values for name, values in used.items() if 1 < len(values) <= _BRANCHES}


def _is_scattered(query: Any) -> bool:
    """Whether the default order is requested, and no index has the records in it."""
    return query.sort_column is None and (_since(query) is not None or bool(_repeated(query)))


def _order(
    kind: type[Restorable], query: Any, among: Any = None, *, by_index: bool = True
) -> Sequence[ColumnElement[Any] | UnaryExpression[Any]]:
    """The order of the list, ``among`` columns of another table if given.

    Without ``by_index`` no index is used for the default order, and records are found by their conditions.
    """
    table = kind.sql().c if among is None else among
    if query.sort_column is None:
        # The sort direction applies to records of the same time, too: then one index serves both directions.
        newest_first = query.sort_direction != "desc"
        created_at = table.created_at if by_index else func.coalesce(table.created_at, _NEVER)
        return [column.desc() if newest_first else column.asc() for column in (created_at, table.id)]
    return ordered([_sort_key(kind, query.sort_column)], query.sort_direction, tie=table.id)


def _sort_key(kind: type[Restorable], wire_name: str) -> Column[Any]:
    column = next(column for column in _sortable(kind) if to_camel(column.name) == wire_name)
    key: Column[Any] = kind.sql().c.title_key if column.name == kind.title_column() else column
    return key


@cache
def _one(kind: type[Restorable]) -> Select[Any]:
    table = kind.sql().c
    return select(*columns(kind)).where(
        table.id == bindparam("record"), table.organization_id == bindparam("organization")
    )
