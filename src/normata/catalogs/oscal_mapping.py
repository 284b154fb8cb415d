"""Mapping collections in OSCAL: the relations between the controls of two resources."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from normata.catalogs import oscal_catalog
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
from normata.catalogs.oscal_validation import validated
from normata.catalogs.shortening import LONGEST_SHORT_TEXT, one_line
from normata.core.changes.source import Fault, Row, pointer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from trestle.oscal import common
    from trestle.oscal import mapping as mapping_model

    from normata.catalogs.documents import Document

_OBTAIN = "Import that catalog first, or together with this file"
_NAMESPACE = "http://csrc.nist.gov/ns/oscal"
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def read_mapping_collection(
    document: Document, catalogs: Mapping[str, str], faults: list[Fault]
) -> tuple[list[Row], list[Relation]]:
    """The row of an OSCAL mapping collection, and its relations, each between one control and another.

    ``catalogs`` has the uuid of each catalog that is imported with it, by file. Faults are added to ``faults``. An
    invalid collection has no relations.
    """
    model = validated(document, "mapping", faults)
    if model is None:
        return [], []
    metadata = model.mapping_collection.metadata
    row = mapping_document(
        document.file, "/mapping-collection", document.identity, metadata.title, str(metadata.version)
    )
    known = len(faults)
    maps = list(_maps(document, model.mapping_collection, catalogs, faults))
    count = sum(map(_count, maps))
    if count > MAX_MATCHES:
        # Counted first, because a few hundred kilobytes can expand to millions of matches.
        largest = max(maps, key=_count)
        sides = f"{len(largest.sources):,} sources times {len(largest.targets):,} targets"
        rest = " with the maps beside it" if count > _count(largest) else ""
        faults.append(Fault(document.file, largest.place, too_many(count, f"{rest} ({sides}, both ways)")))
    if len(faults) > known:
        return [], []
    return [row], [relation for entry in maps for relation in _relations(entry)]


@dataclass(frozen=True, slots=True)
class _Map:
    """One entry of a mapping. Each control has a flag: whether all of it is related, or only some of its statements."""

    within: MappingSet
    place: str
    relationship: str
    sources: Mapping[str, bool]
    targets: Mapping[str, bool]
    rationale: str | None
    strength: str | None


def _maps(
    document: Document, collection: mapping_model.MappingCollection, catalogs: Mapping[str, str], faults: list[Fault]
) -> Iterator[_Map]:
    """The entries of all mappings that have a relation."""
    file = document.file
    for place, mapping in _mappings(collection):
        sources = _prefix(mapping.source_resource, collection.back_matter, catalogs)
        targets = _prefix(mapping.target_resource, collection.back_matter, catalogs)
        within = MappingSet(
            file,
            document.identity,
            Side("sources", sources, place + "/source-resource", _OBTAIN),
            Side("targets", targets, place + "/target-resource", _OBTAIN),
        )
        for number, entry in enumerate(mapping.maps):
            here = place + pointer("maps", number)
            levels = levels_of(entry.relationship)
            if entry.ns is not None and str(entry.ns.root) != _NAMESPACE:
                faults.append(Fault(file, here + "/ns", f"only relationships of {_NAMESPACE} are known"))
            elif levels is None:
                faults.append(Fault(file, here + "/relationship", no_relation(entry.relationship)))
            named = _Map(
                within,
                here,
                entry.relationship,
                _ends(file, here + "/sources", sources, entry.sources, faults),
                _ends(file, here + "/targets", targets, entry.targets, faults),
                _rationale(entry, mapping, collection.provenance),
                _strength(entry, mapping, collection.provenance),
            )
            if levels and any(levels):
                yield named
            elif levels:
                document.left_out["pairs that are not related"] += 1
            document.left_out["qualifiers"] += len(entry.qualifiers or ())


def _rationale(*holders: mapping_model.Map | mapping_model.Mapping | mapping_model.MappingProvenance) -> str | None:
    """How the two were compared (such as "semantic"), and the remarks, each of the first level that has it."""
    parts = [next((str(one.matching_rationale) for one in holders if one.matching_rationale), ""), holders[0].remarks]
    return one_line(": ".join(filter(None, parts)), LONGEST_SHORT_TEXT) or None


def _strength(*holders: mapping_model.Map | mapping_model.Mapping | mapping_model.MappingProvenance) -> str | None:
    """How sure the publisher is of the relation: a number, or a word such as "high"."""
    score = next((one.confidence_score for one in holders if one.confidence_score), None)
    values = [] if score is None else list(score.model_dump(exclude_none=True).values())
    return str(values[0]) if values else None


def _mappings(collection: mapping_model.MappingCollection) -> Iterator[tuple[str, mapping_model.Mapping]]:
    """The mappings with their places: OSCAL allows a single one without a list."""
    place = "/mapping-collection/mappings"
    if not isinstance(collection.mappings, list):
        yield place, collection.mappings
        return
    for index, mapping in enumerate(collection.mappings):
        yield place + pointer(index), mapping


def _count(entry: _Map) -> int:
    """The number of resulting matches."""
    return 2 * len(entry.sources) * len(entry.targets)


def _relations(entry: _Map) -> Iterator[Relation]:
    """The relations of each source to each target.

    The map relates all sources together to all targets together. So a relation is FULL only if there is a single
    source, and all of the target is related, not only some of its statements. The same applies backward.
    """
    for source, all_of_source in entry.sources.items():
        for target, all_of_target in entry.targets.items():
            forward = "FULL" if len(entry.sources) == 1 and all_of_target else "PARTIAL"
            backward = "FULL" if len(entry.targets) == 1 and all_of_source else "PARTIAL"
            yield Relation(
                entry.within,
                entry.place,
                source,
                target,
                entry.relationship,
                forward,
                backward,
                entry.rationale,
                entry.strength,
            )


def _ends(
    file: str, place: str, prefix: str, items: Iterable[mapping_model.MappingItem], faults: list[Fault]
) -> dict[str, bool]:
    """The controls that one side of a map names, each with whether all of it is related, or only some statements."""
    ends: dict[str, bool] = {}
    for index, item in enumerate(items):
        # The id of a statement begins with that of its control: ac-2_smt is the whole statement of AC-2, ac-2_smt.a its
        # item a.
        name, mark, rest = item.id_ref.partition("_smt") if item.type == "statement" else (item.id_ref, "", "")
        if item.type not in ("control", "statement"):
            faults.append(Fault(file, place + pointer(index, "type"), "must be control or statement"))
        elif item.type == "statement" and not (name and mark):
            reason = "must be named after its control, as ac-2_smt.a is"
            faults.append(Fault(file, place + pointer(index, "id-ref"), reason))
        else:
            control = f"{prefix}:{name}"
            ends[control] = ends.get(control, False) or not rest
    return ends


def _prefix(
    resource: mapping_model.MappingResourceReference, back_matter: common.BackMatter | None, catalogs: Mapping[str, str]
) -> str:
    """The uuid of the catalog of a mapped resource, which is the prefix of its controls' ids.

    A reference has that uuid, or the name of the catalog's file, directly or through a resource of the back matter. A
    catalog of the same import takes precedence; without one, the uuid is that of a catalog imported before. Without a
    uuid, the reference itself is the prefix, so that it can name controls of other formats as well.
    """
    addresses = _addresses(str(resource.href), back_matter)
    named = [uuid.lower() for address in addresses for uuid in _UUID.findall(address)]
    for uuid in catalogs.values():
        if uuid.lower() in named:
            return uuid
    files = {_file_name(address) for address in addresses}
    same_name = [uuid for file, uuid in catalogs.items() if Path(file).name in files]
    if len(same_name) == 1:
        return same_name[0]
    return named[0] if named else str(resource.href)


def _addresses(href: str, back_matter: common.BackMatter | None) -> list[str]:
    """The addresses of a reference: itself, or the links and identifiers of its resource in the back matter."""
    for resource in (back_matter.resources or ()) if back_matter and href.startswith("#") else ():
        if resource.uuid.lower() == href[1:].lower():
            links = [str(link.href) for link in resource.rlinks or ()]
            return [*links, *(str(document.identifier) for document in resource.document_ids or ()), href]
    return [href]


def _file_name(address: str) -> str:
    return unquote(address.partition("#")[0].partition("?")[0].rpartition("/")[2])


def _uuids_of_catalogs(documents: Sequence[Document]) -> dict[str, str]:
    return {one.file: one.identity for one in documents if one.format is oscal_catalog.FORMAT}


FORMAT = ImportFormat(
    name="OSCAL mapping collection",
    recognizes=lambda document: "mapping-collection" in document.values,
    identity=lambda document: document.member("mapping-collection").get("uuid"),
    read=lambda document, all_documents, faults: read_mapping_collection(
        document, _uuids_of_catalogs(all_documents), faults
    ),
    media_types=(JSON, YAML),
    extra="oscal",
)
