"""Frameworks and mappings that others publish, read into rows of a bundle.

Four formats are known, and told apart by what a document holds, not by the name of its file: OSCAL catalogs, OSCAL
mapping collections, and CISO Assistant libraries, each as JSON or as YAML, and tables as CSV or XLSX. The readers
beside this module translate one format each. What must hold for all of them is here: what a control without a name is
called, and that identifiers and parents fit together.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from normata.catalogs import ciso_assistant, oscal_catalog, oscal_mapping
from normata.catalogs.documents import MAX_CHARACTERS, Document, Input, read_documents
from normata.catalogs.matches import Relation, matches_of
from normata.catalogs.tables import Sheet, rows_of
from normata.core.changes.source import Fault, FaultyInput, Row
from normata.core.documents.files import read_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

LONGEST_ID = 255  # as the column type Identifier has it
_LONGEST_NAME = 500
_LONGEST_NAME_FROM_TEXT = 120


@dataclass(frozen=True, slots=True)
class Published:
    """What files hold: the rows of frameworks and controls, and what mappings say of controls, here or elsewhere."""

    rows: list[Row]
    relations: list[Relation]


def _silent(file: str) -> None:
    """Tells nobody."""


def read_published(
    paths: Sequence[Path], progress: Callable[[str], None] = _silent, *, name: str | None = None
) -> Published:
    """What these files hold, in the order of the files.

    ``progress`` is called with each path before its file is read. ``name`` is that of the framework which a table
    becomes, the file's unless it is given. Raises FaultyInput with the faults of all files. Mappings may name controls
    that were imported long ago; ``unknown.rows_to_load`` looks whether they are there.
    """
    inputs = [Input(str(path), name or path.stem, partial(read_bytes, path, MAX_CHARACTERS)) for path in paths]
    return read_inputs(inputs, progress)


def read_inputs(inputs: Sequence[Input], progress: Callable[[str], None] = _silent) -> Published:
    """What these inputs hold, see :func:`read_published`."""
    faults: list[Fault] = []
    documents = read_documents(inputs, progress, faults)
    catalogs = {
        document.file: document.identity
        for document in documents
        if isinstance(document, Document) and "catalog" in document.values
    }
    published = Published([], [])
    for document in documents:
        rows, relations = _read(document, catalogs, faults)
        published.rows.extend(map(_named, rows))
        published.relations.extend(relations)
    faults += _misfits(published)
    if faults:
        raise FaultyInput(faults)
    return published


def read(paths: Sequence[Path], progress: Callable[[str], None] = _silent) -> list[Row]:
    """The rows of ``frameworks``, ``controls`` and ``controlMatches``, whether the controls are known or not."""
    published = read_published(paths, progress)
    return [*published.rows, *matches_of(published.relations)]


def _read(
    document: Document | Sheet, catalogs: Mapping[str, str], faults: list[Fault]
) -> tuple[list[Row], list[Relation]]:
    """What one document holds. ``catalogs`` has the uuid of each OSCAL catalog that is read along, by file."""
    if isinstance(document, Sheet):
        return rows_of(document, faults), []
    if "catalog" in document.values:
        return oscal_catalog.read_catalog(document, faults), []
    if "mapping-collection" in document.values:
        return [], oscal_mapping.read_mapping_collection(document, catalogs, faults)
    return ciso_assistant.read_library(document, faults)


# Names


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
    shortened = line[: longest - 1]
    if line[longest - 1] != " ":  # the cut goes through a word; a single word that fills the line is cut all the same
        shortened = shortened.rpartition(" ")[0] or shortened
    return shortened.rstrip(" .:;,") + "…"


# What must hold for the rows together


def _misfits(published: Published) -> Iterator[Fault]:
    rows = published.rows
    yield from _nameless(rows)
    yield from _oversized(published)
    yield from _duplicates(rows)
    controls = {row.values["id"]: row for row in rows if row.array == "controls"}
    yield from _unknown_parents(controls)
    yield from _circles(controls)


def _nameless(rows: Iterable[Row]) -> Iterator[Fault]:
    for row in rows:
        if not row.values["name"]:
            yield row.fault("name", "is required")


def _oversized(published: Published) -> Iterator[Fault]:
    reason = f"must be at most {LONGEST_ID} characters"
    for row in published.rows:
        if len(row.values["id"]) > LONGEST_ID:
            yield row.fault("id", reason)
    for relation in published.relations:
        for side, control in relation.ends():
            if len(control) > LONGEST_ID:
                yield relation.fault(side.key, reason)


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
