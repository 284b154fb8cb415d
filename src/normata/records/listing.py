"""The list of the records of a kind, and one of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, WithJsonSchema, create_model
from pydantic.alias_generators import to_camel
from sqlalchemy import (
    Boolean,
    Column,
    ColumnElement,
    Select,
    UnaryExpression,
    and_,
    bindparam,
    func,
    literal,
    literal_column,
    select,
    union_all,
)

from normata.core.db.transaction import Transaction
from normata.core.db.trigrams import among_few
from normata.core.db.types import Document
from normata.core.http.formats import FormatQuery
from normata.core.schema.cursors import Part, SortKeys
from normata.core.schema.descriptions import known_values
from normata.core.schema.fields import Identifier, ShortId, ShortText, Token, parse_timestamp
from normata.core.schema.paging import (
    Found,
    QueryFlag,
    Search,
    SortDirection,
    count,
    digits_only,
    envelope,
    fetch_page,
    found_of,
    ordered,
)
from normata.core.schema.text import fold
from normata.core.schema.wire import as_wire, columns, wire_names
from normata.core.schema.word_search import matching
from normata.errors import NotFound
from normata.records.base import NEVER, Restorable, filter_columns, has_order, is_listed
from normata.records.external_filter import EXTERNAL_ID, ExternalQuery, is_found_by
from normata.records.owners import has_linked_owners, is_owned_by

OWNER = "owner_id"  # the filter by owners who have links
# The columns by which people and programs call a record, besides its id. A text that no record can have finds none.
_NAMES: dict[str, Any] = {"slug": ShortText, "short_id": Annotated[ShortId, digits_only], "identifier": ShortText}
_MAX_VALUES = 100  # of one filter
_NEVER: ColumnElement[str] = literal_column(NEVER)
_MOST_VALUES = 100  # that are looked up one by one; of more, all records are sorted
_FEW = 2_000  # records; skipping, or collecting and sorting so many takes little time
# Values of a filter that are queried one by one. With more, there would be too many different statements, and
# collecting would take longer than skipping.
_BRANCHES = 8

_Since = Annotated[str, AfterValidator(parse_timestamp), WithJsonSchema({"type": "string", "format": "date-time"})]
_Members = Annotated[list[Identifier], Field(max_length=_MAX_VALUES)]
_OWNERS = (
    "Only records that this member, or one of these where it is repeated, owns by a link (`OWNS`). The value is the id"
    " of a membership."
)


class RecordQuery(ExternalQuery, FormatQuery):
    """The query of the list of a kind, besides what follows from its columns."""

    filters: ClassVar[tuple[str, ...]] = ()  # the columns with a filter, which may be repeated
    names: ClassVar[tuple[str, ...]] = ()  # those that tell records apart, with a filter like that

    archived: Annotated[
        Literal["exclude", "only", "include"],
        Field(description="Whether archived records are listed: not at all, alone, or along with the live ones."),
    ] = "exclude"
    search: Annotated[
        Search | None, Field(description="Words that must all occur, in any case, in the texts of the record.")
    ] = None
    sort_direction: SortDirection | None = None


@cache
def record_query(kind: type[Restorable]) -> type[RecordQuery]:
    """The query model of a kind's list, with its sort columns, and a filter for each column with choices or names."""
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
    names_of_records = tuple(name for name in _NAMES if name in kind.sql().c)
    for name in names_of_records:
        fields[name] = (_filter_of(name, _NAMES[name]), None)
    for column in filtered:
        fields[column.name] = (_filter(column), None)
    if has_linked_owners(kind):
        described = Field(description=_OWNERS)
        fields[OWNER] = (Annotated[_Members | None, described], None)
    model = create_model(f"{kind.__name__}Query", __base__=RecordQuery, **fields)
    model.filters = tuple(column.name for column in filtered)
    model.names = names_of_records
    owners = [OWNER] if has_linked_owners(kind) else []
    model.repeated = tuple(map(to_camel, (*model.filters, *model.names, EXTERNAL_ID, *owners)))
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
    return _filter_of(column.name, item, known)


def _filter_of(column: str, item: Any, known: Sequence[str] = ()) -> Any:
    name = to_camel(column)
    described = f"Only records whose `{name}` is this, or one of these where it is repeated.{known_values(known)}"
    return Annotated[Annotated[list[item], Field(max_length=_MAX_VALUES)] | None, Field(description=described)]


def list_records(transaction: Transaction, kind: type[Restorable], query: Any) -> dict[str, Any]:
    """A page of the records of a kind. ``query`` is of the kind's :func:`record_query`.

    It takes one statement, one more for a search, and one more to count if there are records behind the page, or if no
    index has its records in order.
    """
    table = kind.__tablename__
    hits = transaction.hits(fold(query.search or "").split(), query.organization_id, [table])
    is_common = table in hits.common
    if table in hits.few or _owners(query) or _is_named(query):
        records = _records(kind, query)
        if table in hits.few:
            records = records.where(among_few(kind.sql().c.id, table))
        # No order of an index, so that the database starts from the few ids or names.
        order, parameters = _order(kind, query, by_index=False), {"organization": query.organization_id}
        found = fetch_page(transaction, records, order, query, {**hits.parameters(), **parameters})
    elif _is_scattered(query):
        found = _scattered(transaction, kind, query, is_common=is_common)
    else:
        records, order = _records(kind, query, is_common=is_common), _order(kind, query)
        # From the newest on: archived records are mostly old, and the indexes of filters have them, too.
        counted = records.order_by(*order) if _is_by_time(query) else records
        parts = _parts(transaction, kind, query, SortKeys(order))
        found = fetch_page(transaction, records, order, query, all_rows=counted, parts=parts)
    names = tuple(wire_names(kind).values())
    return envelope([dict(zip(names, row, strict=False)) for row in found.rows], found, query)


def every_record(transaction: Transaction, kind: type[Restorable], query: Any) -> Iterator[Any]:
    """The rows of all records of a list, on whatever page they are, in its order: some at a time, of one statement."""
    hits = transaction.hits(fold(query.search or "").split(), query.organization_id, [kind.__tablename__])
    records = _records(kind, query, is_common=kind.__tablename__ in hits.common)
    if kind.__tablename__ in hits.few:
        records = records.where(among_few(kind.sql().c.id, kind.__tablename__))
    parameters = {**hits.parameters(), "organization": query.organization_id}
    return transaction.stream(records.order_by(*_order(kind, query, by_index=False)), parameters)


def _scattered(transaction: Transaction, kind: type[Restorable], query: Any, *, is_common: bool) -> Found:
    """A page of records that no index has in the order of the list."""
    counted = count(transaction, _records(kind, query, is_common=is_common), query)
    among_many = not counted.is_exact
    table = kind.sql().c
    # Without an index for the order, else SQLite would go through that, past up to a million other records.
    keys = SortKeys(_order(kind, query, by_index=False))
    if _since(query) is not None and not among_many:
        ids = _after_start(select(table.id).where(*_conditions(kind, query)), keys, query).order_by(*keys.order)
    elif _has_both(query) or (_repeated(query) and query.offset <= _FEW):
        ids = _first_ids(kind, query, among_many=among_many)
    else:
        rows = _records(kind, query, among_many=among_many)
        return fetch_page(transaction, rows, _order(kind, query), query, counted=counted)
    on_page = table.id.in_(ids.limit(query.limit + 1).offset(query.offset))
    page = select(*columns(kind), *keys.columns).where(table.organization_id == query.organization_id, on_page)
    return found_of(transaction.rows(page.order_by(*keys.order)), keys, counted, query)


def _after_start(rows: Select[Any], keys: SortKeys, query: Any) -> Select[Any]:
    """The rows behind the cursor, if the query has one."""
    return rows if query.start is None else rows.where(*(one.condition for one in keys.after(query.start.keys)))


def _first_ids(kind: type[Restorable], query: Any, *, among_many: bool) -> Select[Any]:
    """The ids, in the list's order, of the first live and archived ones, or of those with each value of a filter.

    An index has the records with one value in this order, but no index has those with any of several, or live and
    archived ones. See :func:`_conditions` for ``among_many``.
    """
    table, keys, repeated = kind.sql().c, SortKeys(_order(kind, query)), _repeated(query)
    if repeated:
        name, values = min(repeated.items(), key=lambda item: len(item[1]))
        each: list[ColumnElement[bool]] = [table[name] == value for value in sorted(values)]
    else:
        name, each = "", [and_(table.archived_at.is_(None), is_listed(kind)), table.archived_at.is_not(None)]
    others = select(table.id, table.created_at).where(*_conditions(kind, query, among_many=among_many, without=name))
    first = _after_start(others, keys, query).order_by(*keys.order).limit(query.offset + query.limit + 1)
    every = union_all(*(select(*first.where(one).subquery().c) for one in each)).subquery()
    return select(every.c.id).order_by(*_order(kind, query, every.c))


def _parts(transaction: Transaction, kind: type[Restorable], query: Any, keys: SortKeys) -> Iterable[Part]:
    """The parts of the list that an index has in order."""
    column = None if _is_by_time(query) else _sort_key(kind, query.sort_column)
    if column is not None and column.name in query.filters and not query.search and _since(query) is None:
        return _by_value(transaction, kind, query, column)
    return keys.parts() if query.start is None else keys.after(query.start.keys)


def _by_value(transaction: Transaction, kind: type[Restorable], query: Any, column: Column[Any]) -> Iterator[Part]:
    """The records with each value of a column that has an index for its filter, newest first; then those without one.

    The next value is only looked for when a page has room for it. Raises UnfitCursor.
    """
    table, keys = kind.sql().c, SortKeys(_order(kind, query))
    newest, value, is_descending = keys.order[1:], None, query.sort_direction == "desc"
    without = and_(column.is_(None), is_listed(kind))
    if query.start is not None:
        keys.check(query.start.keys)
        value, *last = query.start.keys
        (rest,) = SortKeys(newest).after(last)
        yield Part(and_(without if value is None else column == value, rest.condition), newest)
        if value is None:
            return
    values = select(column).where(table.organization_id == query.organization_id)
    values = values.order_by(column.desc() if is_descending else column.asc()).limit(1)
    for _ in range(_MOST_VALUES):
        value = transaction.scalar(values.where(_beyond(column, value, is_descending=is_descending)))
        if value is None:
            break
        yield Part(column == value, newest)
    else:
        yield Part(_beyond(column, value, is_descending=is_descending), keys.parts()[0].order)
    if column.nullable:
        yield Part(without, newest)


def _beyond(column: Column[Any], value: Any, *, is_descending: bool) -> ColumnElement[bool]:
    if value is None:
        return column.is_not(None)
    last = literal(value, column.type)
    return column < last if is_descending else column > last


def _records(kind: type[Restorable], query: Any, *, among_many: bool = False, is_common: bool = False) -> Select[Any]:
    return select(*columns(kind)).where(*_conditions(kind, query, among_many=among_many, is_common=is_common))


def one_record(
    transaction: Transaction, kind: type[Restorable], organization_id: str, record_id: str
) -> dict[str, Any]:
    """A record of the organization in wire form, live or archived. Raises NotFound."""
    row = transaction.row(_one(kind), {"organization": organization_id, "record": record_id})
    if row is None:
        raise NotFound
    return as_wire(kind, row)


def _conditions(
    kind: type[Restorable], query: Any, *, among_many: bool = False, is_common: bool = False, without: str = ""
) -> list[ColumnElement[bool]]:
    """The conditions on a record; that of the organization comes first.

    ``among_many`` is true if so many match that they are best found in the list's order: sorting the ids of 10,000
    takes some milliseconds, skipping others may mean a million. See
    :func:`normata.core.schema.word_search.matching` for ``is_common``. ``without`` is a filter to ignore.
    """
    table = kind.sql().c
    conditions: list[ColumnElement[bool]] = [table.organization_id == query.organization_id]
    if query.archived == "exclude":
        conditions.append(table.archived_at.is_(None))
    elif query.archived == "only":
        conditions.append(table.archived_at.is_not(None))
    for name in (*query.filters, *query.names):
        values = getattr(query, name)
        if values and name != without:
            # With `=`, an index has the rows of one value in the order of the list.
            conditions.append(table[name] == values[0] if len(set(values)) == 1 else table[name].in_(values))
    conditions += is_found_by(kind, query)
    if _owners(query):
        conditions.append(is_owned_by(kind, [literal(member) for member in _owners(query)]))
    if query.sort_column == "updatedAt":  # it always holds, and opens SQLite's index of this order
        conditions.append(table.updated_at != _NEVER)
    since = _since(query)
    if _is_listed_alone(kind, query) and (since is None or among_many):
        conditions.append(is_listed(kind))
    if since is not None and among_many:
        # No index has this expression. Ordering by time would collect and sort all rows.
        conditions.append(func.coalesce(table.updated_at, _NEVER) >= since)
    elif since is not None:
        conditions += [table.updated_at != _NEVER, table.updated_at >= since]
    if query.search:
        conditions.append(matching(table.search_text, query.search, is_common=is_common))
    return conditions


def _since(query: Any) -> str | None:
    """The condition that a record was changed at a time or later; risk reviews do not have it."""
    return getattr(query, "updated_since", None)


def _is_named(query: Any) -> bool:
    """Whether records are asked for by a name of theirs, of which there are few."""
    return query.external_id is not None or any(getattr(query, name) for name in query.names)


def _owners(query: Any) -> list[str]:
    """The members one of whom must own the records by a link."""
    return sorted(set(getattr(query, OWNER, None) or ()))


def _repeated(query: Any) -> dict[str, set[Any]]:
    """The filters with several values, but few enough to search them one by one."""
    used = {name: set(getattr(query, name) or ()) for name in query.filters}
    return {name: values for name, values in used.items() if 1 < len(values) <= _BRANCHES}


def _has_both(query: Any) -> bool:
    """Whether live and archived records are requested, and no filter for which an index has both."""
    return query.archived == "include" and not any(getattr(query, name) for name in query.filters)


def _is_listed_alone(kind: type[Restorable], query: Any) -> bool:
    """Whether the index of live records in the requested order is the best one: a filter with one value has its own."""
    if not _is_by_time(query):
        return has_order(_sort_key(kind, query.sort_column))
    return query.archived == "exclude" and not any(len(set(getattr(query, name) or ())) == 1 for name in query.filters)


def _is_by_time(query: Any) -> bool:
    """Whether records are listed in the order of their creation."""
    return query.sort_column in (None, "createdAt")


def _is_scattered(query: Any) -> bool:
    """Whether the order of creation is requested, and no index has the records in it."""
    return _is_by_time(query) and (_since(query) is not None or bool(_repeated(query)) or _has_both(query))


def _order(
    kind: type[Restorable], query: Any, among: Any = None, *, by_index: bool = True
) -> Sequence[ColumnElement[Any] | UnaryExpression[Any]]:
    """The order of the list, ``among`` columns of another table if given.

    Without ``by_index`` no index is used for the order of creation, and records are found by their conditions. The
    direction applies to ids, too: then one index serves both directions. Those with the same value of a filter are
    listed newest first.
    """
    table = kind.sql().c if among is None else among
    is_descending = query.sort_direction == "desc"
    if _is_by_time(query):
        newest_first = is_descending is (query.sort_column is not None)
        created_at = table.created_at if by_index else func.coalesce(table.created_at, _NEVER)
        return [column.desc() if newest_first else column.asc() for column in (created_at, table.id)]
    key = _sort_key(kind, query.sort_column)
    first, _ = ordered([key], query.sort_direction, tie=table.id)
    if key.name in query.filters:
        return [first, table.created_at.desc(), table.id.desc()]
    return [first, table.id.desc() if is_descending else table.id.asc()]


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
