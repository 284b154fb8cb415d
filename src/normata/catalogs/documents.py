"""Files that others publish, as documents that any reader may walk: parsed, of bounded size, and without NUL.

A document is a file's content as mappings, lists, text, true, false and null. Numbers stay the text that they are.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

from normata.catalogs import tables
from normata.core.changes.source import Fault
from normata.core.documents import json_text, yaml_text
from normata.core.documents.files import Unreadable, as_text
from normata.core.documents.json_text import Flaw, place

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_EXPECTED = (
    "an OSCAL catalog, an OSCAL mapping collection, a CISO Assistant library, or a table with a column identifier"
)

# Far above everything that is published. As bytes of the file, and as characters once all that is said by reference
# (YAML's aliases, OSCAL's parameters) is written out.
MAX_CHARACTERS = 64 * 2**20
_MAX_VALUES = 2_000_000
_DEEPEST = 100


@dataclass(frozen=True, slots=True)
class Document:
    """One file. ``identity`` is the identifier that its publisher gave to the whole of it."""

    file: str
    values: Mapping[str, object]
    identity: str


@dataclass(frozen=True, slots=True)
class Input:
    """One file, or the body of a request, that is read when its turn comes.

    ``read`` returns its content, or raises Unreadable. ``name`` is that of the framework, where it is a table. ``form``
    tells what it is; null where its content shall tell.
    """

    file: str
    name: str
    read: Callable[[], bytes]
    form: Literal["document", "csv", "xlsx"] | None = None


def read_documents(
    inputs: Sequence[Input], progress: Callable[[str], None], faults: list[Fault]
) -> list[Document | tables.Sheet]:
    """The documents and tables that can be read. What is wrong with the others goes to ``faults``."""
    documents: dict[str, Document | tables.Sheet] = {}
    for one in inputs:
        progress(one.file)
        flaws: list[Flaw] = []
        found: Document | tables.Sheet
        try:
            content = one.read()
            if one.form == "xlsx" or (one.form is None and tables.is_workbook(content)):
                found = tables.read_workbook(one.file, one.name, content, faults)
                identity = one.name
            elif one.form == "csv" or (one.form is None and tables.is_csv(as_text(content))):
                found = tables.read_csv(one.file, one.name, as_text(content), faults)
                identity = one.name
            else:
                values, flaws = _read(as_text(content))
                identity = _identity(values) or one.file
                found = Document(one.file, values, identity)
        except Unreadable as error:
            faults.append(Fault(one.file, "", str(error)))
            continue
        faults += [Fault(one.file, place(*flaw.steps), flaw.reason) for flaw in flaws]
        if identity in documents:
            # Told once for the document: without this, each of its rows would be a duplicate of its own.
            faults.append(Fault(one.file, "", f"{identity} has been read from {documents[identity].file} already"))
        elif not flaws:
            documents[identity] = found
    return list(documents.values())


def _read(text: str) -> tuple[dict[str, object], list[Flaw]]:
    value, flaws = _parsed(text)
    if not isinstance(value, dict) or not {"catalog", "mapping-collection", "objects"} & value.keys():
        raise Unreadable(f"is not recognised: expected {_EXPECTED}")
    return value, [*flaws, *_unusable(text, value)]


def _identity(values: Mapping[str, object]) -> str | None:
    named = [values.get("urn")]
    named += [root.get("uuid") for root in map(values.get, ("catalog", "mapping-collection")) if isinstance(root, dict)]
    return next((name for name in named if isinstance(name, str) and name), None)


def _parsed(text: str) -> tuple[object, list[Flaw]]:
    """What the text says, and what of it must not be passed over. Raises Unreadable."""
    if not text.lstrip().startswith(("{", "[")):
        return _yaml(text)
    try:
        return _json(text)
    except json.JSONDecodeError as error:
        try:  # YAML may begin with a bracket, too
            return _yaml(text)
        except Unreadable:
            reason = f"line {error.lineno}, column {error.colno}: {error.msg}"
            raise Unreadable(f"is neither JSON nor YAML: {reason}") from error


def _yaml(text: str) -> tuple[object, list[Flaw]]:
    try:
        return yaml_text.load(text, yaml_text.Limits(_DEEPEST, _MAX_VALUES, MAX_CHARACTERS))
    except yaml_text.YamlError as error:
        raise Unreadable(f"is neither JSON nor YAML: {error}") from error


def _json(text: str) -> tuple[object, list[Flaw]]:
    if _json_values(text) > _MAX_VALUES:
        raise Unreadable(f"holds more than {_MAX_VALUES:,} values")
    is_sound = True

    def mapping(pairs: list[tuple[str, object]]) -> dict[str, object]:
        nonlocal is_sound
        values = dict(pairs)
        is_sound &= len(values) == len(pairs)  # else a name is given twice
        return values

    try:
        value = json.loads(text, object_pairs_hook=mapping, parse_int=str, parse_float=str, parse_constant=str)
    except RecursionError:
        value = None
    if value is not None and is_sound and json_text.levels(value, _DEEPEST) <= _DEEPEST:
        return value, []
    position = partial(yaml_text.position, text)
    flaws, _ = json_text.flaws(text, 0, deepest=_DEEPEST, position=position, numbers=False)
    if value is None:
        raise Unreadable(flaws[-1].reason if flaws else f"is nested deeper than {_DEEPEST} levels")
    return value, flaws


_STRING_OR_VALUE = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[,\[{]', re.DOTALL)


def _json_values(text: str) -> int:
    """How many values the text has at most: one before each comma, and the last one of each array and object."""
    count = sum(map(text.count, ",[{"))
    if count > _MAX_VALUES:  # a comma in prose is no value, but to tell them apart takes longer
        count = sum(found[0][0] != '"' for found in _STRING_OR_VALUE.finditer(text))
    return count


# NUL, and the halves of a surrogate pair that JSON can spell out: no database stores the one, no encoding the other.
# A text can hold them by its escapes only.
_UNUSABLE = re.compile("[\x00\ud800-\udfff]")
_ESCAPED = re.compile(r"\\(?:0|x00|[uU]0000|u[dD])")


def _unusable(text: str, value: object) -> list[Flaw]:
    if not _ESCAPED.search(text):
        return []
    reason = "must not hold NUL or half of a surrogate pair"
    return [Flaw(steps, reason) for steps in json_text.texts_with(_UNUSABLE, value)]
