"""The search in records of all kinds of an organization."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import Field
from sqlalchemy import Integer, Select, bindparam, case, cast, literal, null, select, union_all

from normata.core.db.transaction import Transaction
from normata.core.db.trigrams import among_few
from normata.core.schema.fields import Identifier, Timestamp
from normata.core.schema.paging import digits_only
from normata.core.schema.text import fold, natural_key
from normata.core.schema.wire import Wire
from normata.core.schema.word_search import FEW_WORDS, has_words, words_as
from normata.records.archive.queries import KINDS, PLACES, KindsQuery

_MAX_IDS = 100


class EveryKindQuery(KindsQuery):
    """The query of the search in records of all kinds."""

    repeated: ClassVar[tuple[str, ...]] = ("kind", "id")

    id: Annotated[
        list[Identifier] | None,
        Field(max_length=_MAX_IDS, description="Only records with this id, or one of these where it is repeated."),
    ] = None
    archived: Annotated[
        Literal["exclude", "include"], Field(description="Whether archived records are found, too.")
    ] = "exclude"
    limit: Annotated[int, Field(ge=1, le=100, description="The most records to answer."), digits_only] = 20


class RecordOfAnyKind(Wire):
    """A record, by its names."""

    kind: str = Field(description="Its kind, as in its path.")
    id: str = Field(description="Its id.")
    label: str = Field(description="Its title, name or acronym.")
    slug: str | None = Field(description="Its slug; null if its kind has none.")
    short_id: int | None = Field(description="Its short id; null if its kind has none.")
    is_live: bool = Field(description="False if it is archived.")
    created_at: Timestamp


class RecordSearchPage(Wire):
    """Records that a search has found."""

    items: list[RecordOfAnyKind]


def search_every_kind(transaction: Transaction, query: EveryKindQuery) -> dict[str, Any]:
    """The first records of all kinds that a search finds, in one or two statements whatever the kinds.

    Newest first; with a search, records with all words in the title come before the others.
    """
    words, in_title = fold(query.search or "").split(), natural_key(query.search or "").split()
    hits = transaction.hits(words, query.organization_id, [KINDS[path].__tablename__ for path in query.paths])
    shape = _Shape(
        query.paths,
        len(words),
        len(in_title),
        frozenset(hits.few),
        hits.common,
        by_ids=query.id is not None,
        are_live=query.archived == "exclude",
    )
    # Building a statement takes several times as long as executing it.
    statement = _cached(shape) if max(shape.words, shape.in_title) <= FEW_WORDS else _made(shape)
    parameters = {
        "organization": query.organization_id,
        "limit": query.limit,
        **({} if query.id is None else {"ids": query.id}),
        **words_as("word", words),
        **words_as("in_title", in_title),
        **hits.parameters(),
    }
    items = [
        {
            "kind": row.kind,
            "id": row.id,
            "label": row.label,
            "slug": row.slug,
            "shortId": row.short_id,
            "isLive": bool(row.is_live),
            "createdAt": row.created_at,
        }
        for row in transaction.rows(statement, parameters)
    ]
    return {"items": items}


class _Shape(NamedTuple):
    """The properties of a query that its statement depends on, besides its parameters."""

    kinds: tuple[str, ...]
    words: int  # the number of words in the search
    in_title: int  # the same words as folded in titles
    few: frozenset[str]  # the tables of which few rows have the words
    common: frozenset[str]  # those of which many have them
    by_ids: bool
    are_live: bool  # whether archived records are left out


def _made(shape: _Shape) -> Select[Any]:
    """The first rows of all kinds together.

    Each kind is limited to the wanted number, so that an index scan ends early.
    """
    limit = bindparam("limit", type_=Integer())
    reached: list[Select[Any]] = []
    for path in shape.kinds:
        branch = _branch(shape, path)
        columns = branch.selected_columns
        newest = columns.created_at.desc(), columns.id.desc()
        branch_order = (columns.rank, *newest) if shape.in_title else newest
        reached.append(select(*branch.order_by(*branch_order).limit(limit).subquery().c))
    every: Any = union_all(*reached).subquery()
    order = (every.c.rank, every.c.created_at.desc(), every.c.place, every.c.id.desc())
    return select(*every.c).order_by(*order).limit(limit)


_cached = lru_cache(maxsize=16)(_made)


def _branch(shape: _Shape, path: str) -> Select[Any]:
    """The records of a kind."""
    kind = KINDS[path]
    table = kind.sql().c
    rank = case((has_words(table.title_key, "in_title", shape.in_title), 0), else_=1)
    branch = select(
        literal(PLACES[path]).label("place"),
        literal(path).label("kind"),
        table.id,
        table[kind.title_column()].label("label"),
        (table.slug if "slug" in table else null()).label("slug"),
        (table.short_id if "short_id" in table else cast(null(), Integer())).label("short_id"),
        table.archived_at.is_(None).label("is_live"),
        table.created_at,
        (rank if shape.in_title else literal(0)).label("rank"),
    ).where(table.organization_id == bindparam("organization"))
    if shape.are_live:
        branch = branch.where(table.archived_at.is_(None))
    if shape.by_ids:
        branch = branch.where(table.id.in_(bindparam("ids", expanding=True)))
    name = kind.__tablename__
    if name in shape.few:
        branch = branch.where(among_few(table.id, name))
    if shape.words:
        branch = branch.where(has_words(table.search_text, "word", shape.words, is_common=name in shape.common))
    return branch
