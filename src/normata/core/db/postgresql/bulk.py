"""Many rows in one INSERT.

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
