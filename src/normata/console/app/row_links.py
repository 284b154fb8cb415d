"""The paths of rows in the console, by kind and id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from normata.records.base import Restorable

Steps = tuple[str, ...]

_NOTHING: Mapping[str, Any] = {}
# Kinds besides records that have a page of their own: the steps before the id.
_PAGES: Mapping[str, Steps] = {
    "controls": ("controls",),
    "frameworks": ("frameworks",),
    "memberships": ("settings", "members"),
}
_CLASSES = {"Control": "controls", "Framework": "frameworks"}
# Kinds whose page is that of something that they belong to: the steps before its id, and the field that has it.
_BELONGING: Mapping[str, tuple[Steps, str]] = {
    "controlCoverages": (("controls",), "controlId"),
    "frameworkAdoptions": (("frameworks",), "frameworkId"),
}


def steps_to(kind: str, row_id: str | None, values: Mapping[str, Any] = _NOTHING) -> Steps | None:
    """The steps of the path to a row's page, after the organization; null if it has none.

    ``kind`` is the row's name on the wire, such as ``tasks``, and ``values`` has what is known of its fields.
    """
    if not row_id:
        return None
    if kind in _PAGES:
        return (*_PAGES[kind], row_id)
    if kind in _BELONGING:
        before, field = _BELONGING[kind]
        return (*before, values[field]) if values.get(field) else None
    return ("records", kind, row_id) if any(kind == one.path for one in Restorable.kinds) else None


def entity_of(entity_type: str | None, row_id: str | None) -> tuple[str, str]:
    """The kind and the id of a row that is named by the class of its table, as notifications do: ``Task``.

    Both are empty if there is none.
    """
    if entity_type in _CLASSES:
        return _CLASSES[entity_type], row_id or ""
    return next((kind.path for kind in Restorable.kinds if kind.__name__ == entity_type), ""), row_id or ""
