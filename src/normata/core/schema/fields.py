"""The types of fields: how values are stored, validated and described in OpenAPI."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, StringConstraints, WithJsonSchema
from sqlalchemy import Boolean, Dialect, Double, Integer, String
from sqlalchemy.orm import mapped_column
from sqlalchemy.types import TypeDecorator, TypeEngine

from normata.core.db.types import Conversion, Document, UtcTimestamp, format_timestamp, text
from normata.core.schema.addresses import LONGEST_EMAIL, is_domain
from normata.core.schema.table import CODED, EMAIL
from normata.core.schema.text import BLANK, UNSEEN

# --- Text

_NO_CONTROL = r"^[^\x00-\x1f\x7f]+$"
_NO_NUL = r"^[^\x00]*$"
NOT_BLANK = r"^[^\x00]*[^\s\x00][^\x00]*$"  # `\S` would match a null character, which PostgreSQL cannot store

Identifier = Annotated[
    str,
    StringConstraints(min_length=1, max_length=255, pattern=_NO_CONTROL),
    mapped_column(text(255)),
]
Name = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=_NO_NUL), mapped_column(text(500))]
# For input: at least one character is visible, and none is a control character.
VISIBLE = rf"^[^{UNSEEN}]*[^\s{UNSEEN}{BLANK}][^{UNSEEN}]*$"
VisibleName = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=VISIBLE), mapped_column(text(500))]
# Neither `.` nor `..`, which mean another path in a URL.
_SLUG = r"^(\.{0,2}[^\s/.\x00-\x1f\x7f]|\.{3})[^\s/\x00-\x1f\x7f]*$"
Slug = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=_SLUG), mapped_column(text(200))]
ShortName = Annotated[str, StringConstraints(min_length=1, max_length=64), mapped_column(text(64))]
ShortText = Annotated[str, StringConstraints(max_length=1_000, pattern=_NO_NUL), mapped_column(text(1_000))]
Text = Annotated[str, StringConstraints(max_length=100_000, pattern=_NO_NUL), mapped_column(text())]
Token = Annotated[
    str, StringConstraints(min_length=1, max_length=64, pattern=r"^[A-Z][A-Z0-9_]*$"), mapped_column(text(64))
]


def _in_a_domain(value: str) -> str:
    if not is_domain(value.rpartition("@")[2]):
        raise ValueError("must have a domain after the @ that can exist, such as example.org, in small letters")
    return value


_EMAIL = r"^[^@\s\x00-\x1f\x7f]+@[^@\s\x00-\x1f\x7f]+$"
Email = Annotated[
    str, StringConstraints(max_length=LONGEST_EMAIL, pattern=_EMAIL), mapped_column(text(LONGEST_EMAIL), info=EMAIL)
]
# For input. A bundle may have addresses from before this rule.
_VISIBLE_EMAIL = rf"^[^@\s{UNSEEN}]+@[^@\s{UNSEEN}]+$"
VisibleEmail = Annotated[
    str, StringConstraints(max_length=LONGEST_EMAIL, pattern=_VISIBLE_EMAIL), AfterValidator(_in_a_domain)
]

# A URL that is safe as a link: http or https, not `javascript:`.
_WEB_ADDRESS = rf"^[Hh][Tt][Tt][Pp][Ss]?://[^\s/?#@\\{UNSEEN}]+([/?#][^\s{UNSEEN}]*)?$"


def _of_a_host(value: str) -> str:
    try:
        parts = urlsplit(value)
        is_whole = bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_whole = False
    if not is_whole:
        raise ValueError(IN_WORDS[_WEB_ADDRESS])
    return value


WebAddress = Annotated[str, AfterValidator(_of_a_host), StringConstraints(max_length=1_000, pattern=_WEB_ADDRESS)]

# The messages for texts that do not match, where the pattern would not help people.
IN_WORDS = {
    VISIBLE: "must have characters that can be seen, and no control characters or direction marks",
    _SLUG: "must have no blanks and no slashes, and be neither . nor ..",
    _EMAIL: "must be an email address, such as kim@example.org",
    _VISIBLE_EMAIL: "must be an email address, such as kim@example.org",
    _WEB_ADDRESS: "must be an address of the web, such as https://www.example.org/",
}


# --- Time

_RFC_3339 = re.compile(r"(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d:\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d))?", re.ASCII)


def parse_timestamp(value: str) -> str:
    """``value``, an RFC 3339 date-time with any offset or a plain date (midnight UTC), as the wire has it.

    Finer than milliseconds is cut off. Raises :class:`ValueError` with a reason fit for the sender.
    """
    match = _RFC_3339.fullmatch(value)
    if match is None:
        raise ValueError("must be a date, such as 2026-11-20, or an RFC 3339 date-time with an offset")
    day, clock, fraction, offset = match.groups()
    try:
        if clock is None:
            moment = datetime.fromisoformat(day).replace(tzinfo=UTC)
        else:
            zone = "+00:00" if offset in ("Z", "z") else offset
            # fromisoformat would accept 60 minutes in an offset; replace it by something that it refuses.
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
        },
        mode="serialization",
    ),
    WithJsonSchema(
        {
            "anyOf": [{"type": "string", "format": "date-time"}, {"type": "string", "format": "date"}],
            "examples": ["2026-11-20T09:14:03.120Z", "2026-11-20T10:14:03+01:00", "2026-11-20"],
        },
        mode="validation",
    ),
    mapped_column(UtcTimestamp()),
]


# --- Numbers, flags, documents

_SAFE = 2**53 - 1  # the largest integer that all JSON readers can represent (RFC 7493)


class _Number(TypeDecorator[float]):
    """A double that returns whole numbers as integers, so that 3 leaves as 3."""

    impl = Double
    cache_ok = True

    def result_processor(self, _dialect: Dialect, _coltype: object) -> Conversion:
        # SQLite's RETURNING gives integers for whole numbers already.
        return lambda value: int(value) if isinstance(value, float) and value.is_integer() else value


MAX_NUMBER = 2**31 - 1  # of counts


def _finite(document: Any) -> Any:
    """Refuse NaN and infinity, which parsers accept but JSON cannot express."""
    waiting = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError("must not have a number that is infinite or none")
        waiting += value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return document


Count = Annotated[int, Field(ge=-MAX_NUMBER, le=MAX_NUMBER), mapped_column(Integer)]
ShortId = Annotated[int, Field(ge=1, le=MAX_NUMBER), mapped_column(Integer)]
Number = Annotated[float, Field(ge=-_SAFE, le=_SAFE, allow_inf_nan=False), mapped_column(_Number)]
# Probability and impact in requests: 1 is the lowest. 2.5 is between 2 and 3.
Scale = Annotated[float, Field(ge=1, le=5, allow_inf_nan=False)]
Rating = Annotated[int, Field(ge=1, le=5), mapped_column(Integer)]
Percentage = Annotated[int, Field(ge=0, le=100), mapped_column(Integer)]
Flag = Annotated[bool, mapped_column(Boolean)]
Json = Annotated[Any, AfterValidator(_finite), mapped_column(Document())]


# --- Files

MAX_FILES = 50  # of a record
# In the order that their user gives them, without duplicates.
FileIds = Annotated[
    list[Identifier],
    Field(max_length=MAX_FILES),
    AfterValidator(lambda ids: list(dict.fromkeys(ids))),
    mapped_column(Document()),
]


# --- The levels of a risk matrix

RiskLevel = Literal["LOW", "MEDIUM", "HIGH", "CRITICAL"]
RISK_LEVELS: tuple[RiskLevel, ...] = ("LOW", "MEDIUM", "HIGH", "CRITICAL")
_RATINGS = 5  # of probability, and of impact


class _Levels(TypeDecorator[list[list[str]]]):
    """The levels of a matrix, a list for each impact, stored as one text with the initial of each."""

    impl = String
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[str]:
        return text(_RATINGS * _RATINGS).dialect_impl(dialect)

    def process_bind_param(self, value: list[list[str]] | None, _dialect: object) -> str | None:
        return None if value is None else "".join(level[0] for row in value for level in row)

    def process_result_value(self, value: str | None, _dialect: object) -> list[list[str]] | None:
        if value is None:
            return None
        levels = [next(level for level in RISK_LEVELS if level[0] == initial) for initial in value]
        return [list(levels[start : start + _RATINGS]) for start in range(0, len(levels), _RATINGS)]


RiskLevels = Annotated[
    list[Annotated[list[RiskLevel], Field(min_length=_RATINGS, max_length=_RATINGS)]],
    Field(min_length=_RATINGS, max_length=_RATINGS),
    mapped_column(_Levels, info=CODED),
]


# --- Reasons why a control applies

# The reasons for the justification that ISO/IEC 27001, 6.1.3 d, demands. Organizations can have others.
REASONS = ("RISK_TREATMENT", "LEGAL", "CONTRACTUAL", "BUSINESS_REQUIREMENT", "BEST_PRACTICE")
_MAX_REASONS = 20


class _Tokens(TypeDecorator[list[str]]):
    """Tokens in order, stored as one text with spaces between them."""

    impl = String
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[str]:
        return text(_MAX_REASONS * 65).dialect_impl(dialect)

    def process_bind_param(self, value: list[str] | None, _dialect: object) -> str | None:
        return None if value is None else " ".join(value)

    def process_result_value(self, value: str | None, _dialect: object) -> list[str] | None:
        return None if value is None else value.split()


_Reason = Annotated[
    str,
    StringConstraints(min_length=1, max_length=64, pattern=r"^[A-Z][A-Z0-9_]*$"),
    Field(json_schema_extra={"x-extensible-enum": list(REASONS)}),
]
Reasons = Annotated[
    list[_Reason],
    Field(max_length=_MAX_REASONS),
    AfterValidator(lambda reasons: list(dict.fromkeys(reasons))),  # without duplicates
    mapped_column(_Tokens),
]


# --- Closed enums, with which the engine computes

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

    def result_processor(self, _dialect: object, _coltype: object) -> Conversion:
        return _BY_RANK.__getitem__  # reports read it in tens of thousands of rows


_BY_RANK: Mapping[int | None, CoverageStatus | None] = {None: None, **dict(enumerate(COVERAGE_STATUSES))}

Coverage = Annotated[CoverageStatus, mapped_column(_Ranked)]
Level = Annotated[MatchLevel, mapped_column(_Ranked)]
Kind = Annotated[ControlType, mapped_column(text(8), info=CODED)]
