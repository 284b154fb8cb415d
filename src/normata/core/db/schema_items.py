"""What a schema has beside tables, as it should be: triggers of a table, and how findings about them are worded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple


class Trigger(NamedTuple):
    """A trigger of a table, as both databases have it; ``function`` is the source of the one it calls on PostgreSQL.

    A table names its triggers in its info ``triggers``.
    """

    name: str
    sqlite: str
    postgresql: str
    function: str


class Item(NamedTuple):
    """A trigger or an index, by its kind, its table and its name."""

    kind: str
    table: str
    name: str


def differences(
    wanted: Mapping[Item, object], found: Mapping[Item, object], harmless: frozenset[str] = frozenset()
) -> Iterator[str]:
    """What is missing, changed or too much, a sentence each; ``harmless`` are kinds that there may be more of."""
    for item in sorted(wanted):
        if item not in found:
            yield f"the {item.kind} {item.name} of the table {item.table} is missing"
        elif wanted[item] != found[item]:
            yield f"the {item.kind} {item.name} of the table {item.table} is not as Normata makes it"
    for item in sorted(found.keys() - wanted.keys()):
        if item.kind not in harmless:
            yield f"the table {item.table} has a {item.kind} {item.name} that is not Normata's"
