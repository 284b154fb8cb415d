"""The base of all tables, and what a column means beyond its type."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

from sqlalchemy import ForeignKey, MetaData
from sqlalchemy import Table as SqlTable
from sqlalchemy.orm import DeclarativeBase, MappedColumn, mapped_column
from uuid_utils import uuid7

from normata.core.db.types import text


class Table(DeclarativeBase):
    """The base of all tables, with what bundles, changes and security need to know of each.

    ``array`` names the sort of the rows on the wire: in events, and in bundles if they carry them; ``ignored`` has the
    wire names that a row may carry but that follow from others; ``fixed`` has the columns that no later bundle may
    change; ``generated`` has those that are made from others where a new row lacks them.

    ``shown_in`` names the kept lists that show something of the rows: whatever changes a row advances their revisions.
    ``bulky`` is true if rows come by the thousand, as the contents of catalogs do: a load of them is one change.
    ``published`` is false if rows follow from what is published anyway: events, notifications, counters, results.
    ``transient`` is true if rows are of use for some days at most: one that names a person who is erased is deleted.
    ``readable`` has the only columns that the service may read on a database with grants; null for all.
    ``event_columns`` has the only ones that events show; null for the readable ones.
    """

    array: ClassVar[str] = ""
    ignored: ClassVar[frozenset[str]] = frozenset()
    fixed: ClassVar[tuple[str, ...]] = ("organization_id",)
    generated: ClassVar[frozenset[str]] = frozenset({"slug", "short_id", "order"})
    shown_in: ClassVar[frozenset[str]] = frozenset()
    bulky: ClassVar[bool] = False
    transient: ClassVar[bool] = False
    published: ClassVar[bool] = True
    readable: ClassVar[frozenset[str] | None] = None
    event_columns: ClassVar[frozenset[str] | None] = None

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )

    @classmethod
    def title_column(cls) -> str:
        """The column that people know a row by."""
        return _title_column(cls)

    @classmethod
    def fill(cls, row: dict[str, Any]) -> None:
        """Fill gaps of a new row that follow from the rest of it."""

    @classmethod
    def needs(cls, row: Mapping[str, Any]) -> Sequence[str]:
        """Columns that may be null, but not in a complete row like this one."""
        del row
        return ()

    @classmethod
    def derive(cls, row: dict[str, Any]) -> None:
        """Set the derived columns of a complete row. It must be able to do so for one whose texts are all empty."""


class _Watched(dict[str, Any]):
    """A row that notes which columns are read, and which are set."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(dict.fromkeys(names, ""))
        self.read: set[str] = set()
        self.set: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.read.add(name)
        return super().__getitem__(name)

    def __setitem__(self, name: str, value: Any) -> None:
        self.set.add(name)
        super().__setitem__(name, value)


def derived_from(table: type[Table], columns: Collection[str]) -> frozenset[str]:
    """The derived columns that follow from any of these columns, as :meth:`Table.derive` has it.

    One that is read as well, such as a count, is only filled there.
    """
    row = _watched(table)
    return frozenset(row.set - row.read) if (row.read - row.set).intersection(columns) else frozenset()


@cache
def _watched(table: type[Table]) -> _Watched:
    row = _Watched([column.name for column in sql_table(table).c])
    table.derive(row)
    return row


def sql_table(table: type[Table]) -> SqlTable:
    """The table of a class, for Core statements: columns that may be absent, or that only a loop knows, live there."""
    sql = table.__table__
    assert isinstance(sql, SqlTable)  # noqa: S101 - narrows the type; a declarative class has no other
    return sql


@cache
def _title_column(table: type[Table]) -> str:
    return next(name for name in ("name", "title", "acronym", "id") if name in sql_table(table).c)


def new_id() -> str:
    """A new identifier: a UUIDv7 (RFC 9562), so that ids made later sort later."""
    return str(uuid7())


def foreign_key(column: str) -> ForeignKey:
    """A reference that is checked when the transaction ends, so that rows may be written in any order."""
    return ForeignKey(column, deferrable=True, initially="DEFERRED")


def known(*values: str, default: str | None = None) -> MappedColumn[str]:
    """An open enum: any token is taken, ``values`` are those we know, ``default`` (else the first) fills a gap."""
    return mapped_column(text(64), info={"known": values, "default": default or values[0]})


def defaults_to(default: object) -> MappedColumn[Any]:
    """A column that a new row may leave out: ``default`` fills the gap."""
    return mapped_column(info={"default": default})


def refers_to(table: str) -> MappedColumn[Any]:
    """A reference to a row of ``table``, of the same organization or of none."""
    return mapped_column(text(255), info={"refers_to": table})


@dataclass(frozen=True, slots=True)
class Due:
    """What ends a date by which something has to be done.

    That is any of the statuses ``at``, or any of the columns ``once`` that is no longer null.
    """

    at: tuple[str, ...] = ()
    once: tuple[str, ...] = ()


def due(*, at: Sequence[str] = (), once: Sequence[str] = ()) -> MappedColumn[Any]:
    """A date by which something has to be done, unless a row has a status of ``at``, or a column of ``once`` is set."""
    return mapped_column(info={"due": Due(tuple(at), tuple(once))})


def may_name(table: str) -> MappedColumn[Any]:
    """An opaque id of another system, which may happen to name a row of ``table``: then people see its name."""
    return mapped_column(info={"may_name": table})


def written_as(hint: Any) -> MappedColumn[Any]:
    """A column whose values requests write as ``hint`` has it. What was loaded may be different, and stays."""
    return mapped_column(info={"written": hint})


def names_person() -> MappedColumn[Any]:
    """A column that has the name of a person, and nothing else."""
    return mapped_column(info={"names_person": True})


# The info of a text column whose values the program makes or knows: hashes, enums, ids. No person is named there. What
# says nothing of this kind is taken for a text that people write, and is looked through when a person is erased.
CODED = {"coded": True}

# The info of a column that has an email address: whose it is follows from all of it, and from nothing like it.
EMAIL = {"email": True}


def erased_to(value: str | None) -> dict[str, Any]:
    """The info of a text column that has JSON of which no part can be changed, see ``normata.erasure``.

    Where it names a person who is erased, ``value`` takes its place.
    """
    return {"erased_to": value}


def derived() -> MappedColumn[Any]:
    """A column that is computed from the others and never seen on the wire."""
    return mapped_column(info={"derived": True})


_KNOWN: dict[str, type[Table]] = {}


def table_named(name: str) -> type[Table]:
    """The table that SQL calls ``name``. Raises KeyError if no module that declares it has been imported."""
    if name not in _KNOWN:
        _KNOWN.update((str(mapper.class_.__tablename__), mapper.class_) for mapper in Table.registry.mappers)
    return _KNOWN[name]


def tables() -> list[type[Table]]:
    """All tables whose modules have been imported."""
    return [mapper.class_ for mapper in Table.registry.mappers]
