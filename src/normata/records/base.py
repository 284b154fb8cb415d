"""The base of all restorable kinds. A kind is a class, from which everything else is derived."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, ClassVar

from sqlalchemy import (
    Boolean,
    Column,
    ColumnElement,
    ForeignKeyConstraint,
    Index,
    String,
    UniqueConstraint,
    literal_column,
    text,
)
from sqlalchemy import Table as SqlTable
from sqlalchemy.orm import Mapped, declared_attr, mapped_column
from sqlalchemy.schema import SchemaItem

from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.trigrams import add_triggers
from normata.core.schema.descriptions import with_article
from normata.core.schema.fields import Identifier, Text, Timestamp
from normata.core.schema.table import Due, Table, foreign_key, sql_table
from normata.core.schema.text import natural_key, search_text
from normata.core.schema.wire import columns
from normata.errors import DomainError

_EMPTY: ColumnElement[str] = literal_column("''")

# Earlier than any timestamp. A condition that always holds restricts an index to the statements that repeat it.
NEVER = "'0001-01-01T00:00:00.000Z'"

# Characters of a title's key: an index entry of PostgreSQL has at most 2.7 kB, and one of them may have four bytes.
TITLE_KEY = 400

# Inherited columns would come after a kind's own. The keys belong in front, the times at the end.
_ID, _ORGANIZATION, _CREATED, _UPDATED, _ARCHIVED, _DERIVED = -2, -1, 1, 2, 3, 4


# Raises a DomainError if the actor of a request may not make the last row of the one before, null if there was none.
Guard = Callable[[UnitOfWork, Mapping[str, Any] | None, Mapping[str, Any]], None]
# The columns of a stored row that follow from a step, and the step, where they do in some rows only.
Held = Callable[[UnitOfWork, Mapping[str, Any]], Mapping[str, str]]


class Restorable(Table):
    """A record of an organization that can be archived and restored.

    A kind declares its ``path`` (the segment of its address, and its bundle array), its columns, the ``topic`` of
    notifications about it, and, if it has one, the column of the responsible member (``responsible``). ``has_times`` is
    true if the time of its dates matters, as for an incident.
    """

    __abstract__ = True

    path: ClassVar[str]
    topic: ClassVar[str] = "SYSTEM"
    responsible: ClassVar[str | None] = None
    has_times: ClassVar[bool] = False
    guard: ClassVar[Guard | None] = None
    held: ClassVar[Held | None] = None
    refusals: ClassVar[tuple[type[DomainError], ...]] = ()  # what `guard` raises, but for Forbidden
    answers_null: ClassVar[bool] = False  # restore answers `null` instead of the record

    kinds: ClassVar[list[type[Restorable]]] = []

    id: Mapped[Identifier] = mapped_column(primary_key=True, sort_order=_ID)
    organization_id: Mapped[Identifier] = mapped_column(foreign_key("organization.id"), sort_order=_ORGANIZATION)
    created_at: Mapped[Timestamp] = mapped_column(sort_order=_CREATED)
    archived_at: Mapped[Timestamp | None] = mapped_column(sort_order=_ARCHIVED)

    search_text: Mapped[Text] = mapped_column(server_default=_EMPTY, sort_order=_DERIVED, info={"derived": True})
    title_key: Mapped[Text] = mapped_column(
        server_default=_EMPTY, sort_order=_DERIVED, info={"derived": True, "is_cut": True}
    )

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if "path" in cls.__dict__:
            cls.array = cls.path
            cls.kinds.append(cls)
        super().__init_subclass__(**kwargs)
        if "path" in cls.__dict__:
            _index_lists(cls)

    @classmethod
    def sql(cls) -> SqlTable:
        """The kind's table, for Core statements."""
        return sql_table(cls)

    @classmethod
    def words(cls) -> str:
        """The kind's name as a person writes it: ``record category``."""
        return re.sub(r"(?<!^)(?=[A-Z])", " ", cls.__name__).lower()

    @classmethod
    def plural(cls) -> str:
        """The kind's name for several of them: ``record categories``."""
        words = cls.words()
        return f"{words[:-1]}ies" if words.endswith("y") else f"{words}es" if words.endswith("s") else f"{words}s"

    @classmethod
    def with_article(cls) -> str:
        """The kind's name for one of them: ``an asset``."""
        return with_article(cls.words())

    @classmethod
    def derive(cls, row: dict[str, Any]) -> None:
        row["search_text"] = search_text(*(row[name] for name in text_columns(cls)))
        row["title_key"] = natural_key(row[cls.title_column()])[:TITLE_KEY]

    @classmethod
    def follow(cls, before: Mapping[str, Any] | None, after: dict[str, Any]) -> None:
        """Set what follows from a request that writes a row: ``after``, which was ``before``; null if it is new."""

    @declared_attr.directive
    def __table_args__(cls) -> tuple[SchemaItem, ...]:  # noqa: N805 - declared_attr makes it a class method
        table = cls.__tablename__
        references = _references(vars(cls))
        arguments: list[SchemaItem] = [
            # References include the organization, so that the database refuses those across tenants.
            UniqueConstraint("organization_id", "id"),
            *(
                ForeignKeyConstraint(
                    ["organization_id", name],
                    [f"{target}.organization_id", f"{target}.id"],
                    deferrable=True,
                    initially="DEFERRED",
                )
                for name, target in references
                if target not in _SHARED
            ),
            *(
                ForeignKeyConstraint([name], [f"{target}.id"], deferrable=True, initially="DEFERRED")
                for name, target in references
                if target in _SHARED
            ),
        ]
        if "slug" in cls.__annotations__:
            # For the search for a free slug, which considers archived records, too.
            arguments.append(Index(f"ix_{table}_slug", "organization_id", "slug"))
            live = text("archived_at IS NULL")
            arguments.append(
                Index(
                    f"uq_{table}_live_slug", "organization_id", "slug", unique=True,
                    sqlite_where=live, postgresql_where=live,
                )
            )  # fmt: skip
        archived = text("archived_at IS NOT NULL")
        arguments.append(
            Index(
                f"ix_{table}_archived_at", "organization_id", "archived_at", "id",
                sqlite_where=archived, postgresql_where=archived,
            )
        )  # fmt: skip
        if "short_id" in cls.__annotations__:
            arguments.append(UniqueConstraint("organization_id", "short_id"))
        for name, ends in _due_dates(vars(cls)):
            is_open = text(where_due(name, ends))
            arguments.append(
                Index(
                    f"ix_{table}_{name}_due", "organization_id", name, "id",
                    sqlite_where=is_open, postgresql_where=is_open,
                )
            )  # fmt: skip
        return tuple(arguments)


class Maintained(Restorable):
    """A record with the time of its last change; all kinds but one."""

    __abstract__ = True

    updated_at: Mapped[Timestamp] = mapped_column(sort_order=_UPDATED)


def _index_lists(kind: type[Restorable]) -> None:
    """Add the indexes for a kind's list, in the default order, in others, and with each single filter.

    All end with the id, because after a load many records have the same time, or no date. Those of live records alone
    have a second condition, which always holds, and which only lists repeat. Without it PostgreSQL would look for the
    live record with a slug among all live ones, where its statistics say that there are none.

    The others include the archived state, so that live and archived records are counted without reading the rows. Nulls
    are left out of those for filters: no filter selects them, and most references are null.
    """
    table = kind.sql()
    live, archived = f"archived_at IS NULL AND created_at <> {NEVER}", "archived_at IS NOT NULL"
    created = (table.c.created_at, table.c.id)
    _index(table, "live_list", created, where=live)
    _index(table, "archived_list", created, where=archived)
    for column in table.c:
        if has_order(column):
            _index(table, f"{column.name.removesuffix('_key')}_order", (column, table.c.id), where=live)
    if "updated_at" in table.c:
        Index(
            f"ix_{table.name}_updated_list",
            *(table.c.organization_id, table.c.updated_at, table.c.id, table.c.archived_at),
            sqlite_where=text(f"updated_at <> {NEVER}"),
        )
    for column in filter_columns(kind):
        where = f"{column.name} IS NOT NULL" if column.nullable else None
        _index(table, f"{column.name}_list", (column, *created, table.c.archived_at), where=where)
    add_triggers(table)


def _index(table: SqlTable, name: str, of: Iterable[Column[Any]], *, where: str | None) -> None:
    condition = None if where is None else text(where)
    Index(
        f"ix_{table.name}_{name}",
        *(table.c.organization_id, *of),
        sqlite_where=condition,
        postgresql_where=condition,
    )


def is_listed(kind: type[Restorable]) -> ColumnElement[bool]:
    """The condition, which always holds, that opens the indexes of live records to a statement."""
    return kind.sql().c.created_at != literal_column(NEVER)


def has_order(column: Column[Any]) -> bool:
    """Whether an index of its own has the live records in the order of a column."""
    return column.name == "title_key" or "due" in column.info


@cache
def filter_columns(kind: type[Restorable]) -> tuple[Column[Any], ...]:
    """The columns that a list can be filtered by: enums, flags and references."""
    return tuple(
        column
        for column in columns(kind)
        if "known" in column.info
        or isinstance(column.type, Boolean)
        or (is_id(column) and column.name not in ("id", "organization_id"))
    )


@cache
def text_columns(kind: type[Restorable]) -> tuple[str, ...]:
    """The columns with texts that people write, short and long; no ids, and no tokens of an enum."""
    return tuple(
        column.name
        for column in columns(kind)
        if isinstance(column.type, String) and not is_id(column) and "known" not in column.info
    )


def is_id(column: Column[Any]) -> bool:
    """Whether a column has an id: the row's own, or a reference, to a row here or to something elsewhere."""
    return isinstance(column.type, String) and (column.name == "id" or column.name.endswith("_id"))


_SHARED = frozenset({"framework", "control"})  # may be centralized, without an organization


def where_due(column: str, ends: Due) -> str:
    """The condition in SQL that a record is live, and that the date in this column still has to be met.

    It is the condition of an index, so statements must use it literally, including its values.
    """
    conditions = ["archived_at IS NULL", f"{column} IS NOT NULL"]
    if ends.at:
        conditions.append(f"status NOT IN ({', '.join(map(repr, ends.at))})")
    return " AND ".join([*conditions, *(f"{name} IS NULL" for name in ends.once)])


def _due_dates(declared: Mapping[str, Any]) -> list[tuple[str, Due]]:
    return [
        (name, column.column.info["due"])
        for name, column in declared.items()
        if hasattr(column, "column") and "due" in column.column.info
    ]


def _references(declared: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [
        (name, column.column.info["refers_to"])
        for name, column in declared.items()
        if hasattr(column, "column") and "refers_to" in column.column.info
    ]
