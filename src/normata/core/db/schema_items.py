"""The expected items of a schema besides tables, such as triggers, and the messages about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple


class Trigger(NamedTuple):
    """A trigger of a table; ``function`` is the source of the function that it calls on PostgreSQL.

    PostgreSQL lacks it if ``postgresql`` is empty. A table names its triggers in its info ``triggers``.
    """

    name: str
    sqlite: str
    postgresql: str = ""
    function: str = ""


class Item(NamedTuple):
    """A trigger or an index, by its kind, its table and its name."""

    kind: str
    table: str
    name: str


def differences(
    wanted: Mapping[Item, object], found: Mapping[Item, object], harmless: frozenset[str] = frozenset()
) -> Iterator[str]:
    """The items that are missing, changed or superfluous, a sentence each; ``harmless`` kinds may be superfluous."""
    for item in sorted(wanted):
        if item not in found:
            yield f"the {item.kind} {item.name} of the table {item.table} is missing"
        elif wanted[item] != found[item]:
            yield f"the {item.kind} {item.name} of the table {item.table} is not as Normata makes it"
    for item in sorted(found.keys() - wanted.keys()):
        if item.kind not in harmless:
            yield f"the table {item.table} has a {item.kind} {item.name} that is not Normata's"
