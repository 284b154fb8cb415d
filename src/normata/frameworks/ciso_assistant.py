"""Libraries in the format of CISO Assistant: one framework, mapping sets between frameworks, or both."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from normata.source import Fault, Row, pointer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# The current spelling and the one before it. Either may hold one mapping set or a list of them.
_MAPPING_SETS = ("requirement_mapping_sets", "requirement_mapping_set")

# YAML 1.1, in which these libraries are written, has more words for a truth value than true and false.
_WORDS = {"yes": True, "on": True, "no": False, "off": False}


def read_library(file: str, document: Mapping[str, object], faults: list[Fault]) -> list[Row]:
    """The rows of a CISO Assistant library, in the order of the file; what is wrong with it is added to ``faults``.

    Rows are of ``frameworks``, ``controls`` and ``relations``: the last are what a mapping set says of two controls,
    with its own word as ``relationship``.
    """
    library = _Entry(file, "", document, faults)
    library.required("urn")
    objects = library.entry("objects")
    if objects is None:
        return []
    if not {"framework", *_MAPPING_SETS} & objects.values.keys():
        objects.fault(None, "holds neither a framework nor a mapping set")
    framework = objects.entry("framework") if "framework" in objects.values else None
    rows = [] if framework is None else list(_framework(library, framework))
    for spelling in _MAPPING_SETS:
        for mapping_set in objects.one_or_more(spelling):
            rows += _relations(mapping_set)
    return rows


def _framework(library: _Entry, framework: _Entry) -> Iterator[Row]:
    urn = framework.required("urn")
    values = {
        "id": urn,
        "identifier": framework.text("ref_id") or _last_part(urn),
        "name": framework.text("name") or library.text("name"),
        "version": library.text("version"),
        "description": framework.text("description"),
        "publishedAt": library.moment("publication_date"),
        "createdBy": library.text("provider"),
        "isCentralized": True,
    }
    origin = {"id": "urn", "identifier": "ref_id"}
    if urn:
        yield Row("frameworks", framework.file, framework.place, values, origin)
    for node in framework.entries("requirement_nodes"):
        yield from _control(urn, node)


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
        "purpose": node.text("annotation"),
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


def _relations(mapping_set: _Entry) -> Iterator[Row]:
    for mapping in mapping_set.entries("requirement_mappings"):
        values = {
            "sourceControlId": mapping.required("source_requirement_urn"),
            "targetControlId": mapping.required("target_requirement_urn"),
            "relationship": mapping.required("relationship"),
        }
        origin = {"sourceControlId": "source_requirement_urn", "targetControlId": "target_requirement_urn"}
        if all(values.values()):
            yield Row("relations", mapping.file, mapping.place, values, origin)


def _last_part(urn: str) -> str:
    return urn.rpartition(":")[2] or urn


@dataclass(frozen=True, slots=True)
class _Entry:
    """One mapping of the library, that says what is wrong with its values instead of failing over them."""

    file: str
    place: str
    values: Mapping[str, object]
    faults: list[Fault]

    def fault(self, key: str | None, reason: str) -> None:
        self.faults.append(Fault(self.file, self.place if key is None else self.place + pointer(key), reason))

    def text(self, key: str) -> str | None:
        """Trimmed; None where there is none."""
        value = self.values.get(key)
        if value is None or isinstance(value, str):
            return (value or "").strip() or None
        self.fault(key, "must be text")
        return None

    def required(self, key: str) -> str:
        """As text, but its absence is a fault, after which it is empty."""
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
        """A plain date as it is, or a point in time with its offset, which is UTC where YAML leaves it out."""
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
            return _Entry(self.file, self.place + pointer(key), value, self.faults)
        self.fault(key, "must be a mapping")
        return None

    def entries(self, key: str) -> Iterator[_Entry]:
        """The mappings of a list that has to be there."""
        value = self.values.get(key)
        if not isinstance(value, list):
            self.fault(key, "is required" if value is None else "must be a list")
            return
        for index, item in enumerate(value):
            place = self.place + pointer(key, index)
            if isinstance(item, dict):
                yield _Entry(self.file, place, item, self.faults)
            else:
                self.faults.append(Fault(self.file, place, "must be a mapping"))

    def one_or_more(self, key: str) -> Iterator[_Entry]:
        """The mappings of a list, or the one that stands there itself, or none."""
        value = self.values.get(key)
        if isinstance(value, dict):
            yield _Entry(self.file, self.place + pointer(key), value, self.faults)
        elif value is not None:
            yield from self.entries(key)
