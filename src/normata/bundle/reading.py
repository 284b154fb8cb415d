"""Reading bundle files into rows. A file is read piece by piece, and the values of its rows wait on disk."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from io import TextIOWrapper
from json import JSONDecodeError
from pathlib import Path
from typing import IO, Any, NoReturn

from normata.bundle.arrays import ARRAYS, HISTORY
from normata.bundle.row_buffer import RowBuffer
from normata.core.changes.source import Fault, FaultyInput, Row
from normata.core.documents.files import Unreadable, open_input
from normata.core.documents.json_text import Rules, StrictDecoder, flaws, mended, place

# The nesting depth of a row. Pydantic reads no more levels, whether from the row buffer or the body of a request;
# orjson and Pydantic write 254; Python's own json reads and writes some 900.
DEEPEST_ROW = 200
_RULES = Rules(levels=DEEPEST_ROW, faulty=1)

_LONGEST_VALUE = 64 * 2**20  # characters of one row
_MAX_ROWS = 5_000_000  # of one load; each takes about a kilobyte of memory


def read(paths: Sequence[Path]) -> list[Row]:
    """The rows of all files, in their order. Raises FaultyInput with all faults of form; values are not looked at."""
    rows, faults = read_all(paths)
    if faults:
        raise FaultyInput(faults)
    return rows


def read_all(paths: Sequence[Path]) -> tuple[list[Row], list[Fault]]:
    """The rows of all files, in their order, and all faults of form. With faults, rows are only for checking.

    A row with a fault of form is among them, changed just enough that its values can be checked, because rows that
    refer to it have no fault. If a file cannot be read to its end, there are no rows at all: references to the missing
    ones would be reported as faults.
    """
    rows: list[Row] = []
    faults: list[Fault] = []
    is_whole = True
    buffer = RowBuffer()
    for path in paths:
        reader = _Reader(str(path), buffer, rows, faults)
        try:
            with TextIOWrapper(open_input(path), encoding="utf-8-sig", newline="") as file:
                reader.read(JsonText(file))
        except Stopped as stop:
            faults.append(Fault(str(path), reader.place if stop.of_value else "", stop.reason))
            is_whole = False
        except (Unreadable, UnicodeDecodeError, OSError) as error:
            faults.append(Fault(str(path), "", _unreadable(error)))
            is_whole = False
        is_whole = is_whole and reader.is_whole
    return rows if is_whole else [], faults


def _unreadable(error: Unreadable | UnicodeDecodeError | OSError) -> str:
    match error:
        case UnicodeDecodeError():
            return f"is not JSON: {error}"
        case OSError():
            return f"cannot be read: {error.strerror or error}"
    return str(error)


class Stopped(Exception):
    """A file cannot be read any further. ``of_value`` is true if the current value is the reason."""

    def __init__(self, reason: str, *, of_value: bool = False) -> None:
        super().__init__(reason)
        self.reason, self.of_value = reason, of_value


class _Reader:
    """Reads one file into ``rows`` and ``faults``. ``place`` is that of the current value.

    ``is_whole`` is true if all rows of the file could be read.
    """

    def __init__(self, file: str, buffer: RowBuffer, rows: list[Row], faults: list[Fault]) -> None:
        self.place = ""
        self.is_whole = True
        self._file = file
        self._buffer = buffer
        self._rows = rows
        self._faults = faults

    def read(self, text: JsonText) -> None:
        if text.peek() != "{":
            text.pass_over()
            self._add_fault("must be a JSON object whose members are arrays")
            self.is_whole = False
        else:
            arrays: set[str] = set()
            for array in text.names():
                self.place = place(array)
                self._array(array, text, is_first=array not in arrays)
                arrays.add(array)
                self.place = ""
        text.end()

    def _array(self, array: str, text: JsonText, *, is_first: bool) -> None:
        if not is_first:
            self._add_fault("is given twice")  # it is not known which value is meant
            self.is_whole = False
            text.pass_over()
        elif array not in ARRAYS and array != HISTORY:
            self._add_fault(f"is not an array that a bundle has; it has {', '.join((*ARRAYS, HISTORY))}")
            text.pass_over()
        elif text.peek() != "[":
            self._add_fault("must be an array")
            text.pass_over()
        else:
            within = self.place
            for index, _ in enumerate(text.series("]")):
                self.place = f"{within}/{index}"
                if len(self._rows) + len(self._faults) >= _MAX_ROWS:
                    raise Stopped(
                        f"is row {_MAX_ROWS + 1:,} of one load: load the rows in several parts", of_value=True
                    )
                item = text.value()
                if isinstance(item, dict):
                    self._row(array, item, is_sound=text.is_sound)
                else:
                    self._add_fault("must be an object")

    def _row(self, array: str, item: dict[str, Any], *, is_sound: bool) -> None:
        values = None
        if is_sound:
            with suppress(ValueError):  # half of a surrogate pair cannot be encoded
                values = self._buffer.put(item)
        if values is None:
            for flaw in flaws(item, _RULES):
                self._faults.append(Fault(self._file, self.place + place(*flaw.steps), flaw.reason))
            values = self._buffer.put(mended(item, DEEPEST_ROW))
        self._rows.append(Row(array, self._file, self.place, values))

    def _add_fault(self, reason: str) -> None:
        self._faults.append(Fault(self._file, self.place, reason))


# --- JSON, as strict as RFC 8259 wants it

_PIECE = 2**20  # characters
_BLANKS = re.compile(r"[ \t\n\r]*")
_LONGEST_TOKEN = 16  # characters, of all but strings and numbers: \ud83d\ude00, -Infinity


class JsonText:
    """A JSON text that is read from its beginning to its end, without keeping the parts that were read.

    Raises Stopped for text that is not JSON, or needs too much memory.
    """

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._text = ""
        self._at = 0
        self._line, self._column = 1, 1  # of the first character in the buffer
        self._decoder = StrictDecoder()
        self._is_deep = False

    @property
    def is_sound(self) -> bool:
        """Whether the last value has no fault, except possibly half of a surrogate pair."""
        return self._decoder.is_sound and not self._is_deep

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
        """Require that nothing follows."""
        if self.peek():
            self._refuse("expected the end", self._at)

    def value(self) -> Any:
        """Pass a whole value."""
        self.peek()
        while True:
            self._decoder.is_sound = True
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except JSONDecodeError as error:
                if not (self._may_go_on(error) and self._read_on()):
                    self._refuse(error.msg[:1].lower() + error.msg[1:], error.pos)
            except RecursionError:
                raise Stopped(f"is nested deeper than {DEEPEST_ROW - 1} levels", of_value=True) from None
            else:
                # The rest of the number may be in the next piece.
                if end < len(self._text) or not self._read_on():
                    self._is_deep = sum(self._text.count(bracket, self._at, end) for bracket in "[{") > DEEPEST_ROW
                    self._at = end
                    return value

    def pass_over(self) -> None:
        """Skip a value, of any length if it is an array or object."""
        match self.peek():
            case "[":
                for _ in self.series("]"):
                    self.value()
            case "{":
                for _ in self.names():
                    self.value()
            case _:
                self.value()

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
            name = self.value()
            self.take(":")
            yield name

    def _read_on(self) -> bool:
        """Read more of the text: twice as much each time, so that a long value takes linear time."""
        passed, rest = self._text[: self._at], self._text[self._at :]
        if len(rest) > _LONGEST_VALUE:
            raise Stopped(f"is longer than {_LONGEST_VALUE:,} characters", of_value=True)
        piece = self._file.read(max(_PIECE, len(rest)))
        if not piece:
            return False
        self._line, self._column = self._position(len(passed))
        self._text, self._at = rest + piece, 0
        return True

    def _may_go_on(self, error: JSONDecodeError) -> bool:
        """Whether more text may correct the error, because the text read so far ends too early."""
        return error.msg.startswith("Unterminated string") or error.pos + _LONGEST_TOKEN >= len(self._text)

    def _position(self, offset: int) -> tuple[int, int]:
        """The line and column of a character."""
        lines = self._text.count("\n", 0, offset)
        if not lines:
            return self._line, self._column + offset
        return self._line + lines, offset - self._text.rfind("\n", 0, offset)

    def _refuse(self, reason: str, offset: int) -> NoReturn:
        line, column = self._position(offset)
        raise Stopped(f"is not JSON: {reason} at line {line} column {column}")
