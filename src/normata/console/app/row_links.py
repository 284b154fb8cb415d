"""The paths of rows in the console, by kind and id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from normata.records.base import Restorable

Steps = tuple[str, ...]

_NOTHING: Mapping[str, Any] = {}
# Kinds with pages of their own, besides records: the steps before the id.
_PAGES: Mapping[str, Steps] = {
    "controls": ("controls",),
    "frameworks": ("frameworks",),
    "memberships": ("settings", "members"),
    "questionnaires": ("questionnaires",),
    "soaVersions": ("soa-versions",),
    "webhooks": ("settings", "webhooks"),
}
_CLASSES = {
    "Control": "controls",
    "Framework": "frameworks",
    "Questionnaire": "questionnaires",
    "SoaVersion": "soaVersions",
    "Webhook": "webhooks",
}
# Kinds shown on another row's page: the steps before the id of that row, and the field with the id.
_BELONGING: Mapping[str, tuple[Steps, str]] = {
    "controlCoverages": (("controls",), "controlId"),
    "frameworkAdoptions": (("frameworks",), "frameworkId"),
}


def steps_to(kind: str, row_id: str | None, values: Mapping[str, Any] = _NOTHING) -> Steps | None:
    """The steps of the path to a row's page, below the organization; null if it has none.

    ``kind`` is the name on the wire, such as ``tasks``; ``values`` has the fields that are known.
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
    """The kind and id of a row whose table is named by its class, such as ``Task``, as notifications do.

    The kind is empty if the class is unknown, the id if ``row_id`` is null.
    """
    if entity_type in _CLASSES:
        return _CLASSES[entity_type], row_id or ""
    return next((kind.path for kind in Restorable.kinds if kind.__name__ == entity_type), ""), row_id or ""


def path_of(organization_slug: str, entity_type: str | None, row_id: str | None) -> str | None:
    """The path of the page of a row in an organization, for mail; null if it has none."""
    steps = steps_to(*entity_of(entity_type, row_id))
    if steps is None:
        return None
    return "/".join(("/app", *(quote(step, safe="") for step in (organization_slug, *steps)), ""))
