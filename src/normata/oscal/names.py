"""What names things in documents of OSCAL: ids, the product's namespace, and texts as OSCAL's types allow them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID, uuid5

_UUIDS = UUID("fb7d4424-a164-4aac-bc0f-c1830e6b5535")
# The namespace of the properties that OSCAL does not have.
NAMESPACE = f"urn:uuid:{_UUIDS}"

OSCAL_VERSION = "1.1.3"
UNKNOWN_VERSION = "unknown"  # OSCAL requires one

_TOKEN = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_NOT_OF_TOKEN = re.compile(r"[^A-Za-z0-9_.-]+")

Document = dict[str, Any]


def uuid_of(*identity: str) -> str:
    """The UUID of what has this identity: the same in every document and on every instance."""
    return str(uuid5(_UUIDS, json.dumps(identity)))


def catalog_uuid(framework_id: str) -> str:
    """The UUID of the catalog of a framework."""
    return uuid_of("catalog", framework_id)


def line(text: str | None) -> str:
    """The text on one line without blanks around it, as titles and values of OSCAL are; it may be empty."""
    return " ".join((text or "").split())


def prop(name: str, value: str, remarks: str | None = None) -> Document:
    """A property of the product's namespace. The value must not be empty."""
    made = {"name": name, "ns": NAMESPACE, "value": value}
    return made if remarks is None else made | {"remarks": remarks}


def left_out(what: str, why: str) -> Document:
    """A property of a document that says what it does not have."""
    return prop("left-out", what, why)


NO_VERSION = left_out("version", "The framework has none, but OSCAL requires one.")


def without_empty(document: Mapping[str, Any]) -> Document:
    """The document without members that are null or empty, which OSCAL does not allow."""
    return {name: value for name, value in document.items() if value not in (None, "", [], {})}


def control_names(framework_id: str, controls: Iterable[Any]) -> dict[str, str]:
    """The ids of controls in the catalog of their framework, by the ids of the controls.

    Each is the publisher's own, where OSCAL was imported; else the identifier in lower case. Where several controls
    would have the same one, each ends with a UUID.
    """
    wanted = {control.id: _token(framework_id, control.id, control.identifier) for control in controls}
    times = Counter(wanted.values())
    return {
        control_id: token if times[token] == 1 else f"{token}-{uuid_of('control', control_id)}"
        for control_id, token in wanted.items()
    }


def _token(framework_id: str, control_id: str, identifier: str) -> str:
    published = control_id.removeprefix(f"{framework_id}:")
    if published != control_id and _TOKEN.fullmatch(published):
        return published
    token = _NOT_OF_TOKEN.sub("-", identifier.lower()).strip("-")
    return token if _TOKEN.fullmatch(token) else f"_{token}"


def metadata(title: str, version: str | None, modified: str, props: Iterable[Document] = (), **more: Any) -> Document:
    """The metadata of a document; ``modified`` is when its content was last changed."""
    missing = () if line(version) else (NO_VERSION,)
    return without_empty(
        {
            "title": line(title) or "untitled",
            "published": more.pop("published", None),
            "last-modified": modified,
            "version": line(version) or UNKNOWN_VERSION,
            "oscal-version": OSCAL_VERSION,
            "document-ids": more.pop("document_ids", None),
            "props": [*props, *missing],
            **{name.replace("_", "-"): value for name, value in more.items()},
        }
    )
