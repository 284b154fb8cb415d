"""Documents of OSCAL as compliance-trestle and the schemas of NIST read them."""

from __future__ import annotations

import json
import os
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import jsonschema_rs
from pydantic import TypeAdapter

MODULES = {"catalog": "catalog", "component-definition": "component", "plan-of-action-and-milestones": "poam"}


def valid(content: bytes) -> Any:
    """The content of a document, once the models of NIST have taken it: they refuse what they do not know.

    So has NIST's schema, where it is. Ids are unique, and what refers to one finds it.
    """
    document = json.loads(content)
    [name] = document
    model: Any = import_module(f"trestle.oscal.{MODULES[name]}").Model
    TypeAdapter(model).validate_python(document)
    if (schema := nist_schema(name)) is not None:
        assert not [f"{error.instance_path}: {error.message}" for error in schema.iter_errors(document)]
    uuids = [value for key, value in members(document) if key == "uuid"]
    assert len(uuids) == len(set(uuids))
    for key, value in members(document):
        if key.endswith("-uuid"):
            assert value in uuids, key
        if key == "party-uuids":
            assert set(value) <= set(uuids)
    return document[name]


@cache
def nist_schema(name: str) -> Any:
    """NIST's schema of a document, which is not part of the repository; null if it is not there.

    ``NORMATA_TEST_OSCAL_SCHEMAS`` names the folder with the schemas of a release of OSCAL, which is otherwise
    `oscal-schemas` in that of the published catalogs.
    """
    beside = Path(os.environ.get("NORMATA_TEST_DATA", ".")) / "oscal-schemas"
    path = Path(os.environ.get("NORMATA_TEST_OSCAL_SCHEMAS") or beside) / f"oscal_{MODULES[name]}_schema.json"
    return jsonschema_rs.validator_for(json.loads(path.read_bytes())) if path.is_file() else None


def members(value: Any) -> Any:
    """All names of members with their values."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key, inner
            yield from members(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from members(inner)
