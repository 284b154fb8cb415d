"""The live records of an organization, whatever their kind: to find one without knowing what it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from pydantic import Field
from sqlalchemy import Integer, Select, and_, case, cast, literal, null, select, union_all

from normata.db.transaction import Transaction
from normata.records.archive_list import KINDS, KindsQuery
from normata.schema.fields import Timestamp
from normata.schema.paging import digits_only, matching
from normata.schema.text import natural_key
from normata.schema.wire import Wire


class EveryKindQuery(KindsQuery):
    """What the search of records of all kinds takes."""

    limit: Annotated[int, Field(ge=1, le=100, description="The most records to answer."), digits_only] = 20


class RecordOfAnyKind(Wire):
    """A live record, by its names."""

    kind: str = Field(description="Its kind, as in its path.")
    id: str = Field(description="Its id.")
    label: str = Field(description="Its title, name or acronym.")
    slug: str | None = Field(description="Its slug; null where its kind has none.")
    short_id: int | None = Field(description="Its short id; null where its kind has none.")
    created_at: Timestamp


class FoundRecords(Wire):
    """Records that a search has found."""

    items: list[RecordOfAnyKind]


def search_every_kind(transaction: Transaction, query: EveryKindQuery) -> dict[str, Any]:
    """The first live records of all kinds that a search finds, in one statement whatever the kinds.

    Newest first; in a search those come before that have all words in their title.
    """
    branches = list(_branches(query))
    items = [
        {
            "kind": row.kind,
            "id": row.id,
            "label": row.label,
            "slug": row.slug,
            "shortId": row.short_id,
            "createdAt": row.created_at,
        }
        for row in transaction.rows(_first(branches, query))
    ]
    return {"items": items}


def _branches(query: EveryKindQuery) -> Iterator[Select[Any]]:
    """The live records of each kind."""
    words = natural_key(query.search or "").split()
    for place, (path, kind) in enumerate(KINDS.items()):
        if query.kind is not None and path not in query.kind:
            continue
        table = kind.sql().c
        in_title = [table.title_key.contains(word, autoescape=True) for word in words]
        branch = select(
            literal(place).label("place"),
            literal(path).label("kind"),
            table.id,
            table[kind.title_column()].label("label"),
            (table.slug if "slug" in table else null()).label("slug"),
            (table.short_id if "short_id" in table else cast(null(), Integer())).label("short_id"),
            table.created_at,
            (case((and_(*in_title), 0), else_=1) if in_title else literal(0)).label("rank"),
        ).where(table.organization_id == query.organization_id, table.archived_at.is_(None))
        yield branch.where(matching(table.search_text, query.search)) if query.search else branch


def _first(branches: Sequence[Select[Any]], query: EveryKindQuery) -> Select[Any]:
    """The first rows of the branches together. A branch has no more rows than are wanted, so that an index ends it."""
    reached: list[Select[Any]] = []
    for branch in branches:
        columns = branch.selected_columns
        newest = columns.created_at.desc(), columns.id.desc()
        kept = (columns.rank, *newest) if query.search else newest
        reached.append(select(*branch.order_by(*kept).limit(query.limit).subquery().c))
    every: Any = union_all(*reached).subquery()
    order = (every.c.rank, every.c.created_at.desc(), every.c.place, every.c.id.desc())
    return select(*every.c).order_by(*order).limit(query.limit)
