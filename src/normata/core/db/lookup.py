"""A lookup: one question that is asked so often that it goes past transactions.

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
    """A question about the texts ``arguments`` whose answer is rows of ``columns``: texts, numbers, flags, instants.

    ``name`` is the PostgreSQL function's. A version with other columns or arguments must take another name: during an
    upgrade the previous version goes on asking. ``select`` makes the question from SQL expressions of the arguments;
    ``source`` is an item of the FROM list to start from, and ``number`` an expression to return and to order by first;
    both are empty if one question is asked alone.
    """

    name: str
    arguments: tuple[str, ...]
    columns: Mapping[str, TypeEngine[Any]]
    select: Callable[..., str]

    def sql(self, *arguments: str, source: str = "", number: str = "") -> str:
        """The question, for SQL expressions of the arguments."""
        return self.select(*arguments, source=source, number=number)
