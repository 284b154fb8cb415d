"""The difference of a change, as events and previews show it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import orjson

from normata.core.changes.unit_of_work import Change
from normata.core.schema.table import Table
from normata.core.schema.wire import wire_names

Values = dict[str, Any] | None


def difference(change: Change) -> tuple[Values, Values]:
    """The changed fields before and after, by wire names; all fields of a new or deleted row.

    People are shown by their ids only, and columns that the service may not read (secrets) never.
    """
    names = _shown_columns(change.table)
    before = None if change.before is None else dict(change.before.items())
    after = None if change.row is None else dict(change.row.items())
    if before is not None and after is not None:
        names = {name: wire for name, wire in names.items() if _differ(before.get(name), after.get(name))}
    elif change.changed is not None:
        names = {name: wire for name, wire in names.items() if name in change.changed}
    return _as_wire(names, before), _as_wire(names, after)


def _as_wire(names: Mapping[str, str], row: Values) -> Values:
    return None if row is None else {wire: row[name] for name, wire in names.items() if name in row}


def _differ(one: Any, other: Any) -> bool:
    # In JSON 1, 1.0 and true differ, but Python considers them equal.
    return bool(one != other) or (isinstance(one, dict | list) and canonical(one) != canonical(other))


@cache
def _shown_columns(table: type[Table]) -> dict[str, str]:
    shown = table.event_columns if table.event_columns is not None else table.readable
    return {name: wire for name, wire in wire_names(table).items() if shown is None or name in shown}


def canonical(value: Any) -> str:
    """``value`` as JSON without whitespace, the names of each object sorted by their bytes."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except TypeError:  # a document may contain an integer of more than 64 bits
        return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
