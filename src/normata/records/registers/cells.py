"""The cells of a register: values of fields as texts that people can read and change, and back.

An empty cell is null, or an empty list. A text that a spreadsheet would take for a formula gets an apostrophe in front,
and so does an empty text. So each value has a cell of its own, which is read as the same value again.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from pydantic_core import from_json

from normata.core.schema.fields import parse_timestamp
from normata.core.schema.text import FORMULA, guarded, unguarded
from normata.records.fields import Sort

_WORDS = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}(\.0+)?")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_LONGEST_NUMBER = 400  # characters
LONGEST_CELL = 32_767  # characters that a cell of a workbook can have
_CUT = "…"
_TEXTS = frozenset({"text", "prose", "token", "reference", "foreign"})


def cell_of(sort: Sort, value: Any) -> str:
    """The cell of a value in wire form; of a reference, the text that names the row."""
    if value is None or (sort == "files" and not value):
        return ""
    match sort:
        case "flag":
            return "yes" if value else "no"
        case "document" | "files":
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        case "count" | "number":
            return repr(value)
        case "moment":
            return str(value)
    return guarded(value)


def workbook_text(sort: Sort, value: Any) -> str:
    """The cell of a value in a workbook, where a text is no formula, and needs no apostrophe for that.

    A cell has room for 32,767 characters; a longer text is cut, and ends with "…".
    """
    text = cell_of(sort, value)
    text = text.removeprefix("'") if isinstance(value, str) and value.startswith(FORMULA) else text
    return text if len(text) <= LONGEST_CELL else f"{text[: LONGEST_CELL - 1]}{_CUT}"


def may_be_cut(cell: str) -> bool:
    """Whether a workbook may have cut the text of a cell."""
    return len(cell) == LONGEST_CELL and cell.endswith(_CUT)


def value_of(sort: Sort, cell: str) -> Any:
    """The value of a cell in wire form; of a reference, the text that names the row. Raises ValueError.

    Values of enums may be written as words, and numbers with a decimal comma.
    """
    if sort in _TEXTS:
        if cell == "":
            return None
        text = unguarded(cell)
        return "_".join(text.upper().split()) if sort == "token" else text
    trimmed = cell.strip()
    if not trimmed:
        return [] if sort == "files" else None
    return _READERS[sort](trimmed)


def _flag(cell: str) -> bool:
    found = _WORDS.get(cell.casefold())
    if found is None:
        raise ValueError("must be yes or no")
    return found


def _count(cell: str) -> int:
    if not _INTEGER.fullmatch(unguarded(cell)):
        raise ValueError("must be an integer")
    return int(unguarded(cell).partition(".")[0])


def _number(cell: str) -> float:
    text = unguarded(cell).replace(",", ".", 1)
    if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text):
        raise ValueError("must be a number")
    number = float(text)
    return int(number) if math.isfinite(number) and number.is_integer() else number


def _document(cell: str) -> Any:
    try:
        # As the body of a request is read, with the same limits of depth.
        return from_json(unguarded(cell), allow_inf_nan=False)
    except ValueError:
        raise ValueError("is not valid JSON") from None


def _files(cell: str) -> Any:
    return _document(cell) if cell.startswith("[") else [one.strip() for one in cell.split(",")]


_READERS: Mapping[Sort, Callable[[str], Any]] = {
    "flag": _flag,
    "count": _count,
    "number": _number,
    "moment": parse_timestamp,
    "document": _document,
    "files": _files,
}
