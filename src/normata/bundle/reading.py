"""From bundle files to rows. A file is read piece by piece, and what its rows hold waits on disk."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from json import JSONDecodeError
from pathlib import Path
from typing import IO, Any, NoReturn

from normata.bundle.arrays import ARRAYS
from normata.bundle.shelf import Shelf
from normata.source import Fault, FaultyInput, Row, pointer


def read(paths: Sequence[Path]) -> list[Row]:
    """The rows of all files, in their order. Raises FaultyInput with all faults of form; values are not looked at."""
    rows: list[Row] = []
    faults: list[Fault] = []
    shelf = Shelf()
    for path in paths:
        try:
            file = path.open(encoding="utf-8-sig", newline="")
        except OSError as error:
            faults.append(Fault(str(path), "", f"cannot be read: {error.strerror}"))
            continue
        with file:
            try:
                found = list(_rows(str(path), _Text(file), shelf))
            except (ValueError, RecursionError) as error:
                faults.append(Fault(str(path), "", f"is not JSON: {error}"))
                continue
        rows += [row for row in found if isinstance(row, Row)]
        faults += [fault for fault in found if isinstance(fault, Fault)]
    if faults:
        raise FaultyInput(faults)
    return rows


def _rows(file: str, text: _Text, shelf: Shelf) -> Iterator[Row | Fault]:
    if text.peek() != "{":
        text.value()
        yield Fault(file, "", "must be a JSON object whose members are arrays")
    else:
        arrays: set[str] = set()
        for array in text.names():
            _refuse_repeated(array, arrays)
            yield from _array(file, array, text, shelf)
    text.end()


def _array(file: str, array: str, text: _Text, shelf: Shelf) -> Iterator[Row | Fault]:
    if array not in ARRAYS:
        text.value()
        yield Fault(file, pointer(array), f"is not an array that a bundle has; it has {', '.join(ARRAYS)}")
    elif text.peek() != "[":
        text.value()
        yield Fault(file, pointer(array), "must be an array")
    else:
        for index, _ in enumerate(text.series("]")):
            item, place = text.value(), pointer(array, index)
            if isinstance(item, dict):
                yield Row(array, file, place, shelf.put(item))
            else:
                yield Fault(file, place, "must be an object")


# --- JSON, as strict as RFC 8259 wants it; all that it refuses is a ValueError

_PIECE = 2**20  # characters
_BLANKS = re.compile(r"[ \t\n\r]*")


class _Text:
    """A JSON text that is passed from its beginning to its end; what has been passed is let go."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._text = ""
        self._at = 0
        self._line, self._column = 1, 1  # of the first character at hand

    def peek(self) -> str:
        """The next character that is not blank; empty at the end."""
        while True:
            self._at = _BLANKS.match(self._text, self._at).end()  # type: ignore[union-attr]  # it may match nothing
            if self._at < len(self._text) or not self._read_on():
                return self._text[self._at : self._at + 1]

    def take(self, expected: str) -> str:
        """Pass the next character, which must be one of these."""
        found = self.peek()
        if not found or found not in expected:
            self._refuse(f"expected {' or '.join(expected)}", self._at)
        self._at += 1
        return found

    def end(self) -> None:
        """Nothing may follow."""
        if self.peek():
            self._refuse("expected the end", self._at)

    def value(self) -> Any:
        """Pass a whole value."""
        self.peek()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except JSONDecodeError as error:
                if not self._read_on():
                    self._refuse(error.msg[:1].lower() + error.msg[1:], error.pos)
            else:
                # A number may go on in the next piece.
                if end < len(self._text) or not self._read_on():
                    self._at = end
                    return value

    def series(self, closing: str) -> Iterator[None]:
        """Pass a bracket, the commas and the closing bracket; what is between them is passed by the caller."""
        self._at += 1
        if self.peek() == closing:
            self._at += 1
            return
        yield
        while self.take("," + closing) == ",":
            yield

    def names(self) -> Iterator[str]:
        """The names of an object; the caller passes the value of each."""
        for _ in self.series("}"):
            if self.peek() != '"':
                self._refuse("expected a name", self._at)
            name: str = self.value()
            self.take(":")
            yield name

    def _read_on(self) -> bool:
        """Have more of the text at hand: twice as much each time, so that a long value takes no more than its due."""
        passed, rest = self._text[: self._at], self._text[self._at :]
        piece = self._file.read(max(_PIECE, len(rest)))
        if not piece:
            return False
        self._line, self._column = self._position(len(passed))
        self._text, self._at = rest + piece, 0
        return True

    def _position(self, offset: int) -> tuple[int, int]:
        """The line and column of a character."""
        lines = self._text.count("\n", 0, offset)
        if not lines:
            return self._line, self._column + offset
        return self._line + lines, offset - self._text.rfind("\n", 0, offset)

    def _refuse(self, reason: str, offset: int) -> NoReturn:
        line, column = self._position(offset)
        raise ValueError(f"{reason} at line {line} column {column}")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):  # one of them would be lost
        names: set[str] = set()
        for name, _ in pairs:
            _refuse_repeated(name, names)
    return values


def _refuse_repeated(name: str, names: set[str]) -> None:
    if name in names:
        raise ValueError(f"an object has the name {name!r} twice")
    names.add(name)


def _finite(number: str) -> float:
    value = float(number)
    if math.isinf(value):
        raise ValueError(f"the number {number[:20]} is too large")
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no value of JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_finite, parse_constant=_no_constant)
