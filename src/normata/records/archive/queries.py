"""The archive: the archived records of an organization, of all kinds, and whether they can be restored."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import AfterValidator, Field, WithJsonSchema
from sqlalchemy import (
    BindParameter,
    ColumnElement,
    CompoundSelect,
    Integer,
    Select,
    bindparam,
    case,
    func,
    literal,
    literal_column,
    null,
    select,
    tuple_,
    union_all,
)

from normata.core.db.transaction import Transaction
from normata.core.db.trigrams import Hits, among_few
from normata.core.schema.cursors import SortKeys
from normata.core.schema.fields import Identifier, Timestamp, parse_timestamp
from normata.core.schema.paging import (
    MANY,
    MOST_COUNTED,
    OrganizationQuery,
    PageQuery,
    Search,
    counted_up_to_most,
    envelope,
    found_of,
    some_of,
)
from normata.core.schema.table import sql_table
from normata.core.schema.text import fold
from normata.core.schema.wire import Wire
from normata.core.schema.word_search import FEW_WORDS, has_words, words_as
from normata.records import assurance as _kinds  # noqa: F401 - importing the kinds registers them in Restorable.kinds
from normata.records.archiving import ArchiveEntry
from normata.records.base import Restorable

KINDS: Mapping[str, type[Restorable]] = {kind.path: kind for kind in Restorable.kinds}
PLACES = {path: place for place, path in enumerate(KINDS)}  # the order of kinds at the same time

if TYPE_CHECKING:
    KindName = str
else:  # the names are known at run time only
    KindName = Annotated[Literal[tuple(KINDS)], Field(description="The kind of a record, as in its path: `tasks`.")]
_Moment = Annotated[str, AfterValidator(parse_timestamp), WithJsonSchema({"type": "string", "format": "date-time"})]


class KindsQuery(OrganizationQuery):
    """A query of records of several kinds."""

    kind: Annotated[list[KindName] | None, Field(description="Only records of this kind, or of one of these.")] = None
    search: Annotated[
        Search | None, Field(description="Words that must all occur, in any case, in the texts of the record.")
    ] = None

    repeated: ClassVar[tuple[str, ...]] = ("kind",)

    @property
    def paths(self) -> tuple[str, ...]:
        """The requested kinds, in their own order."""
        return tuple(path for path in KINDS if self.kind is None or path in self.kind)


class ArchiveQuery(PageQuery, KindsQuery):
    """The query of the list of what is archived."""

    user_id: Annotated[Identifier | None, Field(description="Only what this user has archived.")] = None
    since: Annotated[_Moment | None, Field(alias="from", description="Only what was archived then or later.")] = None
    until: Annotated[_Moment | None, Field(alias="to", description="Only what was archived before.")] = None
    archive_id: Annotated[
        Identifier | None, Field(description="Only what this action has archived, and is archived since.")
    ] = None
    record_id: Annotated[Identifier | None, Field(description="Only the record of any kind with this id.")] = None


class ArchivedBy(Wire):
    """The user who has archived a record."""

    id: str = Field(description="The user's id.")
    name: str = Field(description="The user's name at that time.")


class Obstacle(Wire):
    """The reason why a restore is not possible."""

    code: str = Field(description="What the restore would be answered with: `slug_taken`.")
    conflicting_id: str = Field(description="The live record that has the slug.")


class ArchivedRecord(Wire):
    """A record that is archived."""

    kind: str = Field(description="Its kind, as in its path.")
    id: str = Field(description="Its id.")
    label: str = Field(description="Its title, name or acronym.")
    slug: str | None = Field(description="Its slug; null if its kind has none.")
    archived_at: Timestamp = Field(description="When it was archived.")
    archived_by: ArchivedBy | None = Field(
        description="Who has archived it; null if a command has, or if it is not known."
    )
    reason: str | None = Field(description="The reason that was entered when it was archived.")
    archive_id: str | None = Field(
        description="Names the action that archived it, and all else that it archived. Null where a command did."
    )
    restorable: bool = Field(description="Whether it could be restored now.")
    obstacle: Obstacle | None = Field(description="What stands in the way; null if nothing does.")


def list_archive(transaction: Transaction, query: ArchiveQuery) -> dict[str, Any]:
    """A page of an organization's archived records, newest first, in three statements for any number of kinds."""
    words = fold(query.search or "").split()
    hits = transaction.hits(words, query.organization_id, [KINDS[path].__tablename__ for path in query.paths])
    counted, page = _statements(query, len(words), hits)
    parameters = {
        "organization": query.organization_id,
        "since": query.since,
        "until": query.until,
        "user": query.user_id,
        "archive": query.archive_id,
        "record": query.record_id,
        **words_as("word", words),
        **hits.parameters(),
    }
    is_known_large = query.start is not None and query.start.is_uncounted
    total = MANY if is_known_large else counted_up_to_most(transaction.scalar(counted, parameters) or 0)
    found = found_of(transaction.rows(page, parameters | _place(query)), _KEYS, total, query)
    namesakes = _namesakes_of(transaction, found.rows)
    return envelope([_item(row, namesakes.get((row.kind, row.id))) for row in found.rows], found, query)


def _place(query: ArchiveQuery) -> dict[str, Any]:
    """The parameters that say where the page starts. Raises UnfitCursor."""
    offset, most = query.offset or 0, query.limit + 1
    parameters: dict[str, Any] = {"limit": most, "offset": offset, "reach": offset + most}
    if query.start is not None:
        _KEYS.check(query.start.keys)
        moment, last_place, last_id = query.start.keys
        parameters["last_moment"] = moment
        for path, place in PLACES.items():
            # At the same time, records of kinds before the last one were shown, and none of kinds after it.
            parameters[f"last_{path}"] = last_id if place == last_place else _ABOVE if place > last_place else ""
    return parameters


def _item(row: Any, namesake: str | None) -> dict[str, Any]:
    return {
        "kind": row.kind,
        "id": row.id,
        "label": row.label,
        "slug": row.slug,
        "archivedAt": row.archived_at,
        "archivedBy": None if row.user_id is None else {"id": row.user_id, "name": row.user_name},
        "reason": row.reason,
        "archiveId": row.archive_id,
        "restorable": namesake is None,
        "obstacle": None if namesake is None else {"code": "slug_taken", "conflictingId": namesake},
    }


_ENTRY = sql_table(ArchiveEntry)


class _Shape(NamedTuple):
    """The properties of a query that its statements depend on, besides its parameters."""

    kinds: tuple[str, ...]
    filters: frozenset[str]  # those in the request
    words: int  # the number of words in the search
    few: frozenset[str]  # the tables of which few rows have the words
    common: frozenset[str]  # those of which many have them
    is_continued: bool  # whether a cursor says where the page starts


def _statements(query: ArchiveQuery, words: int, hits: Hits) -> tuple[Select[Any], Select[Any]]:
    """The statements that count the records of a query, and return a page of them."""
    used = {name for name in _FILTERS if getattr(query, name) is not None}
    shape = _Shape(query.paths, frozenset(used), words, frozenset(hits.few), hits.common, query.start is not None)
    # Building a statement takes twenty times as long as executing it.
    return _cached(shape) if words <= FEW_WORDS else _made(shape)


def _made(shape: _Shape) -> tuple[Select[Any], Select[Any]]:
    branches = [_branch(shape, path) for path in shape.kinds]
    starts = [_after_last(branch, path) for branch, path in zip(branches, shape.kinds, strict=True)]
    return _counted(branches), _page(starts if shape.is_continued else branches)


_cached = lru_cache(maxsize=32)(_made)  # all kinds and each alone, with the most frequent filters

_ORGANIZATION: BindParameter[str] = bindparam("organization", type_=_ENTRY.c.organization_id.type)
_KEYS = SortKeys((_ENTRY.c.archived_at.desc(), literal(0, Integer()), _ENTRY.c.record_id.desc()))
_ABOVE = "\U0010ffff" * 256  # which sorts after every id
_FILTERS = ("since", "until", "record_id", "user_id", "archive_id")


def _branch(shape: _Shape, path: str) -> Select[Any]:
    """The archived records of one kind."""
    table = KINDS[path].sql().c
    branch = select(
        literal(PLACES[path]).label("place"),
        table.id,
        table[KINDS[path].title_column()].label("label"),
        (table.slug if "slug" in table else null()).label("slug"),
        table.archived_at,
    ).where(table.organization_id == _ORGANIZATION, table.archived_at.is_not(None))
    if "since" in shape.filters:
        branch = branch.where(table.archived_at >= bindparam("since"))
    if "until" in shape.filters:
        branch = branch.where(table.archived_at < bindparam("until"))
    name = KINDS[path].__tablename__
    if name in shape.few:
        branch = branch.where(among_few(table.id, name))
    if shape.words:
        branch = branch.where(has_words(table.search_text, "word", shape.words, is_common=name in shape.common))
    if "record_id" in shape.filters:
        branch = branch.where(table.id == bindparam("record"))
    if "user_id" in shape.filters:
        branch = branch.where(_entries_of(path, table).where(_ENTRY.c.user_id == bindparam("user")).exists())
    if "archive_id" in shape.filters:
        named = select(_ENTRY.c.record_id).where(
            _ENTRY.c.organization_id == _ORGANIZATION,
            _ENTRY.c.archive_id == bindparam("archive"),
            _ENTRY.c.kind == path,
        )  # by the index of archive ids; the next condition checks the entry
        branch = branch.where(table.id.in_(named), _entries_of(path, table).exists())
    return branch


def _entries_of(path: str, table: Any) -> Select[Any]:
    """The archive entry of a record, if it is still archived since then."""
    return select(_ENTRY.c.record_id).where(
        _ENTRY.c.organization_id == _ORGANIZATION,
        _ENTRY.c.kind == path,
        _ENTRY.c.record_id == table.id,
        _ENTRY.c.archived_at == table.archived_at,
    )


def _after_last(branch: Select[Any], path: str) -> Select[Any]:
    """The rows of a branch that come after the last one of the page before."""
    columns = branch.selected_columns
    moment = bindparam("last_moment", type_=columns.archived_at.type)
    last = tuple_(moment, bindparam(f"last_{path}", type_=columns.id.type))
    return branch.where(tuple_(columns.archived_at, columns.id) < last)


def _counted(branches: Sequence[Select[Any]]) -> Select[Any]:
    """The number of rows of all branches, each read by an index of its own, and together only as far as lists count."""
    one: Any = literal_column("1").label("one")
    each: list[Select[Any]] = [select(one).select_from(some_of(branch).subquery()) for branch in branches]
    return select(func.count()).select_from(union_all(*each).limit(MOST_COUNTED + 1).subquery())


def _page(branches: Sequence[Select[Any]]) -> Select[Any]:
    """One page of all branches, each row with its archive entry, if there is one.

    A branch is limited to the rows that the page can need, so that an index scan ends early. The rows end with the keys
    of their order.
    """
    limit, offset, reach = (bindparam(name, type_=Integer()) for name in ("limit", "offset", "reach"))
    reached: list[Select[Any]] = []
    for branch in branches:
        archived_at, row_id = branch.selected_columns.archived_at, branch.selected_columns.id
        ended = branch.order_by(archived_at.desc(), row_id.desc()).limit(reach).subquery()
        reached.append(select(*ended.c))
    every: Any = union_all(*reached).subquery()
    order = (every.c.archived_at.desc(), every.c.place, every.c.id.desc())
    page: Any = select(*every.c).order_by(*order).limit(limit).offset(offset).subquery()
    kind = _kind_of(page.c.place)
    entry = (
        (_ENTRY.c.organization_id == _ORGANIZATION)
        & (_ENTRY.c.kind == kind)
        & (_ENTRY.c.record_id == page.c.id)
        & (_ENTRY.c.archived_at == page.c.archived_at)
    )
    return (
        select(
            kind.label("kind"), page.c.label, page.c.slug,
            _ENTRY.c.user_id, _ENTRY.c.user_name, _ENTRY.c.reason, _ENTRY.c.archive_id,
            page.c.archived_at, page.c.place, page.c.id,
        )
        .select_from(page.outerjoin(_ENTRY, entry))
        .order_by(page.c.archived_at.desc(), page.c.place, page.c.id.desc())
    )  # fmt: skip


def _kind_of(place: ColumnElement[int]) -> ColumnElement[str]:
    return case({number: path for path, number in PLACES.items()}, value=place)


# --- Obstacles to a restore


_WITH_SLUG = {path: kind for path, kind in KINDS.items() if "slug" in kind.sql().c}


def _namesakes_of(transaction: Transaction, rows: Sequence[Any]) -> dict[tuple[str, str], str]:
    """The live records that have the slugs of archived ones, by kind and id of the archived ones."""
    if not rows:
        return {}
    ids: defaultdict[str, list[str]] = defaultdict(list)
    for row in rows:
        ids[row.kind].append(row.id)
    found = transaction.rows(_namesakes(), {f"of_{path}": ids[path] for path in _WITH_SLUG})
    return {(row.kind, row.id): row.namesake for row in found}


@cache
def _namesakes() -> CompoundSelect[Any]:
    parts = []
    for path, kind in _WITH_SLUG.items():
        table, live = kind.sql(), kind.sql().alias()
        has_slug = (
            (live.c.organization_id == table.c.organization_id)
            & (live.c.slug == table.c.slug)
            & live.c.archived_at.is_(None)
        )
        ids: Any = bindparam(f"of_{path}", expanding=True)
        parts.append(
            select(literal(path).label("kind"), table.c.id, live.c.id.label("namesake"))
            .select_from(table.join(live, has_slug))
            .where(table.c.id.in_(ids))
        )
    return union_all(*parts)
