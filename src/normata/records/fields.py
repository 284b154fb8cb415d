"""The fields of a kind, derived from its declaration, for pages and forms of records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from pydantic.alias_generators import to_camel
from sqlalchemy import Boolean, Column, Integer, String

from normata.core.db.types import Document, UtcTimestamp, now, passes_at
from normata.core.schema.table import Due, table_named
from normata.core.schema.wire import columns, wire_names
from normata.records.base import Restorable, filter_columns, is_id
from normata.records.writing import step_to, writable

ANY = "any"  # what an opaque id may name of which nobody has declared it: a record of any kind

# A `token` is a value of an open enum, a `reference` the id of a row, a `foreign` an id in another system, a `text` a
# short text, and a `prose` a long one; `files` is a list of files.
Sort = Literal[
    "text", "prose", "token", "flag", "moment", "count", "number", "document", "reference", "foreign", "files"
]


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a kind.

    ``known`` has the known values of an open enum, ``target`` is the kind of rows that a reference names, by its name
    in bundles and paths; for an opaque id, the kind that it may name. ``ends`` declares when a due date is done; null
    for other fields. Dates are shown as days, unless ``has_time``.
    """

    name: str
    sort: Sort
    known: tuple[str, ...]
    default: Any
    target: str
    ends: Due | None
    is_title: bool
    is_writable: bool
    is_responsible: bool
    is_filter: bool
    may_be_null: bool
    has_time: bool

    @property
    def is_typed(self) -> bool:
        """Whether people can fill it in, in a form. Files are attached beside it; programs write other systems' ids."""
        return self.is_writable and self.sort != "files" and not self.is_opaque

    @property
    def is_opaque(self) -> bool:
        """Whether it is an id of another system, of which is not known what it names."""
        return self.sort == "foreign" and not self.target

    @property
    def may_name(self) -> str:
        """The kind of rows that its value may name; ``ANY`` for records of all kinds, and empty if it names none."""
        return ANY if self.is_opaque else self.target

    def is_open(self, record: Mapping[str, Any]) -> bool:
        """Whether the due date of a record is still open."""
        ends = self.ends
        if ends is None or record[self.name] is None or record["archivedAt"] is not None:
            return False
        if ends.ends_by_passing and passes_at(record[self.name]) <= now():
            return False
        return record.get("status") not in ends.at and all(record[to_camel(name)] is None for name in ends.once)


@cache
def fields_of(kind: type[Restorable]) -> tuple[Field, ...]:
    """The fields of a kind, in wire form, in their order."""
    return tuple(_field(kind, column) for column in columns(kind))


def offered_values(kind: type[Restorable], field: Field, record: Mapping[str, Any] | None) -> tuple[str, ...]:
    """The known values of an open enum that a request may give a record in wire form; a new one, if that is null."""
    names = wire_names(kind)
    stored = {column: record[name] for column, name in names.items()} if record else {}
    column = next(column for column, name in names.items() if name == field.name)
    return tuple(value for value in field.known if step_to(kind, column, value, stored) is None)


@cache
def referring_to(target: str) -> tuple[tuple[type[Restorable], Field], ...]:
    """The fields of records that refer to rows of this kind, or may name them, each with its own kind.

    Fields that a step sets are left out: nobody chooses what they name.
    """
    return tuple(
        (kind, field)
        for kind in Restorable.kinds
        for field in fields_of(kind)
        if field.target == target and field.is_writable
    )


def _field(kind: type[Restorable], column: Column[Any]) -> Field:
    sort = _sort(column)
    named = column.info.get("refers_to" if sort == "reference" else "may_name", "")
    return Field(
        name=to_camel(column.name),
        sort=sort,
        known=column.info.get("known", ()),
        default=column.info.get("default"),
        target=table_named(named).array if named else "",
        ends=column.info.get("due"),
        is_title=column.name == kind.title_column(),
        is_writable=column.name in writable(kind),
        is_responsible=column.name == kind.responsible,
        is_filter=column.name in {one.name for one in filter_columns(kind)},
        may_be_null=bool(column.nullable),
        has_time=sort == "moment" and (kind.has_times or column.name not in writable(kind)),
    )


def _sort(column: Column[Any]) -> Sort:
    declared: tuple[tuple[str, Sort], ...] = (("refers_to", "reference"), ("lists", "files"), ("known", "token"))
    for name, sort in declared:
        if name in column.info:
            return sort
    if is_id(column):
        return "foreign"
    by_type: tuple[tuple[type[Any], Sort], ...] = (
        (Boolean, "flag"),
        (UtcTimestamp, "moment"),
        (Document, "document"),
        (Integer, "count"),
    )
    for sqltype, sort in by_type:
        if isinstance(column.type, sqltype):
            return sort
    if isinstance(column.type, String):
        return "prose" if column.type.length is None else "text"
    return "number"
