"""A lookup: a query that is so frequent that it is made outside of transactions.

SQLite answers it on the event loop, with a statement prepared once: that takes some microseconds, less than handing it
to a thread. PostgreSQL answers it with a function that `normata migrate` makes, for all requests that wait, in one
round trip. The function acts with its owner's rights, so the service's role need not read the tables behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy.types import TypeEngine


@dataclass(frozen=True, slots=True)
class Lookup:
    """A query with the texts ``arguments``, which returns rows of ``columns``: texts, numbers, flags, instants.

    ``name`` is the PostgreSQL function's. A version with other columns or arguments needs another name, because the
    previous version still uses the function during an upgrade. ``select`` makes the query from SQL expressions of the
    arguments; ``source`` is an item of the FROM list to start from, and ``number`` an expression to return and to order
    by first; both are empty for a single call.
    """

    name: str
    arguments: tuple[str, ...]
    columns: Mapping[str, TypeEngine[Any]]
    select: Callable[..., str]

    def sql(self, *arguments: str, source: str = "", number: str = "") -> str:
        """The query, for SQL expressions of the arguments."""
        return self.select(*arguments, source=source, number=number)
