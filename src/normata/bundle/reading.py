"""From bundle files to rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic_core import from_json

from normata.bundle.arrays import ARRAYS
from normata.source import Fault, FaultyInput, Row, pointer


def read(paths: Sequence[Path]) -> list[Row]:
    """The rows of all files, in their order. Raises FaultyInput with all faults of form; values are not looked at."""
    rows: list[Row] = []
    faults: list[Fault] = []
    for path in paths:
        try:
            document = from_json(path.read_bytes().removeprefix(b"\xef\xbb\xbf"), allow_inf_nan=False)
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
