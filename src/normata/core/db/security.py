"""The rights of the service in the database, from the declarations of operations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from normata.core.db.lookup import Lookup

Action = Literal["INSERT", "UPDATE", "DELETE"]


class Write(NamedTuple):
    """A right to change a table; an UPDATE only in ``columns``."""

    table: str
    action: Action
    columns: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Security:
    """All rights of the service's role, and the lookups that it may make.

    It may read every table, and change what ``writes`` names. ``partly_readable`` has the tables of which it may read
    only these columns.
    """

    writes: tuple[Write, ...]
    lookups: tuple[Lookup, ...]
    partly_readable: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def by_table(self) -> dict[str, list[Write]]:
        """The writes of each table, at most one for each action: with the columns of all updates."""
        merged: dict[tuple[str, Action], frozenset[str]] = {}
        for write in self.writes:
            key = write.table, write.action
            merged[key] = merged.get(key, frozenset()) | write.columns
        tables: dict[str, list[Write]] = {}
        for (table, action), columns in sorted(merged.items(), key=lambda item: item[0]):
            tables.setdefault(table, []).append(Write(table, action, columns))
        return tables


def together(*writes: Iterable[Write]) -> tuple[Write, ...]:
    """All of these, without duplicates, in a fixed order."""
    every = {write for some in writes for write in some}
    return tuple(sorted(every, key=lambda write: (write.table, write.action, sorted(write.columns))))
