"""Many values in one parameter: many rows in one INSERT, and long lists in an IN.

The driver executes a statement once for each row of an ``executemany``. It sends them all at once, but each row still
starts the executor, and with it the triggers that write the history, which take longer than the row.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

_VALUE = r'\$\d+::[A-Z ]+?(?: COLLATE "C")?'
_INSERT = re.compile(rf"(?P<into>INSERT INTO [^$]+? )VALUES \((?P<values>{_VALUE}(?:, {_VALUE})*)\)(?P<conflict>[^$]*)")
_TYPE = re.compile(r'::([A-Z ]+?)(?: COLLATE "C")?(?=, |$)')


@lru_cache(maxsize=500)  # there are some for each table
def for_many_rows(sql: str) -> str | None:
    """An INSERT of one row of parameters, as an INSERT of many rows: each parameter is the array of a column.

    Null for another statement. No row may be in conflict with an earlier one of the same statement.
    """
    found = _INSERT.fullmatch(sql)
    if found is None or " RETURNING " in found["conflict"]:
        return None
    arrays = _TYPE.sub(r"::\1[]", found["values"])
    return f"{found['into']}SELECT * FROM unnest({arrays}){found['conflict']}"  # noqa: S608 - parts of a statement


def columns(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """The values of each column of some rows."""
    return [list(column) for column in zip(*rows, strict=True)]


def list_from_array(sql: str, number: int) -> str:
    """A statement with ``IN ($number)``, as one with an array in this parameter.

    For a list of parameters the server parses each of them, and keeps another statement for each number of items. What
    is worse: in a plan for any parameters it compares each row that it reads with each item, one after the other.
    """
    text, count = re.subn(rf"\(\${number}::([A-Z ]+)\)", rf"(SELECT unnest(${number}::\1[]))", sql)
    if not count:
        raise NotImplementedError(f"parameter {number} is not the list of an IN: {sql}")
    return text
