"""Cursors: the place in a list where its next page starts, as an opaque text, and the condition for what comes after.

A cursor has the sort keys of the last row of a page. So what others insert or remove before that row moves nothing.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from sqlalchemy import (
    Boolean,
    Column,
    ColumnElement,
    Integer,
    String,
    UnaryExpression,
    and_,
    func,
    literal,
    or_,
    true,
    tuple_,
)
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.sql import operators
from sqlalchemy.types import NullType, TypeDecorator, TypeEngine

from normata.core.db.types import UtcTimestamp
from normata.core.schema.fields import parse_timestamp
from normata.errors import UnfitCursor

Order = Sequence[ColumnElement[Any] | UnaryExpression[Any]]

_VERSION = 1
_DIGEST, _CHECKSUM = 16, 6  # characters, and bytes
LONGEST_KEY = 500  # characters of a text that decide its place: proxies limit the headers that repeat them
_MAX_INTEGER, _MAX_NUMBER = 2**31 - 1, 1e300


class Cursor(NamedTuple):
    """The place where a page starts: its number, the sort keys of the row before it, and whether rows are uncounted.

    They are uncounted if there were more of them on an earlier page than a list counts.
    """

    page: int
    keys: tuple[Any, ...]
    is_uncounted: bool = False


def digest(*parts: str) -> str:
    """The name of a list with its filters and order, which a cursor belongs to."""
    return sha256(json.dumps(parts).encode()).hexdigest()[:_DIGEST]


def encode(cursor: Cursor, belongs_to: str) -> str:
    """A cursor as a text, for the query with this :func:`digest`."""
    content = [_VERSION, belongs_to, cursor.page, int(cursor.is_uncounted), *cursor.keys]
    raw = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    return _as_text(_checksum(raw) + raw)


def decode(text: str, belongs_to: str) -> Cursor:
    """The cursor in a text, for the query with this :func:`digest`. Raises UnfitCursor.

    The checksum finds slips, not forgeries: a forged cursor starts at another place of what its sender may read.
    """
    try:
        found = urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
        checksum, raw = found[:_CHECKSUM], found[_CHECKSUM:]
        version, owner, page, is_uncounted, *keys = json.loads(raw)
        is_whole = (
            (version, checksum, _as_text(found)) == (_VERSION, _checksum(raw), text)
            and type(page) is int
            and 1 < page <= _MAX_INTEGER
        )
    except (ValueError, TypeError, RecursionError):
        is_whole = False
    if not is_whole:
        raise _malformed()
    if owner != belongs_to:
        raise UnfitCursor("is of another list, of other filters or of another order", "other_query")
    return Cursor(page, tuple(keys), bool(is_uncounted))


def _malformed() -> UnfitCursor:
    return UnfitCursor("must be one from a link of this list, unchanged", "malformed")


def _checksum(raw: bytes) -> bytes:
    return sha256(raw).digest()[:_CHECKSUM]


def _as_text(content: bytes) -> str:
    return urlsafe_b64encode(content).rstrip(b"=").decode()


class _Key(NamedTuple):
    """A key of an order: an expression, its direction, and whether null comes last; else there is no null."""

    of: ColumnElement[Any]
    is_descending: bool
    has_null: bool

    @property
    def in_order(self) -> ColumnElement[Any]:
        directed = self.of.desc() if self.is_descending else self.of.asc()
        return directed.nulls_last() if self.has_null else directed

    def beyond(self, value: Any) -> ColumnElement[bool]:
        """The condition that the key comes after ``value``, which is not null."""
        after = self.of < self._literal(value) if self.is_descending else self.of > self._literal(value)
        return or_(after, self.of.is_(None)) if self.has_null else after

    def from_on(self, value: Any) -> ColumnElement[bool]:
        """The same, or that it equals it."""
        return self.of <= self._literal(value) if self.is_descending else self.of >= self._literal(value)

    def equals(self, value: Any) -> ColumnElement[bool]:
        return self.of.is_(None) if value is None else self.of == self._literal(value)

    def _literal(self, value: Any) -> ColumnElement[Any]:
        return literal(value, self.of.type)


class Part(NamedTuple):
    """Rows that come one after the other in an order: the condition for them, and their order.

    An index has each part in its order, forwards or backwards, as it need not say where null comes.
    """

    condition: ColumnElement[bool]
    order: Order


class SortKeys:
    """The keys of an order, which must be total (end with an id).

    Of long texts only the first characters count, because a cursor must fit an address.
    """

    def __init__(self, order: Order) -> None:
        self._keys = [_key(one) for one in order]

    @property
    def columns(self) -> list[ColumnElement[Any]]:
        """The keys as columns at the end of a selection."""
        return [key.of.label(f"key_{number}") for number, key in enumerate(self._keys)]

    @property
    def order(self) -> list[ColumnElement[Any]]:
        """The order, for ``order_by``."""
        return [key.in_order for key in self._keys]

    def of(self, row: Any) -> tuple[Any, ...]:
        """The values of the keys of a row that ends with :attr:`columns`."""
        return tuple(row[-len(self._keys) :])

    def parts(self) -> list[Part]:
        """All rows: those with the first key, and those where it is null, if there can be such.

        No index has both in an order where null comes last.
        """
        first = self._keys[0].of
        if not self._keys[0].has_null:
            return [Part(true(), self.order)]
        return [Part(first.is_not(None), self._order_of_part), Part(first.is_(None), self._order_of_part)]

    def after(self, values: Sequence[Any]) -> list[Part]:
        """The rows that come after the one with these values. Raises UnfitCursor if no row can have the values.

        Indexes answer them: both databases compare several keys of one direction with an index, if they are compared as
        one tuple, and without tuples they find where the first key begins. For null or not, they would read all.
        """
        self.check(values)
        first = self._keys[0]
        if not first.has_null or values[0] is None:
            return [Part(_after(self._keys, values), self._order_of_part)]
        rest = _after([first._replace(has_null=False), *self._keys[1:]], values)
        return [Part(rest, self._order_of_part), Part(first.of.is_(None), self._order_of_part)]

    @property
    def _order_of_part(self) -> list[ColumnElement[Any]]:
        return [self._keys[0]._replace(has_null=False).in_order, *self.order[1:]]

    def check(self, values: Sequence[Any]) -> None:
        """Raise UnfitCursor if no row can have these values."""
        if len(values) != len(self._keys) or not all(map(_fits, self._keys, values)):
            raise _malformed()


def _after(keys: Sequence[_Key], values: Sequence[Any]) -> ColumnElement[bool]:
    (key, *others), (value, *rest) = keys, values
    if not others:
        return key.beyond(value)
    if not any(one.has_null or one.is_descending is not key.is_descending for one in keys):
        columns = tuple_(*(one.of for one in keys))
        last = tuple_(*(literal(one, each.of.type) for each, one in zip(keys, values, strict=True)))
        return columns < last if key.is_descending else columns > last
    tied = and_(key.equals(value), _after(others, rest))
    if value is None:
        return tied
    found = or_(key.beyond(value), tied)
    return found if key.has_null else and_(key.from_on(value), found)


def _key(one: ColumnElement[Any] | UnaryExpression[Any]) -> _Key:
    expression: Any = one
    modifiers = set()
    while isinstance(expression, UnaryExpression) and expression.modifier is not None:
        modifiers.add(expression.modifier)
        expression = expression.element
    kind = expression.type
    if isinstance(kind, NullType):
        raise TypeError(f"the sort key {expression} has no type")
    is_cut = isinstance(expression, Column) and expression.info.get("is_cut")  # its values are, and an index has them
    if isinstance(kind, String) and not is_cut and (kind.length is None or kind.length > LONGEST_KEY):
        expression = func.substr(expression, 1, LONGEST_KEY, type_=kind)
    return _Key(expression, operators.desc_op in modifiers, operators.nulls_last_op in modifiers)


def _fits(key: _Key, value: Any) -> bool:
    """Whether a value can be one of the key, so that every database takes it."""
    if value is None:
        return key.has_null
    kind: TypeEngine[Any] = key.of.type
    try:
        if isinstance(kind, UtcTimestamp):
            return isinstance(value, str) and parse_timestamp(value) == value
        if isinstance(kind, TypeDecorator):
            convert = kind.bind_processor(_DIALECT)
            value = value if convert is None else convert(value)
            kind = kind.impl_instance
        return _is_of(kind, value)
    except (ValueError, TypeError, OverflowError):
        return False


def _is_of(kind: TypeEngine[Any], value: Any) -> bool:
    """Whether a value is one of a plain type. Raises ValueError for a text that is not Unicode."""
    if isinstance(kind, String):
        return isinstance(value, str) and b"\0" not in value.encode()
    if isinstance(kind, Boolean):
        return isinstance(value, bool)
    if isinstance(kind, Integer):
        return type(value) is int and abs(value) <= _MAX_INTEGER
    return type(value) in (int, float) and abs(value) <= _MAX_NUMBER


_DIALECT = DefaultDialect()
