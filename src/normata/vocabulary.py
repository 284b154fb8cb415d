"""The words of the domain: types that say at once how a value is stored, checked and described on the wire."""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, StringConstraints, WithJsonSchema
from sqlalchemy import Boolean, Double, ForeignKey, Integer, MetaData
from sqlalchemy import Table as SqlTable
from sqlalchemy.orm import DeclarativeBase, MappedColumn, mapped_column
from sqlalchemy.types import TypeDecorator
from uuid_utils import uuid7

from normata.database import Document, UtcTimestamp, format_timestamp, text


class Table(DeclarativeBase):
    """The base of all tables, with what a bundle needs to know of each.

    ``array`` names the bundle array that carries the rows, where there is one; ``ignored`` has the wire names that a
    row may carry but that follow from others; ``fixed`` has the columns that no later bundle may change; ``filled`` has
    those that are made from others where a new row lacks them.
    """

    array: ClassVar[str] = ""
    ignored: ClassVar[frozenset[str]] = frozenset()
    fixed: ClassVar[tuple[str, ...]] = ("organization_id",)
    filled: ClassVar[frozenset[str]] = frozenset({"slug", "short_id", "order"})

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )

    @classmethod
    def fill(cls, row: dict[str, Any]) -> None:
        """Fill gaps of a new row that follow from the rest of it."""

    @classmethod
    def derive(cls, row: dict[str, Any]) -> None:
        """Set the derived columns of a complete row."""


def sql_table(table: type[Table]) -> SqlTable:
    """The table of a class, for Core statements: columns that may be absent, or that only a loop knows, live there."""
    sql = table.__table__
    assert isinstance(sql, SqlTable)  # noqa: S101 - narrows the type; a declarative class has no other
    return sql


def new_id() -> str:
    """A new identifier: a UUIDv7 (RFC 9562), so that ids made later sort later."""
    return str(uuid7())


# --- Text

_NO_CONTROL = r"^[^\x00-\x1f\x7f]+$"
_NO_NUL = r"^[^\x00]*$"

Identifier = Annotated[
    str,
    StringConstraints(min_length=1, max_length=128, pattern=_NO_CONTROL),
    mapped_column(text(128)),
]
Name = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=_NO_NUL), mapped_column(text(500))]
Slug = Annotated[
    str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\s/\x00-\x1f\x7f]+$"), mapped_column(text(200))
]
ShortText = Annotated[str, StringConstraints(max_length=1_000, pattern=_NO_NUL), mapped_column(text(1_000))]
Text = Annotated[str, StringConstraints(max_length=100_000, pattern=_NO_NUL), mapped_column(text())]
Token = Annotated[
    str, StringConstraints(min_length=1, max_length=64, pattern=r"^[A-Z][A-Z0-9_]*$"), mapped_column(text(64))
]


def _folds_short(value: str) -> str:
    """Folding can make a text longer (ß becomes ss), and it is the folded address that has to fit."""
    if len(fold(value)) > 320:
        raise ValueError("must have at most 320 characters, ß and the like counted as what they stand for")
    return value


Email = Annotated[
    str,
    AfterValidator(_folds_short),
    StringConstraints(max_length=320, pattern=r"^[^@\s\x00-\x1f\x7f]+@[^@\s\x00-\x1f\x7f]+$"),
    mapped_column(text(320)),
]


def slugify(*parts: str) -> str:
    """The parts as one slug: ASCII letters and digits with single hyphens, at most 80 characters, never empty."""
    plain = unicodedata.normalize("NFKD", " ".join(parts).casefold()).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain)[:80].strip("-") or "untitled"


def search_text(*parts: str | None) -> str:
    """What a search looks through: folded for case and width in every script, one part a line.

    SQLite's ``lower`` knows ASCII only, and no two databases fold alike, so the folding is done here and stored.
    """
    return fold("\n".join(part for part in parts if part))


def fold(value: str) -> str:
    """``value`` in the one form in which texts that a reader holds for the same are the same (NFKC, case folded)."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", value).casefold())


def natural_key(value: str) -> str:
    """A key whose code-point order is the natural order of ``value``: A.5.2 comes before A.5.10.

    Each run of digits is written as its length and itself, so that the longer number sorts later; at most 999 digits
    count. Equal keys (A.5.02 and A.5.2) are told apart by whatever the order ends with.
    """

    def number(match: re.Match[str]) -> str:
        digits = match.group().lstrip("0")[:999] or "0"
        return f"{len(digits):03}{digits}"

    return re.sub(r"[0-9]+", number, fold(value))


# --- Time

_RFC_3339 = re.compile(r"(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d:\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d))?", re.ASCII)


def parse_timestamp(value: str) -> str:
    """``value``, an RFC 3339 date-time with any offset or a plain date (midnight UTC), as the wire has it.

    Finer than milliseconds is cut off. Raises :class:`ValueError` with a reason fit for the sender.
    """
    match = _RFC_3339.fullmatch(value)
    if match is None:
        raise ValueError("must be an RFC 3339 date-time with an offset, or a plain date")
    day, clock, fraction, offset = match.groups()
    try:
        if clock is None:
            moment = datetime.fromisoformat(day).replace(tzinfo=UTC)
        else:
            zone = "+00:00" if offset in ("Z", "z") else offset
            # fromisoformat would take sixty minutes for an hour; nonsense is refused by it.
            zone = zone if zone[-2:] < "60" else "nonsense"
            moment = datetime.fromisoformat(f"{day}T{clock}{((fraction or '.') + '000')[:4]}{zone}")
        return format_timestamp(moment)
    except (ValueError, OverflowError):
        raise ValueError("names a day, time or offset that does not exist") from None


Timestamp = Annotated[
    str,
    AfterValidator(parse_timestamp),
    WithJsonSchema(
        {
            "type": "string",
            "format": "date-time",
            "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$",
            "examples": ["2026-11-20T09:14:03.120Z"],
        }
    ),
    mapped_column(UtcTimestamp()),
]


# --- Numbers, flags, documents

_SAFE = 2**53 - 1  # the largest integer that every reader of JSON can hold (RFC 7493)


class _Number(TypeDecorator[float]):
    """A double that gives whole numbers back as integers, so that 3 leaves as 3."""

    impl = Double
    cache_ok = True

    def process_result_value(self, value: float | None, _dialect: object) -> float | None:
        # SQLite's RETURNING hands whole numbers back as integers already.
        return int(value) if isinstance(value, float) and value.is_integer() else value


LARGEST_NUMBER = 2**31 - 1  # of what is counted

Count = Annotated[int, Field(ge=-LARGEST_NUMBER, le=LARGEST_NUMBER), mapped_column(Integer)]
ShortId = Annotated[int, Field(ge=1, le=LARGEST_NUMBER), mapped_column(Integer)]
Number = Annotated[float, Field(ge=-_SAFE, le=_SAFE, allow_inf_nan=False), mapped_column(_Number)]
Flag = Annotated[bool, mapped_column(Boolean)]
Json = Annotated[Any, mapped_column(Document())]


# --- Closed enums: the engine computes with them

CoverageStatus = Literal["NONE", "PARTIAL", "FULL"]
MatchLevel = Literal["PARTIAL", "FULL"]
ControlType = Literal["CATEGORY", "CONTROL"]
COVERAGE_STATUSES: tuple[CoverageStatus, ...] = ("NONE", "PARTIAL", "FULL")


class _Ranked(TypeDecorator[str]):
    """A coverage status or match level, stored as its rank so that the database orders it rightly."""

    impl = Integer
    cache_ok = True

    def process_bind_param(self, value: str | None, _dialect: object) -> int | None:
        return None if value is None else COVERAGE_STATUSES.index(value)

    def process_result_value(self, value: int | None, _dialect: object) -> str | None:
        return None if value is None else COVERAGE_STATUSES[value]


Coverage = Annotated[CoverageStatus, mapped_column(_Ranked)]
Level = Annotated[MatchLevel, mapped_column(_Ranked)]
Kind = Annotated[ControlType, mapped_column(text(8))]


# --- What a column means beyond its type


def foreign_key(column: str) -> ForeignKey:
    """A reference that is checked when the transaction ends, so that rows may be written in any order."""
    return ForeignKey(column, deferrable=True, initially="DEFERRED")


def known(*values: str, default: str | None = None) -> MappedColumn[str]:
    """An open enum: any token is taken, ``values`` are those we know, ``default`` (else the first) fills a gap."""
    return mapped_column(text(64), info={"known": values, "default": default or values[0]})


def filled(default: object) -> MappedColumn[Any]:
    """A column that a bundle may leave out: ``default`` fills the gap."""
    return mapped_column(info={"default": default})


def refers_to(table: str) -> MappedColumn[Any]:
    """A reference to a row of ``table``, of the same organization or of none."""
    return mapped_column(text(128), info={"refers_to": table})


def derived() -> MappedColumn[Any]:
    """A column that is computed from the others and never seen on the wire."""
    return mapped_column(info={"derived": True})
