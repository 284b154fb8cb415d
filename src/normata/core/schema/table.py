"""The base of all tables, and the declarations of columns beyond their types."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, ClassVar

from sqlalchemy import ForeignKey, MetaData
from sqlalchemy import Table as SqlTable
from sqlalchemy.orm import DeclarativeBase, MappedColumn, mapped_column
from uuid_utils import uuid7

from normata.core.db.types import text


class Table(DeclarativeBase):
    """The base of all tables, with declarations for bundles, changes and security.

    ``array`` names the kind of rows on the wire: in events, and in bundles if they have them. ``ignored`` has the wire
    names that a row may have but that are derived; ``fixed`` has the columns that cannot change later; ``generated``
    has those that are derived from others if a new row lacks them. ``shown_in`` names the cached lists that show
    something of the rows: every change of a row advances their revisions. ``bulky`` is true if there are thousands of
    rows, as in catalogs: a load of them is one change. ``published`` is false if rows follow from published changes:
    events, notifications, counters, results. ``transient`` is true if a row that names an erased person is deleted: it
    is needed for some days at most, or means nothing without the name. ``readable`` has the columns that the service
    may read on a database with grants; null for all. ``event_columns`` has those that events show; null for the
    readable ones. ``named_if`` has the columns that decide whether another row may newly refer to one, see
    :meth:`unnamed_because`. ``document_if`` has those that decide whether it is a document, see :meth:`is_document`.
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
    named_if: ClassVar[tuple[str, ...]] = ("removed_at",)
    document_if: ClassVar[tuple[str, ...]] = ()

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
        """The column with a row's name for people."""
        return _title_column(cls)

    @classmethod
    def fill(cls, row: dict[str, Any]) -> None:
        """Set missing values of a new row that are derived from others."""

    @classmethod
    def needs(cls, row: Mapping[str, Any]) -> Sequence[str]:
        """The nullable columns that must not be null in a complete row like this one."""
        del row
        return ()

    @classmethod
    def unnamed_because(cls, row: Mapping[str, Any]) -> str | None:
        """Why no other row may newly refer to one like this, such as "that was removed"; null if it may."""
        return "that was removed" if row.get("removed_at") is not None else None

    @classmethod
    def is_seen_by(cls, row: Mapping[str, Any], user_id: str | None) -> bool:
        """Whether a user may refer to a row that their organization has."""
        del row, user_id
        return True

    @classmethod
    def is_document(cls, row: Mapping[str, Any]) -> bool:
        """Whether law demands to keep the texts of a row, even if they name a person (GDPR, article 17(3) b)."""
        del row
        return False

    @classmethod
    def derive(cls, row: dict[str, Any]) -> None:
        """Set the derived columns of a complete row. It must also work if all texts are empty."""


class _Watched(dict[str, Any]):
    """A row that records which columns are read and set."""

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
    """The columns that :meth:`Table.derive` derives from any of these columns.

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
    """The table of a class, for Core statements with optional or computed columns."""
    sql = table.__table__
    assert isinstance(sql, SqlTable)  # noqa: S101 - narrows the type; a declarative class has no other
    return sql


@cache
def _title_column(table: type[Table]) -> str:
    return next(name for name in ("name", "title", "acronym", "id") if name in sql_table(table).c)


def new_id() -> str:
    """A new identifier: a UUIDv7 (RFC 9562), so that later ids sort later."""
    return str(uuid7())


def foreign_key(column: str) -> ForeignKey:
    """A reference that is checked when the transaction ends, so that rows may be written in any order."""
    return ForeignKey(column, deferrable=True, initially="DEFERRED")


def known(
    *values: str, default: str | None = None, steps: Mapping[str, str] = MappingProxyType({})
) -> MappedColumn[str]:
    """An open enum: any token is accepted, ``values`` are the known ones, ``default`` (else the first) the default.

    ``steps`` has the values that follow from steps, each with its step, as in :func:`set_by`.
    """
    return mapped_column(text(64), info={"known": values, "default": default or values[0], "by_steps": steps})


def defaults_to(default: object) -> MappedColumn[Any]:
    """A column that a new row may leave out, with its ``default``."""
    return mapped_column(info={"default": default})


def refers_to(table: str) -> MappedColumn[Any]:
    """A reference to a row of ``table``, of the same organization or of none."""
    return mapped_column(text(255), info={"refers_to": table})


def refers_to_kind(column: str) -> MappedColumn[Any]:
    """A reference to a row of the kind that another ``column`` names; rules of its table check it."""
    return mapped_column(text(255), info={"kind_in": column})


def lists(table: str) -> MappedColumn[Any]:
    """A column with a list of references to rows of ``table`` of the same organization."""
    return mapped_column(info={"lists": table, "default": []})


def set_by(
    step: str,
    *,
    known: Sequence[str] = (),
    refers_to: str | None = None,
    may_name: str | None = None,
    names_person: bool = False,
) -> MappedColumn[Any]:
    """A column that follows from a step of work, such as ``/accept/``, and is never written by hand.

    A request may send back the value that is there; a load keeps what it has. ``known`` are the values of an open enum,
    its default first; ``refers_to``, ``may_name`` and ``names_person`` are as in the functions of these names.
    """
    info: dict[str, Any] = {"set_by": step}
    if known:
        return mapped_column(text(64), info=info | {"known": tuple(known), "default": known[0]})
    if names_person:
        return mapped_column(info=info | {"names_person": True})
    if may_name is not None:
        return mapped_column(info=info | {"may_name": may_name})
    if refers_to is None:
        return mapped_column(info=info)
    return mapped_column(text(255), info=info | {"refers_to": refers_to})


@dataclass(frozen=True, slots=True)
class Due:
    """When a due date is done: any of the statuses ``at``, or any of the columns ``once`` that is no longer null.

    One that ``ends_by_passing`` is done once it has passed, so that it is never overdue.
    """

    at: tuple[str, ...] = ()
    once: tuple[str, ...] = ()
    ends_by_passing: bool = False


def due(*, at: Sequence[str] = (), once: Sequence[str] = (), ends_by_passing: bool = False) -> MappedColumn[Any]:
    """A due date, which is done if the row has a status of ``at``, or a column of ``once`` is set, or by passing."""
    return mapped_column(info={"due": Due(tuple(at), tuple(once), ends_by_passing)})


def may_name(table: str) -> MappedColumn[Any]:
    """An opaque id, which nothing checks. If a row of ``table`` has it, people see its name; they choose from these."""
    return mapped_column(info={"may_name": table})


def written_as(hint: Any, description: str | None = None) -> MappedColumn[Any]:
    """A column whose values in requests must be as ``hint`` says. Loaded values may be different, and stay.

    ``description`` is for OpenAPI, where the name of the column means something else in other tables.
    """
    return mapped_column(info={"written": hint} | ({"description": description} if description else {}))


def names_person() -> MappedColumn[Any]:
    """A column with only the name of a person."""
    return mapped_column(info={"names_person": True})


# For text columns whose values the program generates or knows, such as hashes, enums and ids, so that they contain no
# names. All other texts are searched when a person is erased.
CODED = {"coded": True}

# For columns that a table with a history has got since it has one: there they come last, where migrations add them.
ADDED = {"added": True}

# For columns with an email address: only the complete address tells whose it is.
EMAIL = {"email": True}


def erased_to(value: str | None) -> dict[str, Any]:
    """The info of a text column with JSON that cannot be changed in part, see ``normata.erasure``.

    If it names an erased person, ``value`` replaces it.
    """
    return {"erased_to": value}


def derived() -> MappedColumn[Any]:
    """A column that is computed from the others and never seen on the wire."""
    return mapped_column(info={"derived": True})


_KNOWN: dict[str, type[Table]] = {}


def table_named(name: str) -> type[Table]:
    """The table with this name in SQL. Raises KeyError if no module that declares it has been imported."""
    if name not in _KNOWN:
        _KNOWN.update((str(mapper.class_.__tablename__), mapper.class_) for mapper in Table.registry.mappers)
    return _KNOWN[name]


def tables() -> list[type[Table]]:
    """All tables whose modules have been imported."""
    return [mapper.class_ for mapper in Table.registry.mappers]
