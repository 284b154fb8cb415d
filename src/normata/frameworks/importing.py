"""Frameworks and mappings that others publish, read into rows of a bundle.

Three formats are known, and told apart by what a document holds, not by the name of its file: OSCAL catalogs, OSCAL
mapping collections, and CISO Assistant libraries, each as JSON or as YAML. The readers beside this module translate
one format each. Whatever must hold for all of them is decided here, once: what may be read at all, what a relationship
means for coverage, what a control without a name is called, and that identifiers and parents fit together.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar
from uuid import UUID, uuid5

import yaml

from normata.frameworks import ciso_assistant, oscal
from normata.source import Fault, FaultyInput, Row, pointer

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

try:
    from yaml import CSafeLoader as _SafeLoader
except ImportError:  # PyYAML was built without libyaml: some ten times slower, the same results
    from yaml import SafeLoader as _SafeLoader  # type: ignore[assignment]

_EXPECTED = "an OSCAL catalog, an OSCAL mapping collection or a CISO Assistant library"
_DEEPEST = 100
_MOST_VALUES = 2_000_000
_LONGEST_ID = 128
_LONGEST_NAME = 500
_LONGEST_NAME_FROM_TEXT = 120

# Never change this: the ids of all matches follow from it, and a library imported again must find its own.
_MATCHES = UUID("6f0e6a3c-5d0b-5b0e-9a55-2f1c7d1f4b7e")

_RANK = {"PARTIAL": 1, "FULL": 2}

# The set theory relations of NIST IR 8477, in the spelling of OSCAL ("superset-of") and of CISO Assistant ("superset").
# Both say what the source is to the target: "superset" is a source that asks for all that the target asks for, and
# more, so that who covers the source covers the target. Each gives the level of source → target and of target → source.
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


def _silent(file: str) -> None:
    """Tells nobody."""


def read(paths: Sequence[Path], progress: Callable[[str], None] = _silent) -> list[Row]:
    """The rows of ``frameworks``, ``controls`` and ``controlMatches`` that these files hold, in the order of the files.

    ``progress`` is called with each path before its file is read. Raises FaultyInput with the faults of all files. That
    both ends of a match exist is left to whoever loads the rows: a mapping may well name controls loaded long ago.
    """
    faults: list[Fault] = []
    documents = _documents(paths, progress, faults)
    catalogs = _catalogs(documents)
    rows: list[Row] = []
    for document in documents:
        rows += _rows(document, catalogs, faults)
    faults += _misfits(rows)
    if faults:
        raise FaultyInput(faults)
    return rows


# Documents


@dataclass(frozen=True, slots=True)
class _Document:
    """One file as it was parsed; ``identity`` is the identifier that its publisher gave to the whole of it."""

    file: str
    values: Mapping[str, object]
    identity: str


def _documents(paths: Sequence[Path], progress: Callable[[str], None], faults: list[Fault]) -> list[_Document]:
    """What can be read of the files and is there for the first time."""
    documents: dict[str, _Document] = {}
    for path in paths:
        file = str(path)
        progress(file)
        try:
            values = _parsed(file, _text(file, path))
        except FaultyInput as refused:
            faults += refused.faults
            continue
        identity = _identity(values) or file
        if identity in documents:
            # Said once for the document: without this, each of its rows would be a duplicate of its own.
            faults.append(Fault(file, "", f"{identity} has been read from {documents[identity].file} already"))
        else:
            documents[identity] = _Document(file, values, identity)
    return list(documents.values())


def _text(file: str, path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise FaultyInput([Fault(file, "", f"cannot be read: {error.strerror or error}")]) from error
    except ValueError as error:
        raise FaultyInput([Fault(file, "", f"is not UTF-8 text: {error}")]) from error


def _parsed(file: str, text: str) -> dict[str, object]:
    """The mapping that the text is, as JSON or as YAML, safe to walk for any reader."""
    try:
        value = _value(text)
    except _UnparsableError as error:
        raise FaultyInput([Fault(file, "", f"is neither JSON nor YAML: {error}")]) from error
    if not isinstance(value, dict) or not {"catalog", "mapping-collection", "objects"} & value.keys():
        raise FaultyInput([Fault(file, "", f"is not recognised: expected {_EXPECTED}")])
    flaws = _flaws(file, value)
    if flaws:
        raise FaultyInput(flaws)
    return value


class _UnparsableError(Exception):
    """Says where a text stops being JSON or YAML."""


def _value(text: str) -> object:
    if not text.lstrip().startswith(("{", "[")):
        return _yaml(text)
    try:
        return _json(text)
    except _UnparsableError:
        try:  # YAML may begin with a bracket too
            return _yaml(text)
        except _UnparsableError:
            pass
        raise


def _json(text: str) -> object:
    try:
        # Numbers stay the text that they are, as in YAML below.
        value: object = json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
    except json.JSONDecodeError as error:
        raise _UnparsableError(f"line {error.lineno}, column {error.colno}: {error.msg}") from error
    except RecursionError as error:
        raise _UnparsableError(f"it is nested deeper than {_DEEPEST} levels") from error
    return value


def _yaml(text: str) -> object:
    try:
        _refuse_depth(text)
        value: object = yaml.load(text, Loader=_TextLoader)  # noqa: S506 - it makes less than the safe loader does
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise _UnparsableError(f"{where}{error.problem or error.context}") from error
    except yaml.reader.ReaderError as error:
        raise _UnparsableError(f"{_position(text, error.position)}: {error.reason}") from error
    return value


def _position(text: str, offset: int) -> str:
    before = text[:offset]
    return f"line {before.count(chr(10)) + 1}, column {offset - before.rfind(chr(10))}"


def _refuse_depth(text: str) -> None:
    """Libyaml builds its tree by recursion without an end: enough brackets and the whole process is gone."""
    depth = 0
    for event in yaml.parse(text, Loader=_SafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _DEEPEST:
            mark = event.start_mark
            where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
            raise _UnparsableError(f"{where}it is nested deeper than {_DEEPEST} levels")


class _TextLoader(_SafeLoader):
    """Reads mappings, lists, true, false, null and, for everything else, text.

    YAML 1.1 takes much for what it was not meant to be: a reference ``164.310`` is the number 164.31, ``NO`` is false
    and ``2024-06-29`` a date. None of it is a number or a date to the formats read here, so the text is kept.
    """

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML declares it without ClassVar
        **{
            first: [("tag:yaml.org,2002:bool", re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z"))]
            for first in "tTfF"
        },
        **{
            first: [("tag:yaml.org,2002:null", re.compile(r"(?:~|null|Null|NULL|)\Z"))] for first in ("~", "n", "N", "")
        },
    }

    def construct_mapping(self, node: yaml.Node, deep: bool = False) -> dict[Hashable, object]:
        if not isinstance(node, yaml.MappingNode):
            raise yaml.constructor.ConstructorError(problem="expected a mapping", problem_mark=node.start_mark)
        for key, _ in node.value:
            if key.value == "<<":
                # Each level of merging copies all below it: a few lines would fill the memory.
                raise yaml.constructor.ConstructorError(problem="merge keys are not read", problem_mark=key.start_mark)
            if isinstance(key, yaml.ScalarNode):
                key.tag = "tag:yaml.org,2002:str"
        return yaml.constructor.BaseConstructor.construct_mapping(self, node, deep)

    def construct_truth(self, node: yaml.ScalarNode) -> object:
        text = self.construct_scalar(node)
        return {"true": True, "false": False}.get(str(text).lower(), text)

    yaml_constructors: ClassVar = {
        "tag:yaml.org,2002:map": _SafeLoader.construct_yaml_map,
        "tag:yaml.org,2002:seq": _SafeLoader.construct_yaml_seq,
        "tag:yaml.org,2002:bool": construct_truth,
        "tag:yaml.org,2002:null": _SafeLoader.construct_yaml_null,
        **dict.fromkeys(
            (f"tag:yaml.org,2002:{kind}" for kind in ("str", "int", "float", "timestamp")),
            _SafeLoader.construct_yaml_str,
        ),
        None: _SafeLoader.construct_undefined,
    }


# NUL, and the halves of a surrogate pair that JSON can spell out: no database stores the one, no encoding the other.
_UNUSABLE = re.compile("[\x00\ud800-\udfff]")


def _flaws(file: str, document: dict[str, object]) -> list[Fault]:
    """Why the document must not be walked: endless, too deep, too large with its aliases written out, or unusable."""
    flaws: list[Fault] = []
    sizes: dict[int, int] = {}  # by identity, so that what an alias shares is measured once; 0 while being measured

    def measure(value: object, place: str, depth: int) -> int:
        if isinstance(value, str):
            if _UNUSABLE.search(value):
                flaws.append(Fault(file, place, "must not hold NUL or half of a surrogate pair"))
            return 1
        if not isinstance(value, (dict, list)):
            return 1
        if id(value) not in sizes:
            sizes[id(value)] = 0
            sizes[id(value)] = 1 + measure_inside(value, place, depth)
        elif sizes[id(value)] == 0:
            flaws.append(Fault(file, place, "must not contain itself"))
        return sizes[id(value)]

    def measure_inside(value: dict[str, object] | list[object], place: str, depth: int) -> int:
        if depth > _DEEPEST:
            flaws.append(Fault(file, place, f"is nested deeper than {_DEEPEST} levels"))
            return 0
        if isinstance(value, list):
            return sum(measure(item, f"{place}/{index}", depth + 1) for index, item in enumerate(value))
        for key in value:
            measure(key, place, depth)
        return sum(measure(item, place + pointer(key), depth + 1) for key, item in value.items())

    if measure(document, "", 1) > _MOST_VALUES:
        flaws.append(Fault(file, "", f"holds more than {_MOST_VALUES:,} values once its aliases are written out"))
    return flaws


def _identity(values: Mapping[str, object]) -> str | None:
    named = [values.get("urn")]
    named += [root.get("uuid") for root in map(values.get, ("catalog", "mapping-collection")) if isinstance(root, dict)]
    return next((name for name in named if isinstance(name, str) and name), None)


def _catalogs(documents: Iterable[_Document]) -> dict[str, str]:
    """The uuid of each OSCAL catalog, by file."""
    return {document.file: document.identity for document in documents if "catalog" in document.values}


# Rows


def _rows(document: _Document, catalogs: Mapping[str, str], faults: list[Fault]) -> Iterator[Row]:
    """A document's rows of the bundle: what its reader says, with names filled in and relations turned into matches."""
    relations: list[Row] = []
    for row in _translated(document, catalogs, faults):
        if row.array == "relations":
            relations.append(row)
        else:
            yield _named(row)
    yield from _matches(document.identity, relations, faults)


def _translated(document: _Document, catalogs: Mapping[str, str], faults: list[Fault]) -> list[Row]:
    if "catalog" in document.values:
        return oscal.read_catalog(document.file, document.values, faults)
    if "mapping-collection" in document.values:
        return oscal.read_mapping_collection(document.file, document.values, catalogs, faults)
    return ciso_assistant.read_library(document.file, document.values, faults)


def _named(row: Row) -> Row:
    """The row with a name on one line: its own, else the beginning of a control's text, else its identifier."""
    name, key = _shortened(row.values["name"] or "", _LONGEST_NAME), "name"
    if not name and row.array == "controls":
        key = "description" if row.values["description"] else "purpose"
        name = _opening(row.values[key] or "")
    if not name:
        name, key = _shortened(row.values["identifier"], _LONGEST_NAME), "identifier"
    origin = {**row.origin, "name": row.origin.get(key, key)}
    return replace(row, values={**row.values, "name": name}, origin=origin)


# A sentence ends where a word of two letters or more does, so that neither "e.g." nor "1." is taken for one.
_SENTENCE_END = re.compile(r"(?<=[^\W\d_]{2})[.!?]\s+(?=[^\W\d_a-z])")


def _opening(text: str) -> str:
    """The first sentence of the first line, without its full stop."""
    line = text.strip().partition("\n")[0]
    return _shortened(_SENTENCE_END.split(line)[0].rstrip(" .:;,"), _LONGEST_NAME_FROM_TEXT)


def _shortened(text: str, longest: int) -> str:
    """The text on one line, cut between words, with an ellipsis where it was cut."""
    line = " ".join(text.split())
    if len(line) <= longest:
        return line
    kept = line[: longest - 1]
    if line[longest - 1] != " ":  # the cut goes through a word; a single word that fills the line is cut all the same
        kept = kept.rpartition(" ")[0] or kept
    return kept.rstrip(" .:;,") + "…"


def _matches(identity: str, relations: Iterable[Row], faults: list[Fault]) -> Iterable[Row]:
    """One match for each pair of controls and direction, at the highest level that any of the relations gives it.

    Published mapping sets say much twice: forth and back, or the same pair for several reasons.
    """
    matches: dict[tuple[str, str], Row] = {}
    for relation in relations:
        levels = _LEVELS.get(_spelling(relation.values["relationship"]))
        if levels is None:
            known = "equal, superset, subset, intersect (in OSCAL: intersects-with) or not_related (no-relationship)"
            faults.append(relation.fault("relationship", f'"{relation.values["relationship"]}" is not {known}'))
            continue
        for ends, stated, most in zip(_DIRECTIONS, levels, ("forward", "backward"), strict=True):
            if stated is not None:
                level = min(stated, relation.values.get(most, "FULL"), key=_RANK.__getitem__)
                match = _match(identity, relation, ends, level)
                pair = (match.values["sourceControlId"], match.values["targetControlId"])
                if pair not in matches or _RANK[level] > _RANK[matches[pair].values["matchLevel"]]:
                    matches[pair] = match
    return matches.values()


_DIRECTIONS = (("sourceControlId", "targetControlId"), ("targetControlId", "sourceControlId"))


def _spelling(relationship: str) -> str:
    return relationship.strip().lower().replace("_", "-").replace(" ", "-")


def _match(identity: str, relation: Row, ends: tuple[str, str], level: str) -> Row:
    source, target = (relation.values[end] for end in ends)
    values = {
        "id": str(uuid5(_MATCHES, json.dumps([identity, source, target]))),
        "sourceControlId": source,
        "targetControlId": target,
        "matchLevel": level,
    }
    source_key, target_key = (relation.origin.get(end, end) for end in ends)
    origin = {"sourceControlId": source_key, "targetControlId": target_key, "matchLevel": "relationship"}
    return Row("controlMatches", relation.file, relation.place, values, origin)


# What must hold for the rows together


def _misfits(rows: Sequence[Row]) -> Iterator[Fault]:
    yield from _nameless(rows)
    yield from _oversized(rows)
    yield from _duplicates(rows)
    controls = {row.values["id"]: row for row in rows if row.array == "controls"}
    yield from _unknown_parents(controls)
    yield from _circles(controls)


def _nameless(rows: Iterable[Row]) -> Iterator[Fault]:
    for row in rows:
        if row.array != "controlMatches" and not row.values["name"]:
            yield row.fault("name", "is required")


def _oversized(rows: Iterable[Row]) -> Iterator[Fault]:
    for row in rows:
        for name in ("id", "sourceControlId", "targetControlId"):
            if len(row.values.get(name, "")) > _LONGEST_ID:
                yield row.fault(name, f"must be at most {_LONGEST_ID} characters")


def _duplicates(rows: Iterable[Row]) -> Iterator[Fault]:
    first: dict[tuple[str, str], Row] = {}
    for row in rows:
        known = first.setdefault((row.array, row.values["id"]), row)
        if known is not row:
            yield row.fault("id", f"is the same as that of {known.place} in {known.file}")


def _unknown_parents(controls: Mapping[str, Row]) -> Iterator[Fault]:
    for row in controls.values():
        if row.values["parentId"] is not None:
            parent = controls.get(row.values["parentId"])
            if parent is None or parent.values["frameworkId"] != row.values["frameworkId"]:
                yield row.fault("parentId", f"{row.values['parentId']} is not in this framework")


def _circles(controls: Mapping[str, Row]) -> Iterator[Fault]:
    """One fault for each circle of parents, at the first of its controls that is met."""
    settled: set[str] = set()
    for start in controls:
        way: set[str] = set()
        current: str | None = start
        while current is not None and current in controls and current not in settled:
            if current in way:
                yield controls[current].fault("parentId", "leads back to this control itself")
                break
            way.add(current)
            current = controls[current].values["parentId"]
        settled |= way
