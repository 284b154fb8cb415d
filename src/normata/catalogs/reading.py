"""Reading published frameworks and mappings into rows of a bundle.

``registry.py`` has the formats, which are recognized by the content of a file, not by its name. This module has the
rules of all formats: the name of a control without one, and the consistency of identifiers and parents.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from normata.catalogs.documents import MAX_CHARACTERS, Document
from normata.catalogs.known_frameworks import declared
from normata.catalogs.matches import Relation, matches_of
from normata.catalogs.profiles import Profile
from normata.catalogs.registry import FORMATS, format_of
from normata.catalogs.shortening import LONGEST_NAME, one_line
from normata.core.changes.source import Fault, FaultyInput, Row
from normata.core.documents.files import Unreadable, read_bytes
from normata.core.documents.json_text import place

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from normata.catalogs.documents import ImportFormat, Reader

LONGEST_ID = 255  # the length of the column type Identifier
_LONGEST_NAME_FROM_TEXT = 120


@dataclass(frozen=True, slots=True)
class Published:
    """The content of files: the rows of frameworks and controls, and the relations of mappings.

    Relations and ``profiles`` may name controls of these files or of stored catalogs. ``left_out`` counts the parts
    that Normata does not import, by type. ``unfit`` has the faults of skipped files.
    """

    rows: list[Row]
    relations: list[Relation]
    profiles: list[Profile] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    unfit: list[Fault] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Input:
    """One file, or the body of a request, with a function that reads it.

    ``read`` returns its content, or raises Unreadable. ``name`` is that of the framework if the format has none.
    ``formats`` are the allowed formats of the content.
    """

    file: str
    name: str
    read: Callable[[], bytes]
    formats: Sequence[ImportFormat] = FORMATS


def _silent(file: str) -> None:
    """Report no progress."""


def read_published(
    paths: Sequence[Path],
    progress: Callable[[str], None] = _silent,
    *,
    name: str | None = None,
    skip_unfit: bool = False,
) -> Published:
    """The content of these files, in their order.

    ``progress`` is called with each path before its file is read. ``name`` is that of the framework of a table, by
    default the file's. Raises FaultyInput with the faults of all files, unless files with faults are to be skipped.
    Mappings may name controls that were imported before; ``unknown.rows_to_load`` checks that these exist.
    """
    inputs = [Input(str(path), name or path.stem, partial(read_bytes, path, MAX_CHARACTERS)) for path in paths]
    return read_inputs(inputs, progress, skip_unfit=skip_unfit)


def read_inputs(
    inputs: Sequence[Input], progress: Callable[[str], None] = _silent, *, skip_unfit: bool = False
) -> Published:
    """The content of these inputs, in their order.

    Raises FaultyInput with the faults of all, unless those with faults are to be skipped.
    """
    faults: list[Fault] = []
    documents = _recognized(inputs, progress, faults)
    published = Published([], [])
    for document, read in documents:
        own_faults: list[Fault] = []
        rows: list[Row] = []
        relations: list[Relation] = []
        try:
            rows, relations = read(document, [one for one, _ in documents], own_faults)
        except Unreadable as error:
            own_faults.append(Fault(document.file, "", str(error)))
        faults += dict.fromkeys(own_faults)  # without duplicates, since a value may be read twice
        if not (own_faults and skip_unfit):
            published.rows.extend(map(_named, declared(rows)))
            published.relations.extend(relations)
            published.profiles.extend(document.profiles)
            published.left_out.update(+document.left_out)
    misfits = list(_misfits(published))
    while misfits and skip_unfit:  # without the rows of an unfit file, those of others may become unfit
        faults += misfits
        _leave_out(published, {fault.file for fault in misfits})
        misfits = list(_misfits(published))
    if skip_unfit:
        published.unfit.extend(faults)
    elif faults or misfits:
        raise FaultyInput([*faults, *misfits])
    return published


def _leave_out(published: Published, files: Collection[str]) -> None:
    published.rows[:] = [row for row in published.rows if row.file not in files]
    published.profiles[:] = [profile for profile in published.profiles if profile.file not in files]
    published.relations[:] = [relation for relation in published.relations if relation.within.file not in files]


def read(paths: Sequence[Path], progress: Callable[[str], None] = _silent) -> list[Row]:
    """The rows of ``frameworks``, ``controls`` and ``controlMatches``, whether the controls are known or not."""
    published = read_published(paths, progress)
    rows = [row for row in published.rows if row.array in ("frameworks", "controls")]
    return [*rows, *matches_of(published.relations)]


def _recognized(
    inputs: Sequence[Input], progress: Callable[[str], None], faults: list[Fault]
) -> list[tuple[Document, Reader]]:
    """The documents that can be read, each with its reader. The faults of the others are added to ``faults``."""
    found: dict[str, tuple[Document, Reader]] = {}
    for one in inputs:
        progress(one.file)
        try:
            document = Document(one.file, one.name, one.read())
            document.format = format_of(document, one.formats)
            identity = document.format.identity(document)
        except Unreadable as error:
            faults.append(Fault(one.file, "", str(error)))
            continue
        if isinstance(identity, str) and identity:
            document.identity = identity
        faults += [Fault(one.file, place(*flaw.steps), flaw.reason) for flaw in document.flaws]
        if document.identity in found:
            # Reported once for the document, rather than for each of its rows.
            first = found[document.identity][0]
            faults.append(Fault(one.file, "", f"{document.identity} has been read from {first.file} already"))
        elif not document.flaws:
            found[document.identity] = document, document.format.read
    return list(found.values())


# Names


def _named(row: Row) -> Row:
    """The row with a name on one line: its own, else the beginning of a control's text, else its identifier."""
    if row.array not in ("frameworks", "controls"):
        return row
    name, key = one_line(row.values["name"] or "", LONGEST_NAME), "name"
    if not name and row.array == "controls":
        key = "description" if row.values["description"] else "purpose"
        name = _opening(row.values[key] or "")
    if not name:
        name, key = one_line(row.values["identifier"], LONGEST_NAME), "identifier"
    origin = {**row.origin, "name": row.origin.get(key, key)}
    return replace(row, values={**row.values, "name": name}, origin=origin)


# The end of a sentence follows a word of at least two letters, so "e.g." and "1." are none.
_SENTENCE_END = re.compile(r"(?<=[^\W\d_]{2})[.!?]\s+(?=[^\W\d_a-z])")


def _opening(text: str) -> str:
    """The first sentence of the first line, without its full stop."""
    line = text.strip().partition("\n")[0]
    return one_line(_SENTENCE_END.split(line)[0].rstrip(" .:;,"), _LONGEST_NAME_FROM_TEXT)


# Rules for all rows together


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
        if not row.values.get("name", True):
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
    """One fault for each circle of parents, at its first control."""
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
