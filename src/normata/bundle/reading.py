"""From bundle files to rows."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from normata.bundle.arrays import ARRAYS
from normata.source import Fault, FaultyInput, Row, pointer


def read(paths: Sequence[Path]) -> list[Row]:
    """The rows of all files, in their order. Raises FaultyInput with all faults of form; values are not looked at."""
    rows: list[Row] = []
    faults: list[Fault] = []
    for path in paths:
        try:
            document = _parse(path.read_bytes().removeprefix(b"\xef\xbb\xbf"))
        except OSError as error:
            faults.append(Fault(str(path), "", f"cannot be read: {error.strerror}"))
            continue
        except ValueError as error:
            faults.append(Fault(str(path), "", f"is not JSON: {error}"))
            continue
        for found in _rows(str(path), document):
            if isinstance(found, Row):
                rows.append(found)
            else:
                faults.append(found)
    if faults:
        raise FaultyInput(faults)
    return rows


def _parse(data: bytes) -> object:
    """A JSON document. Raises ValueError for what is not one, and for what would not survive being kept.

    Pydantic's parser tells the line and column of a fault and refuses what no text can hold. The standard library's
    goes over it once more for what that lets pass: a name given twice, of which one would be lost, and a number that
    no double can hold.
    """
    document = from_json(data, allow_inf_nan=False)
    json.loads(data, object_pairs_hook=_refuse_repeated_names, parse_float=_refuse_infinite)
    return document


def _refuse_repeated_names(pairs: list[tuple[str, Any]]) -> None:
    names = {name for name, _ in pairs}
    if len(names) < len(pairs):
        repeated = next(name for index, (name, _) in enumerate(pairs) if name in {other for other, _ in pairs[:index]})
        raise ValueError(f"an object has the name {repeated!r} twice")


def _refuse_infinite(number: str) -> None:
    if math.isinf(float(number)):
        raise ValueError(f"the number {number[:20]} is too large")


def _rows(file: str, document: object) -> Iterator[Row | Fault]:
    if not isinstance(document, dict):
        yield Fault(file, "", "must be a JSON object whose members are arrays")
        return
    for array, items in document.items():
        if array not in ARRAYS:
            yield Fault(file, pointer(array), f"is not an array that a bundle has; it has {', '.join(ARRAYS)}")
        elif not isinstance(items, list):
            yield Fault(file, pointer(array), "must be an array")
        else:
            for index, item in enumerate(items):
                place = pointer(array, index)
                yield (
                    Row(array, file, place, item) if isinstance(item, dict) else Fault(file, place, "must be an object")
                )
