"""Documents of OSCAL as compliance-trestle reads them."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

from pydantic import TypeAdapter

MODULES = {"catalog": "catalog", "component-definition": "component", "plan-of-action-and-milestones": "poam"}


def valid(content: bytes) -> Any:
    """The content of a document, once the models of NIST have taken it: they refuse what they do not know.

    Ids are unique, and what refers to one finds it.
    """
    document = json.loads(content)
    [name] = document
    model: Any = import_module(f"trestle.oscal.{MODULES[name]}").Model
    TypeAdapter(model).validate_python(document)
    uuids = [value for key, value in members(document) if key == "uuid"]
    assert len(uuids) == len(set(uuids))
    for key, value in members(document):
        if key.endswith("-uuid"):
            assert value in uuids, key
        if key == "party-uuids":
            assert set(value) <= set(uuids)
    return document[name]


def members(value: Any) -> Any:
    """All names of members with their values."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key, inner
            yield from members(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from members(inner)
