"""Files that are neither catalogs nor mappings: what they are, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from normata.core.documents.files import Unreadable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from normata.catalogs.documents import Document

_NOTHING = "there is nothing in it to import"

# The models of OSCAL that cannot be imported.
_OSCAL = {
    "component-definition": "an OSCAL component definition, which says what components do about controls",
    "system-security-plan": "an OSCAL system security plan, which says what one system does about controls",
    "assessment-plan": "an OSCAL assessment plan",
    "assessment-results": "the results of an assessment in OSCAL",
    "plan-of-action-and-milestones": "an OSCAL plan of action and milestones",
}

# The objects of CISO Assistant's libraries that cannot be imported.
_OBJECTS = {
    "metric_definitions": "metrics",
    "preset": "a preset, which selects other libraries",
    "reference_controls": "reference controls",
    "risk_matrices": "risk matrices",
    "risk_matrix": "a risk matrix",
    "threats": "threats",
    "ttp_catalogs": "a catalog of techniques of attackers",
}

_BUNDLE = ("organizations", "frameworks", "controls", "controlMatches", "controlCoverages", "schema")

# The beginnings of files in other syntaxes.
_BEGINNINGS = (
    (b"%PDF", "is a PDF, of which no table can be read: import the catalog as OSCAL, CSV or XLSX"),
    (b"\xd0\xcf\x11\xe0", "is a workbook of an old format (.xls): save it as XLSX or CSV, and import that"),
)
_OPEN_DOCUMENT = b"mimetypeapplication/vnd.oasis.opendocument"
_XML = (
    "is XML: catalogs and profiles in OSCAL are read as JSON or YAML. Publishers have those as well, or oscal-cli"
    " converts it"
)


def reason_against(document: Document) -> str | None:
    """Why this document cannot be imported, if its content is known; else null."""
    for beginning, reason in _BEGINNINGS:
        if document.content.startswith(beginning):
            return reason
    if document.content.startswith(b"PK") and _OPEN_DOCUMENT in document.content[:200]:
        return "is a file of OpenDocument: save it as XLSX or CSV, and import that"
    if document.content.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"<":
        return _XML
    try:
        values = document.values
    except Unreadable:
        return None
    return _reason_against(values)


def _reason_against(values: Mapping[str, object]) -> str | None:
    for name, what in _OSCAL.items():
        if name in values:
            return f"is {what}: {_NOTHING}"
    objects = values.get("objects")
    if isinstance(objects, dict):
        held = [what for name, what in _OBJECTS.items() if objects.get(name)]
        if held:
            return f"is a CISO Assistant library with {' and '.join(held)}, but no framework and no mapping: {_NOTHING}"
    if any(isinstance(values.get(name), list) for name in _BUNDLE):
        return "is a bundle of Normata: `normata load` takes it"
    if "$schema" in values and "definitions" in values:
        return f"is a JSON schema: {_NOTHING}"
    return None
