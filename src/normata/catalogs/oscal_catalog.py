"""Catalogs in OSCAL: a framework, and its groups and controls."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias
from uuid import UUID, uuid5

from normata.catalogs.documents import JSON, MAX_CHARACTERS, YAML, ImportFormat
from normata.catalogs.oscal_parameters import Parameters
from normata.catalogs.oscal_validation import validated
from normata.catalogs.sources import source_rows, source_values
from normata.core.changes.source import Fault, Row, pointer
from normata.oscal.names import NAMESPACE, NO_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from trestle.oscal import catalog as catalog_model
    from trestle.oscal import common

    from normata.catalogs.documents import Document

    _Group: TypeAlias = catalog_model.Group1 | catalog_model.Group2


def read_catalog(document: Document, faults: list[Fault]) -> list[Row]:
    """The rows of an OSCAL catalog: its framework, its groups and controls in preorder, and itself.

    Faults are added to ``faults``. An invalid catalog has no rows.
    """
    model = validated(document, "catalog", faults)
    if model is None:
        return []
    reader = _CatalogReader(document, model.catalog, faults)
    try:
        framework = _framework(document.file, model.catalog)
        values = source_values(document.content, document.left_out, is_json=document.is_json)
        source = source_rows(document.file, framework.place, values, framework.values["id"])
        return [framework, *reader.rows(), *source]
    except _TooLong:
        reason = f"holds more than {MAX_CHARACTERS:,} characters once its parameters are written out"
        faults.append(Fault(document.file, "/catalog", reason))
        return []


# The names of parts of a control that are not its statement, by OSCAL's name.
_PARTS = {
    "assessment": "assessment methods",
    "assessment-method": "assessment methods",
    "assessment-objective": "assessment objectives",
    "objective": "assessment objectives",
}
_KNOWN_PROPERTIES = ("label", "sort-id", "status")


class _TooLong(Exception):
    """The catalog's text is far longer than its file."""


def _framework(file: str, catalog: catalog_model.Catalog) -> Row:
    metadata = catalog.metadata
    values = {
        "id": catalog.uuid,
        "identifier": document_identifier(metadata),
        "name": metadata.title,
        "version": None if NO_VERSION["value"] in _own(metadata.props, NO_VERSION["name"]) else metadata.version,
        "description": metadata.remarks,
        "publishedAt": (metadata.published or metadata.last_modified).isoformat(),
        "createdBy": _creator(metadata),
        "isCentralized": True,
    }
    origin = {name: "uuid" if name == "id" else "metadata" for name in values}
    return Row("frameworks", file, "/catalog", values, origin)


# Abbreviations in titles: people know that catalog as "NIST SP 800-53 Rev. 5.1.1".
_ABBREVIATIONS = {"Special Publication": "SP", "Revision": "Rev.", "Version": "v."}


def document_identifier(metadata: common.Metadata) -> str:
    """The publisher's identifier; without one, as in the catalogs of NIST, the title, abbreviated."""
    if metadata.document_ids:
        return str(metadata.document_ids[0].identifier)
    title = str(metadata.title)
    for long, short in _ABBREVIATIONS.items():
        title = re.sub(rf"\b{long}\b", short, title, flags=re.IGNORECASE)
    return title.strip()


def _creator(metadata: common.Metadata) -> str | None:
    names = {party.uuid: party.name for party in metadata.parties or ()}
    for responsible in metadata.responsible_parties or ():
        if responsible.role_id == "creator":
            return next((names[uuid] for uuid in responsible.party_uuids if names.get(uuid)), None)
    return None


class _CatalogReader:
    """The groups and controls of one catalog, with the parameters that their texts refer to."""

    def __init__(self, document: Document, catalog: catalog_model.Catalog, faults: list[Fault]) -> None:
        self._file = document.file
        self._left_out = document.left_out
        self._catalog = catalog
        self._parameters = Parameters(document.file, catalog, faults)
        self._characters = 0

    def rows(self) -> Iterator[Row]:
        back_matter = self._catalog.back_matter
        self._left_out["resources"] += len((back_matter and back_matter.resources) or ())
        yield from self._groups(self._catalog.groups, "/catalog", None)
        yield from self._controls(self._catalog.controls, "/catalog", None)

    def _groups(self, groups: Sequence[_Group] | None, place: str, parent: str | None) -> Iterator[Row]:
        for index, group in enumerate(groups or ()):
            here = place + pointer("groups", index)
            row = self._row(group, here, parent, "CATEGORY")
            yield row
            yield from self._groups(getattr(group, "groups", None), here, row.values["id"])
            yield from self._controls(getattr(group, "controls", None), here, row.values["id"])

    def _controls(
        self, controls: Sequence[catalog_model.Control] | None, place: str, parent: str | None
    ) -> Iterator[Row]:
        for index, control in enumerate(controls or ()):
            here = place + pointer("controls", index)
            enclosing = parent
            # A withdrawn control requires nothing. It would wait for an assessment for ever, and keep the control above
            # it from being covered fully.
            if _is_withdrawn(control):
                self._left_out["withdrawn controls"] += 1
            else:
                row = self._row(control, here, parent, "CONTROL")
                enclosing = row.values["id"]
                yield row
            yield from self._controls(control.controls, here, enclosing)

    def _row(self, item: _Group | catalog_model.Control, place: str, parent: str | None, kind: str) -> Row:
        self._left_out["links"] += len(item.links or ())
        self._left_out["properties"] += sum(
            prop.name not in _KNOWN_PROPERTIES and not _is_own(prop) for prop in item.props or ()
        )
        for part in item.parts or ():
            if part.name not in ("statement", "overview", "guidance"):
                self._left_out[_PARTS.get(str(part.name), f"parts {part.name}")] += 1
        values = {
            "id": self._id(item),
            "frameworkId": self._catalog.uuid,
            "parentId": parent,
            "identifier": _label(item.props) or (item.id.upper() if item.id else item.title.strip()),
            "name": item.title,
            "description": self._text(item.parts, "statement"),
            "purpose": self._text(item.parts, "overview", "guidance"),
            "type": kind,
        }
        if "CATEGORY" in _own(item.props, "type"):  # in a place where OSCAL has no groups
            values["type"] = "CATEGORY"
        if _own(item.props, "mandatory"):
            values["isMandatory"] = True
        if _own(item.props, "decomposed") and getattr(item, "controls", None):
            values["isDecomposed"] = True
        origin = {
            "frameworkId": "id",
            "parentId": "id",
            "identifier": "props" if item.props else "id",
            "name": "title",
            "description": "parts",
            "purpose": "parts",
            "type": "id",
        }
        return Row("controls", self._file, place, values, origin)

    def _id(self, item: _Group | catalog_model.Control) -> str:
        """The id of a row. Control ids such as ``ac-1`` are unique only in their catalog, and a group may have none."""
        return f"{self._catalog.uuid}:{item.id or uuid5(UUID(self._catalog.uuid), item.title)}"

    def _text(self, parts: Iterable[common.Part] | None, *names: str) -> str | None:
        lines = [line for part in parts or () if part.name in names for line in self._lines(part, "")]
        return "\n".join(lines) or None

    def _lines(self, part: common.Part, indent: str) -> Iterator[str]:
        """The part as text: its label, title and prose, followed by its own parts, indented below an item."""
        head = " ".join(filter(None, (_label(part.props), part.title, self._parameters.written_into(part.prose or ""))))
        self._characters += len(head)
        if self._characters > MAX_CHARACTERS:
            raise _TooLong
        for line in head.splitlines():
            yield (indent + line).rstrip()
        for inner in part.parts or ():
            yield from self._lines(inner, indent + "  " if head and part.name == "item" else indent)


def _is_own(prop: common.Property) -> bool:
    """Whether a property is one of a catalog that Normata has made."""
    return prop.ns is not None and str(prop.ns) == NAMESPACE


def _own(props: Iterable[common.Property] | None, name: str) -> list[str]:
    return [str(prop.value) for prop in props or () if prop.name == name and _is_own(prop)]


def _is_withdrawn(control: catalog_model.Control) -> bool:
    return any(prop.name == "status" and prop.value.lower() == "withdrawn" for prop in control.props or ())


def _label(props: Iterable[common.Property] | None) -> str | None:
    """The label for readers: NIST has further ones with a class, such as the zero-padded one for sorting."""
    labels = [prop for prop in props or () if prop.name == "label"]
    plain = [prop for prop in labels if prop.class_ is None]
    return next((str(prop.value) for prop in plain or labels), None)


FORMAT = ImportFormat(
    name="OSCAL catalog",
    recognizes=lambda document: "catalog" in document.values,
    identity=lambda document: document.member("catalog").get("uuid"),
    read=lambda document, _, faults: (read_catalog(document, faults), []),
    media_types=(JSON, YAML),
    extra="oscal",
)
