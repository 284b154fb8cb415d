"""The relations of mappings, and the matches that follow from them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING
from uuid import UUID, uuid5

from normata.catalogs.shortening import LONGEST_NAME, one_line
from normata.core.changes.source import Fault, Row, pointer

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_MATCHES = 200_000  # of one file; the largest published one has some 5,000

# Never change this: ids of matches follow from it, so that a later import finds them again.
_MATCHES = UUID("6f0e6a3c-5d0b-5b0e-9a55-2f1c7d1f4b7e")

_RANK = {"PARTIAL": 1, "FULL": 2}

# The set theory relations of NIST IR 8477, as spelled by OSCAL ("superset-of") and CISO Assistant ("superset"). Both
# relate the source to the target: a "superset" source requires everything that the target requires, and more, so
# covering the source covers the target. The values are the levels from source to target, and back.
_LEVELS: dict[str, tuple[str | None, str | None]] = {
    "equal": ("FULL", "FULL"),
    "equal-to": ("FULL", "FULL"),
    "equivalent": ("FULL", "FULL"),
    "equivalent-to": ("FULL", "FULL"),
    "superset": ("FULL", "PARTIAL"),
    "superset-of": ("FULL", "PARTIAL"),
    "subset": ("PARTIAL", "FULL"),
    "subset-of": ("PARTIAL", "FULL"),
    "intersect": ("PARTIAL", "PARTIAL"),
    "intersects": ("PARTIAL", "PARTIAL"),
    "intersects-with": ("PARTIAL", "PARTIAL"),
    "not-related": (None, None),
    "no-relationship": (None, None),
}


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a mapping set: all its sources, or all its targets.

    ``key`` is the file's name for a control of this side. ``framework`` is the id of the framework of these controls,
    empty if the file does not have it; ``place`` is its place in the file. ``obtain`` says how to get the framework.
    """

    key: str
    framework: str
    place: str
    obtain: str


@dataclass(frozen=True, slots=True)
class MappingSet:
    """The common properties of a set of relations. ``identity`` is that of the whole document, in all its versions."""

    file: str
    identity: str
    source: Side
    target: Side


@dataclass(frozen=True, slots=True)
class Relation:
    """The relation of two controls in a mapping, in the mapping's own word.

    ``forward`` and ``backward`` are the highest levels possible for these two controls alone: a mapping may relate
    several controls together, or parts of them. ``rationale`` and ``strength`` are stored unchanged.
    """

    within: MappingSet
    place: str
    source: str
    target: str
    relationship: str
    forward: str = "FULL"
    backward: str = "FULL"
    rationale: str | None = None
    strength: str | None = None

    def ends(self) -> tuple[tuple[Side, str], tuple[Side, str]]:
        """The two controls, each with its side."""
        return (self.within.source, self.source), (self.within.target, self.target)

    def fault(self, key: str, reason: str) -> Fault:
        """A fault of the value that the file has under ``key``."""
        return Fault(self.within.file, self.place + pointer(key), reason)


def match_id(document: str, source: str, target: str) -> str:
    """The id of the match between these controls that a document gives."""
    return str(uuid5(_MATCHES, json.dumps([document, source, target])))


@cache
def mapping_document_id(document: str) -> str:
    """The id of a document of mappings, by the publisher's identifier."""
    return str(uuid5(_MATCHES, document))


def mapping_document(file: str, place: str, document: str, name: str | None, version: str | None) -> Row:
    """The row of a document of mappings."""
    values = {
        "id": mapping_document_id(document),
        "document": document,
        "name": one_line(name or document, LONGEST_NAME),
        "version": version,
    }
    return Row("mappingDocuments", file, place, values)


def levels_of(relationship: str) -> tuple[str | None, str | None] | None:
    """The levels of source → target and of target → source; null for an unknown relation."""
    return _LEVELS.get(relationship.strip().lower().replace("_", "-").replace(" ", "-"))


def no_relation(relationship: str) -> str:
    """The message for an unknown relation."""
    return f'"{relationship}" is not equal, superset, subset, intersect (in OSCAL: intersects-with) or not_related'


def too_many(count: int, detail: str = "") -> str:
    """The message for a file that results in too many matches."""
    return f"means {count:,} matches{detail}; one file may mean {MAX_MATCHES:,} at most"


def matches_of(relations: Iterable[Relation]) -> list[Row]:
    """One match for each pair of controls and direction, at the highest level that a relation of the document gives it.

    Published mapping sets often repeat relations: in both directions, or the same pair for several reasons.
    """
    best: dict[tuple[str, str, str], tuple[Relation, bool, str]] = {}
    for relation in relations:
        forward, backward = levels_of(relation.relationship) or (None, None)
        for level, most, is_backward in ((forward, relation.forward, False), (backward, relation.backward, True)):
            if level is not None:
                level = min(level, most, key=_RANK.__getitem__)  # noqa: PLW2901 - the highest possible level
                ends = (relation.target, relation.source) if is_backward else (relation.source, relation.target)
                key = (relation.within.identity, *ends)
                if key not in best or _RANK[level] > _RANK[best[key][2]]:
                    best[key] = (relation, is_backward, level)
    origin = cache(_origin)  # many rows have the same one
    return [
        Row(
            "controlMatches",
            relation.within.file,
            relation.place,
            {
                "id": match_id(identity, source, target),
                "sourceControlId": source,
                "targetControlId": target,
                "matchLevel": level,
                "mappingDocumentId": mapping_document_id(identity),
                "retiredAt": None,
                "rationale": relation.rationale,
                "strength": relation.strength,
            },
            origin(relation.within.source.key, relation.within.target.key, is_backward=is_backward),
        )
        for (identity, source, target), (relation, is_backward, level) in best.items()
    ]


def _origin(source_key: str, target_key: str, *, is_backward: bool) -> dict[str, str]:
    if is_backward:
        source_key, target_key = target_key, source_key
    return {"sourceControlId": source_key, "targetControlId": target_key, "matchLevel": "relationship"}
