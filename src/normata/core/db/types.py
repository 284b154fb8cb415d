"""Column types with the same meaning on every database, and times in wire form."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import JSON, DateTime, Dialect, String
from sqlalchemy.types import TypeDecorator, TypeEngine


def text(length: int | None = None) -> TypeEngine[str]:
    """A character column that every database orders by code point, whatever its locale."""
    return String(length).with_variant(String(length, collation="C"), "postgresql")


def format_timestamp(moment: datetime) -> str:
    """``moment`` (aware) in wire form: RFC 3339, UTC, milliseconds, ``Z``.

    The width is fixed, so that the order of the texts is the order of the times.
    """
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def now() -> str:
    """The current time in wire form."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


_MIDNIGHT = "T00:00:00.000Z"


def is_plain(date: str) -> bool:
    """Whether a date in wire form has no time of day: such a one is stored as midnight."""
    return date.endswith(_MIDNIGHT)


def passes_at(date: str) -> str:
    """The time at which a date in wire form has passed: for a plain one the end of its UTC day."""
    if not is_plain(date):
        return date
    try:
        return format_timestamp(datetime.fromisoformat(date) + timedelta(days=1))
    except OverflowError:  # the last representable day
        return date


def from_instant(moment: datetime) -> str:
    """An instant of asyncpg in wire form."""
    # asyncpg returns the first instant of year 1 without a time zone, as it does minus infinity.
    return format_timestamp(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


# Created once, because that takes as long as encoding a small value.
_encode = json.JSONEncoder(ensure_ascii=False).encode

Conversion = Callable[[Any], Any]


class UtcTimestamp(TypeDecorator[str]):
    """An instant, in Python always a text in wire form.

    PostgreSQL keeps it as ``timestamptz``. SQLite has no type for instants and would return naive ones; there the text
    itself is stored, which sorts correctly and is quick to read.
    """

    impl = String(24)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """The database's own type."""
        return dialect.type_descriptor(DateTime(timezone=True) if dialect.name == "postgresql" else String(24))

    def bind_processor(self, dialect: Dialect) -> Conversion | None:
        """From the wire's text; null if the database takes it as it is."""
        if dialect.name != "postgresql":
            return None
        return lambda value: value if value is None else datetime.fromisoformat(value)

    def result_processor(self, dialect: Dialect, _coltype: object) -> Conversion | None:
        """To the wire's text; null if the database returns just that."""
        if dialect.name != "postgresql":
            return None
        return lambda value: value if value is None else from_instant(value)


class Document(TypeDecorator[Any]):
    """A JSON value, stored as it was passed, including the order of names.

    SQLite gives a column declared as JSON the affinity NUMERIC, which turns a bare 0.0 into 0: there it is text.
    """

    impl = JSON(none_as_null=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """The database's own type."""
        return dialect.type_descriptor(JSON(none_as_null=True) if dialect.name == "postgresql" else String())

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        """From a value that JSON can hold."""
        return value if value is None or dialect.name == "postgresql" else _encode(value)

    def result_processor(self, dialect: Dialect, _coltype: object) -> Conversion | None:
        """To the same value; null if the driver does that by itself."""
        if dialect.name == "postgresql":
            return None
        return lambda value: value if value is None else json.loads(value)


def document() -> TypeEngine[Any]:
    """A column type for JSON values, as migrations name it."""
    return Document()


def timestamp() -> TypeEngine[str]:
    """A column type for instants, as migrations name it."""
    return UtcTimestamp()
