"""Libraries in the format of CISO Assistant: one framework, mapping sets between frameworks, or both."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from normata.catalogs.baselines import baseline_rows
from normata.catalogs.documents import JSON, YAML, ImportFormat
from normata.catalogs.matches import (
    MAX_MATCHES,
    MappingSet,
    Relation,
    Side,
    levels_of,
    mapping_document,
    no_relation,
    too_many,
)
from normata.catalogs.shortening import LONGEST_SHORT_TEXT, one_line
from normata.catalogs.unfit import reason_against
from normata.catalogs.versions import version_in
from normata.core.changes.source import Fault, Row
from normata.core.documents.json_text import place

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator, Mapping, Sequence

    from normata.catalogs.documents import Document

# The current spelling and the one before it. Either may hold one mapping set or a list of them.
_MAPPING_SETS = ("requirement_mapping_sets", "requirement_mapping_set")

# The libraries are YAML 1.1, which has more truth values than true and false.
_WORDS = {"yes": True, "on": True, "no": False, "off": False}


def read_library(document: Document, faults: list[Fault]) -> tuple[list[Row], list[Relation]]:
    """The framework and the controls of a CISO Assistant library, and the relations in it.

    Both are in the order of the file. Faults of the library are added to ``faults``.
    """
    library = _Entry(document.file, "", document.values, faults)
    library.required("urn")
    objects = library.entry("objects")
    if objects is None:
        return [], []
    if not _IMPORTED & objects.values.keys():
        objects.fault(None, "holds neither a framework nor a mapping set")
    _note_others(library, _LIBRARY, document.left_out)
    _note_others(objects, _IMPORTED, document.left_out)
    framework = objects.entry("framework") if "framework" in objects.values else None
    rows = [] if framework is None else list(_framework(library, framework, document.left_out))
    if any(spelling in objects.values for spelling in _MAPPING_SETS):
        name, version = library.text("name"), library.text("version")
        rows.append(mapping_document(document.file, "", document.identity, name, version))
    relations = [
        relation
        for spelling in _MAPPING_SETS
        for entry in objects.one_or_more(spelling)
        for relation in _relations(_mapping_set(document, library, entry), entry, document.left_out)
    ]
    if 2 * len(relations) > MAX_MATCHES:
        objects.fault(None, too_many(2 * len(relations)))
        relations = []
    return rows, relations


# Frameworks


def _framework(library: _Entry, framework: _Entry, left_out: Counter[str]) -> Iterator[Row]:
    urn = framework.required("urn")
    reference = framework.text("ref_id")
    name = framework.text("name") or library.text("name")
    # The library's own version counts the changes by its packager, so it is the last resort.
    version = framework.text("version") or version_in(reference, name) or library.text("version")
    values = {
        "id": urn,
        "identifier": reference or _last_part(urn),
        "name": name,
        "version": version,
        "description": framework.text("description"),
        "publishedAt": library.moment("publication_date"),
        "createdBy": library.text("provider"),
        "isCentralized": True,
    }
    origin = {"id": "urn", "identifier": "ref_id"}
    if urn:
        yield Row("frameworks", framework.file, framework.place, values, origin)
    _note_others(framework, _FRAMEWORK, left_out)
    groups: dict[str, list[str]] = {}  # by reference of an implementation group, its controls
    for node in framework.entries("requirement_nodes"):
        yield from _control(urn, node)
        _note_others(node, _NODE, left_out)
        for group in node.texts("implementation_groups"):
            groups.setdefault(group.strip(), []).append(node.required("urn"))
    if urn:
        yield from _baselines(urn, framework, groups, left_out)


def _baselines(
    framework_id: str, framework: _Entry, groups: Mapping[str, Sequence[str]], left_out: Counter[str]
) -> Iterator[Row]:
    """The implementation groups that a framework defines: each selects the requirements that name it."""
    if framework.values.get("implementation_groups_definition") is None:
        return
    for position, entry in enumerate(framework.entries("implementation_groups_definition")):
        reference = entry.required("ref_id")
        values: dict[str, str | int | None] = {
            "id": f"{framework_id}:implementation-group:{reference}",
            "frameworkId": framework_id,
            "identifier": reference,
            "name": entry.text("name"),
            "version": None,
            "description": entry.text("description"),
            "position": position,
        }
        _note_others(entry, _GROUP, left_out)
        if reference:
            origin = {"id": "ref_id", "frameworkId": "ref_id", "identifier": "ref_id"}
            yield from baseline_rows(entry.file, entry.place, values, groups.get(reference, ()), origin)


def _control(framework: str, node: _Entry) -> Iterator[Row]:
    urn = node.required("urn")
    reference = node.text("ref_id")
    values = {
        "id": urn,
        "frameworkId": framework,
        "parentId": node.text("parent_urn"),
        "identifier": reference or _last_part(urn),
        "name": node.text("name"),
        "description": node.text("description"),
        "purpose": _guidance(node),
        "type": "CATEGORY" if node.truth("assessable") is False else "CONTROL",
    }
    origin = {
        "id": "urn",
        "frameworkId": "urn",
        "parentId": "parent_urn",
        "identifier": "ref_id" if reference else "urn",
        "purpose": "annotation",
        "type": "assessable",
    }
    if urn:
        yield Row("controls", node.file, node.place, values, origin)


def _guidance(node: _Entry) -> str | None:
    """The annotation and the typical evidence, which is text in all libraries that have it."""
    evidence = node.text("typical_evidence")
    parts = (node.text("annotation"), evidence and f"Typical evidence:\n{evidence}")
    return "\n\n".join(filter(None, parts)) or None


# Mapping sets


def _mapping_set(document: Document, library: _Entry, entry: _Entry) -> MappingSet:
    return MappingSet(
        document.file, document.identity, _side(library, entry, "source"), _side(library, entry, "target")
    )


def _side(library: _Entry, entry: _Entry, name: str) -> Side:
    key = f"{name}_framework_urn"
    framework = entry.text(key) or ""
    obtain = _how_to_get(framework, library.texts("dependencies")) if framework else ""
    return Side(f"{name}_requirement_urn", framework, entry.place + (place(key) if framework else ""), obtain)


def _how_to_get(framework: str, dependencies: list[str]) -> str:
    """A sentence that says how to get a library.

    By convention a library, its framework and its file have the same last part.
    """
    name = _last_part(framework)
    library = next((urn for urn in dependencies if _last_part(urn) == name), "")
    if library:
        library = f" ({library}, usually the file {name}.yaml)"
    return f"Import its library first{library}, or together with this file"


def _relations(mapping_set: MappingSet, entry: _Entry, left_out: Counter[str]) -> Iterator[Relation]:
    _note_others(entry, _MAPPING_SET, left_out)
    for mapping in entry.entries("requirement_mappings"):
        source = mapping.required("source_requirement_urn")
        target = mapping.required("target_requirement_urn")
        relationship = mapping.required("relationship")
        levels = levels_of(relationship)
        if relationship and levels is None:
            mapping.fault("relationship", no_relation(relationship))
        elif levels and not any(levels):
            left_out["pairs that are not related"] += 1
        elif source and target and levels:
            rationale, strength = mapping.text("rationale"), mapping.text("strength_of_relationship")
            yield Relation(
                mapping_set,
                mapping.place,
                source,
                target,
                relationship,
                rationale=rationale and one_line(rationale, LONGEST_SHORT_TEXT),
                strength=strength and one_line(strength, LONGEST_SHORT_TEXT),
            )


# Parts that are not stored: all fields that are not listed here, by their kind

_NAMED = frozenset(("urn", "ref_id", "name", "description"))
_LIBRARY = _NAMED | {
    *("convert_library_version", "copyright", "dependencies", "locale", "objects", "packager", "provider"),
    *("publication_date", "version"),
}
_IMPORTED = frozenset(("framework", *_MAPPING_SETS))
_FRAMEWORK = _NAMED | {"version", "requirement_nodes", "implementation_groups_definition"}
_NODE = _NAMED | {
    *("annotation", "assessable", "depth", "implementation_groups", "parent_urn", "typical_evidence"),
}
_GROUP = _NAMED | {"default_selected"}
_MAPPING_SET = _NAMED | {"source_framework_urn", "target_framework_urn", "requirement_mappings"}
_SORTS = {
    "definition": "scores",
    "importance": "scores",
    "labels": "labels",
    "max_score": "scores",
    "metric_definitions": "metrics",
    "min_score": "scores",
    "outcomes_definition": "scores",
    "preset": "presets",
    "questions": "questions",
    "reference_controls": "reference controls",
    "risk_matrix": "risk matrices",
    "scores_definition": "scores",
    "threats": "threats",
    "translations": "translations",
    "weight": "scores",
}


def _note_others(entry: _Entry, imported: frozenset[str], left_out: Counter[str]) -> None:
    """Count the fields of an entry that are not imported, and the members of lists."""
    for key in entry.values.keys() - imported:
        value = entry.values[key]
        if value not in (None, "", [], {}):
            left_out[_SORTS.get(key, f"fields {key}")] += len(value) if isinstance(value, list) else 1


# Common parts


def _last_part(urn: str) -> str:
    return urn.rpartition(":")[2] or urn


@dataclass(frozen=True, slots=True)
class _Entry:
    """One object of the library, which reports faults of its values instead of raising errors."""

    file: str
    place: str
    values: Mapping[str, object]
    faults: list[Fault]

    def fault(self, key: str | None, reason: str) -> None:
        self.faults.append(Fault(self.file, self.place if key is None else self.place + place(key), reason))

    def text(self, key: str) -> str | None:
        """The trimmed text; null if there is none."""
        value = self.values.get(key)
        if value is None or isinstance(value, str):
            return (value or "").strip() or None
        self.fault(key, "must be text")
        return None

    def texts(self, key: str) -> list[str]:
        """The texts of a list; other values are ignored."""
        value = self.values.get(key)
        return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []

    def required(self, key: str) -> str:
        """The trimmed text; if there is none, adds a fault and returns an empty text."""
        text = self.text(key)
        if text is None and (self.values.get(key) is None or isinstance(self.values[key], str)):
            self.fault(key, "is required")
        return text or ""

    def truth(self, key: str) -> bool | None:
        value = self.values.get(key)
        if isinstance(value, str):
            value = _WORDS.get(value.strip().lower(), value)
        if value is None or isinstance(value, bool):
            return value
        self.fault(key, "must be true or false")
        return None

    def moment(self, key: str) -> str | None:
        """A plain date unchanged, or a time with its offset, which is UTC if YAML leaves it out."""
        text = self.text(key)
        if text is None:
            return None
        try:
            if len(text) == len("2024-06-29"):
                return date.fromisoformat(text).isoformat()
            moment = datetime.fromisoformat(text)
        except ValueError:
            self.fault(key, "must be a date, such as 2024-06-29, or a date and time")
            return None
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat()

    def entry(self, key: str) -> _Entry | None:
        value = self.values.get(key)
        if isinstance(value, dict):
            return _Entry(self.file, self.place + place(key), value, self.faults)
        self.fault(key, "must be a mapping")
        return None

    def entries(self, key: str) -> Iterator[_Entry]:
        """The objects of a required list."""
        value = self.values.get(key)
        if not isinstance(value, list):
            self.fault(key, "is required" if value is None else "must be a list")
            return
        for index, item in enumerate(value):
            here = self.place + place(key, index)
            if isinstance(item, dict):
                yield _Entry(self.file, here, item, self.faults)
            else:
                self.faults.append(Fault(self.file, here, "must be a mapping"))

    def one_or_more(self, key: str) -> Iterator[_Entry]:
        """The objects of a list, or a single object without a list, or none."""
        value = self.values.get(key)
        if isinstance(value, dict):
            yield _Entry(self.file, self.place + place(key), value, self.faults)
        elif value is not None:
            yield from self.entries(key)


def _is_library(document: Document) -> bool:
    """Whether it has a framework or a mapping, or is not known to be something else."""
    if "objects" not in document.values:
        return False
    return bool(_IMPORTED & document.member("objects").keys()) or reason_against(document) is None


_EXAMPLE = {
    "urn": "urn:harbourlight:library:docks",
    "name": "Harbourlight Dock Rules",
    "version": 1,
    "objects": {
        "framework": {
            "urn": "urn:harbourlight:framework:docks",
            "ref_id": "DOCKS",
            "name": "Harbourlight Dock Rules",
            "requirement_nodes": [
                {"urn": "urn:harbourlight:docks:1", "ref_id": "1", "name": "Berths", "assessable": False},
                {
                    "urn": "urn:harbourlight:docks:1.1",
                    "parent_urn": "urn:harbourlight:docks:1",
                    "ref_id": "1.1",
                    "name": "Berths are locked at night",
                    "assessable": True,
                },
            ],
        }
    },
}

FORMAT = ImportFormat(
    name="CISO Assistant library",
    recognizes=_is_library,
    identity=lambda document: document.values.get("urn"),
    read=lambda document, _, faults: read_library(document, faults),
    media_types=(JSON, YAML),
    example=_EXAMPLE,
)
