"""Catalogs and mapping collections in OSCAL, the Open Security Controls Assessment Language of NIST.

Documents are validated by compliance-trestle, the optional extra ``oscal``. It is imported when the first of them is
read, because loading its models takes longer than most commands do altogether.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar
from urllib.parse import unquote
from uuid import UUID, uuid5

from pydantic import BaseModel, TypeAdapter, ValidationError

from normata.source import Fault, Row, pointer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from trestle.oscal import catalog as catalog_model
    from trestle.oscal import common
    from trestle.oscal import mapping as mapping_model

    _Group: TypeAlias = catalog_model.Group1 | catalog_model.Group2
    _Parameter: TypeAlias = common.Parameter1 | common.Parameter2

_NAMESPACE = "http://csrc.nist.gov/ns/oscal"
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def read_catalog(file: str, document: Mapping[str, object], faults: list[Fault]) -> list[Row]:
    """The rows of an OSCAL catalog: its framework, and its groups and controls in pre-order.

    What is wrong with it is added to ``faults``; an invalid catalog has no rows.
    """
    try:
        from trestle.oscal.catalog import Model  # noqa: PLC0415
    except ImportError:
        faults.append(_without_trestle(file))
        return []
    model = _valid(Model, file, document, faults)
    if model is None:
        return []
    return [_framework(file, model.catalog), *_CatalogReader(file, model.catalog).rows()]


def read_mapping_collection(
    file: str, document: Mapping[str, object], catalogs: Mapping[str, str], faults: list[Fault]
) -> list[Row]:
    """The rows of ``relations`` that an OSCAL mapping collection states, each between one control and another.

    ``catalogs`` has the uuid of each catalog that is imported with it, by file. What is wrong is added to ``faults``;
    an invalid collection has no rows. ``forward`` and ``backward`` of a relation are the highest levels that it can
    mean for these two controls alone, where the collection speaks of sets of controls or of parts of them.
    """
    try:
        from trestle.oscal.mapping import Model  # noqa: PLC0415
    except ImportError:
        faults.append(_without_trestle(file))
        return []
    model = _valid(Model, file, document, faults)
    return [] if model is None else list(_relations(file, model.mapping_collection, catalogs, faults))


# Validation


def _without_trestle(file: str) -> Fault:
    return Fault(file, "", "is OSCAL, which needs compliance-trestle: install normata[oscal]")


_Model = TypeVar("_Model", bound=BaseModel)


def _valid(model: type[_Model], file: str, document: Mapping[str, object], faults: list[Fault]) -> _Model | None:
    try:
        # Not model.model_validate: trestle's own replaces all errors by one without a place if one is of the version.
        return TypeAdapter(model).validate_python(document)
    except ValidationError as error:
        faults += _invalid(file, document, error)
        return None


_Step: TypeAlias = int | str


@dataclass(frozen=True, slots=True)
class _Complaint:
    """What Pydantic has against the value at ``where``, seen from some value above it."""

    where: tuple[_Step, ...]
    kind: str
    message: str

    def below(self) -> _Complaint:
        return _Complaint(self.where[1:], self.kind, self.message)


def _invalid(file: str, document: Mapping[str, object], error: ValidationError) -> list[Fault]:
    complaints = [_Complaint(entry["loc"], entry["type"], entry["msg"]) for entry in error.errors(include_url=False)]
    found = (Fault(file, pointer(*place), reason) for place, reason in _located(document, (), complaints))
    return list(dict.fromkeys(found))


def _located(
    value: object, place: tuple[_Step, ...], complaints: Sequence[_Complaint]
) -> Iterator[tuple[tuple[_Step, ...], str]]:
    """The place in the document of each complaint, and its reason.

    Where a value may have one of several shapes, Pydantic puts the name of the shape between the steps of the place
    and complains once a shape. Only the complaints about the shape that fits best say what is wrong with the value.
    """
    inside: dict[_Step, list[_Complaint]] = {}
    shapes: dict[_Step, list[_Complaint]] = {}
    for complaint in complaints:
        if not complaint.where:
            yield place, _reason(complaint)
        elif complaint.kind == "missing" and len(complaint.where) == 1:
            yield (*place, complaint.where[0]), _reason(complaint)
        else:
            step = complaint.where[0]
            (inside if _has(value, step) else shapes).setdefault(step, []).append(complaint.below())
    for step, below in inside.items():
        yield from _located(value[step], (*place, step), below)  # type: ignore[index]
    if shapes:
        yield from _located(value, place, min(shapes.values(), key=_misfit))


def _has(value: object, step: _Step) -> bool:
    if isinstance(value, list):
        return isinstance(step, int) and step < len(value)
    return isinstance(value, dict) and step in value


def _misfit(complaints: Sequence[_Complaint]) -> tuple[bool, int, int]:
    """How badly a shape fits: to be no such thing at all, or to have keys that it lacks, weighs more than the rest."""
    another_thing = any(not complaint.where for complaint in complaints)
    strangers = sum(complaint.kind == "extra_forbidden" and len(complaint.where) == 1 for complaint in complaints)
    return another_thing, strangers, len(complaints)


# Pydantic quotes the whole expression, and those of OSCAL's tokens are hundreds of characters long.
_REASONS = {
    "missing": "is required",
    "extra_forbidden": "is not a field that OSCAL has here",
    "string_pattern_mismatch": "does not have the form that OSCAL demands",
}


def _reason(complaint: _Complaint) -> str:
    return _REASONS.get(complaint.kind) or complaint.message[:1].lower() + complaint.message[1:]


# Catalogs


def _framework(file: str, catalog: catalog_model.Catalog) -> Row:
    metadata = catalog.metadata
    values = {
        "id": catalog.uuid,
        "identifier": _document_identifier(metadata),
        "name": metadata.title,
        "version": metadata.version,
        "description": metadata.remarks,
        "publishedAt": (metadata.published or metadata.last_modified).isoformat(),
        "createdBy": _creator(metadata),
        "isCentralized": True,
    }
    origin = {name: "uuid" if name == "id" else "metadata" for name in values}
    return Row("frameworks", file, "/catalog", values, origin)


# The words of a title that everybody abbreviates: "NIST SP 800-53 Rev. 5.1.1" is how people name that catalog.
_ABBREVIATIONS = {"Special Publication": "SP", "Revision": "Rev.", "Version": "v."}


def _document_identifier(metadata: common.Metadata) -> str:
    """The publisher's own identifier; where there is none, as in the catalogs of NIST, the title, abbreviated."""
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
    """The groups and controls of one catalog, with the parameters of all of it at hand for their text."""

    def __init__(self, file: str, catalog: catalog_model.Catalog) -> None:
        self._file = file
        self._catalog = catalog
        self._parameters = _Parameters(_parameters_of(catalog))

    def rows(self) -> Iterator[Row]:
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
            # What has been withdrawn asks for nothing any more: it would wait for a statement of coverage forever and
            # keep the control above it from ever being covered in full.
            if not _is_withdrawn(control):
                row = self._row(control, here, parent, "CONTROL")
                enclosing = row.values["id"]
                yield row
            yield from self._controls(control.controls, here, enclosing)

    def _row(self, item: _Group | catalog_model.Control, place: str, parent: str | None, kind: str) -> Row:
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
        """Control ids such as ``ac-1`` are unique in their catalog only. A group may even have none."""
        return f"{self._catalog.uuid}:{item.id or uuid5(UUID(self._catalog.uuid), item.title)}"

    def _text(self, parts: Iterable[common.Part] | None, *names: str) -> str | None:
        lines = [line for part in parts or () if part.name in names for line in self._lines(part, "")]
        return "\n".join(lines) or None

    def _lines(self, part: common.Part, indent: str) -> Iterator[str]:
        """The part as text: its label, title and prose, and below it its own parts, indented below an item."""
        head = " ".join(filter(None, (_label(part.props), part.title, self._parameters.written_into(part.prose or ""))))
        for line in head.splitlines():
            yield (indent + line).rstrip()
        for inner in part.parts or ():
            yield from self._lines(inner, indent + "  " if head and part.name == "item" else indent)


def _is_withdrawn(control: catalog_model.Control) -> bool:
    return any(prop.name == "status" and prop.value.lower() == "withdrawn" for prop in control.props or ())


def _label(props: Iterable[common.Property] | None) -> str | None:
    """The label for readers: NIST gives others with a class, such as the zero-padded one that sorts."""
    labels = [prop for prop in props or () if prop.name == "label"]
    plain = [prop for prop in labels if prop.class_ is None]
    return next((str(prop.value) for prop in plain or labels), None)


# Parameters


def _parameters_of(catalog: catalog_model.Catalog) -> Iterator[_Parameter]:
    """All parameters: their ids are unique in the catalog, and prose may insert those of a control elsewhere."""
    within: list[catalog_model.Catalog | _Group | catalog_model.Control] = [catalog]
    while within:
        item = within.pop()
        yield from item.params or ()
        within += getattr(item, "groups", None) or ()
        within += getattr(item, "controls", None) or ()


_UNKNOWN = "[Assignment: organization-defined value]"
_LONGEST_PARAMETER = 5_000

# The blank that NIST leaves between an insertion and the full stop after it goes too.
_INSERTION = re.compile(r"\{\{\s*(?:insert:\s*[\w-]+\s*,\s*)?([^\s{},]+)\s*\}\}(?: +(?=[.,;:)]))?")

# Labels of SP 800-53 begin so where several parameters are one, in three spellings.
_DEFINED = re.compile(r"organization(?:al|ally)?[- ]defined\b")

# A link to another place in the catalog leads nowhere once the text has left it; its words stay.
_INNER_LINK = re.compile(r"\[([^\[\]]*)\]\(#[^()\s]*\)")


@dataclass(slots=True)
class _Parameters:
    """Writes parameters into prose the way SP 800-53 prints them: ``[Assignment: organization-defined frequency]``."""

    declared: Iterable[_Parameter]
    _by_id: dict[str, _Parameter] = field(init=False, default_factory=dict)
    _written: dict[str, str] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        former: dict[str, _Parameter] = {}
        for parameter in self.declared:
            if parameter.id is not None:
                self._by_id.setdefault(parameter.id, parameter)
            for name in _values_of(parameter, "alt-identifier"):
                former.setdefault(name, parameter)
        self._by_id = former | self._by_id

    def written_into(self, prose: str) -> str:
        """The prose with each insertion replaced and without links that lead nowhere."""
        text = _INSERTION.sub(lambda insertion: self._text(insertion[1]), prose)
        return _INNER_LINK.sub(r"\1", text).strip()

    def _text(self, name: str) -> str:
        if name not in self._written:
            # Stands while the parameter is written: one that inserts itself, by whatever detour, ends there.
            self._written[name] = _UNKNOWN
            parameter = self._by_id.get(name)
            text = _UNKNOWN if parameter is None else self._written_out(parameter)
            # Choices that insert choices multiply; no honest one comes near this.
            self._written[name] = text if len(text) <= _LONGEST_PARAMETER else _UNKNOWN
        return self._written[name]

    def _written_out(self, parameter: _Parameter) -> str:
        """Its values where they are set, else what there is to choose from, else what there is to fill in."""
        aggregated = [name for name in _values_of(parameter, "aggregates") if name in self._by_id]
        values = getattr(parameter, "values", None)
        select = getattr(parameter, "select", None)
        if values:
            return self.written_into(", ".join(values))
        if select and select.choice:
            return self._selection(select)
        all_set = all(getattr(self._by_id[name], "values", None) for name in aggregated)
        if aggregated and (all_set or not parameter.label):
            return ", ".join(dict.fromkeys(map(self._text, aggregated)))
        # What SP 800-53 prints is the alternative label; the label itself is worded for the assessments of SP 800-53A.
        return self._assignment(next(iter(_values_of(parameter, "alt-label")), parameter.label))

    def _selection(self, select: common.ParameterSelection) -> str:
        several = select.how_many is not None and select.how_many.value == "one-or-more"
        choices = "; ".join(map(self.written_into, select.choice or ()))
        return f"[Selection (one or more): {choices}]" if several else f"[Selection: {choices}]"

    def _assignment(self, label: str | None) -> str:
        label = self.written_into(label or "")
        if not label:
            return _UNKNOWN
        prefix = "" if _DEFINED.match(label) else "organization-defined "
        return f"[Assignment: {prefix}{label}]"


def _values_of(parameter: _Parameter, name: str) -> list[str]:
    return [prop.value for prop in parameter.props or () if prop.name == name]


# Mapping collections


def _relations(
    file: str, collection: mapping_model.MappingCollection, catalogs: Mapping[str, str], faults: list[Fault]
) -> Iterator[Row]:
    for place, mapping in _mappings(collection):
        sources = _prefix(mapping.source_resource, collection.back_matter, catalogs)
        targets = _prefix(mapping.target_resource, collection.back_matter, catalogs)
        for number, entry in enumerate(mapping.maps):
            here = place + pointer("maps", number)
            if entry.ns is not None and str(entry.ns.root) != _NAMESPACE:
                faults.append(Fault(file, here + "/ns", f"only relationships of {_NAMESPACE} are known"))
            yield from _pairs(
                file,
                here,
                entry.relationship,
                _ends(file, here + "/sources", sources, entry.sources, faults),
                _ends(file, here + "/targets", targets, entry.targets, faults),
            )


def _mappings(collection: mapping_model.MappingCollection) -> Iterator[tuple[str, mapping_model.Mapping]]:
    """The mappings with their places: OSCAL lets a single one stand without a list around it."""
    place = "/mapping-collection/mappings"
    if not isinstance(collection.mappings, list):
        yield place, collection.mappings
        return
    for index, mapping in enumerate(collection.mappings):
        yield place + pointer(index), mapping


def _pairs(
    file: str, place: str, relationship: str, sources: Mapping[str, bool], targets: Mapping[str, bool]
) -> Iterator[Row]:
    """A relation for each source and target.

    The collection relates all sources together to all targets together. So one source stands for the sources only if
    it is the only one, and what they say of a target holds for the whole of it only if not just some of its statements
    are meant; the same is true backward.
    """
    for source, all_of_source in sources.items():
        for target, all_of_target in targets.items():
            values = {
                "sourceControlId": source,
                "targetControlId": target,
                "relationship": relationship,
                "forward": "FULL" if len(sources) == 1 and all_of_target else "PARTIAL",
                "backward": "FULL" if len(targets) == 1 and all_of_source else "PARTIAL",
            }
            yield Row("relations", file, place, values, {"sourceControlId": "sources", "targetControlId": "targets"})


def _ends(
    file: str, place: str, prefix: str, items: Iterable[mapping_model.MappingItem], faults: list[Fault]
) -> dict[str, bool]:
    """The controls that one side of a map names, and whether it means all of each, not only some statements."""
    ends: dict[str, bool] = {}
    for index, item in enumerate(items):
        # A statement is named after its control: ac-2_smt is all that AC-2 states, ac-2_smt.a its item a.
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
    """The uuid of the catalog that a mapped resource is, which the ids of its controls begin with.

    A reference may give that uuid, or the name of the catalog's file, itself or through a resource of the back matter.
    A catalog of the same import is looked for first; without one, the uuid counts as that of a catalog loaded before.
    With no uuid either, the reference itself is the prefix, so that controls of other formats can be named as well.
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
    """Where a reference leads: to itself, or by way of the back matter to the links and identifiers given there."""
    for resource in (back_matter.resources or ()) if back_matter and href.startswith("#") else ():
        if resource.uuid.lower() == href[1:].lower():
            links = [str(link.href) for link in resource.rlinks or ()]
            return [*links, *(str(document.identifier) for document in resource.document_ids or ()), href]
    return [href]


def _file_name(address: str) -> str:
    return unquote(address.partition("#")[0].partition("?")[0].rpartition("/")[2])
