"""YAML as the catalogs use it: mappings, lists and text, within limits.

The document is made from the parser's events and not from its tree of nodes: libyaml builds that by recursion without
an end, it takes many times the memory of the document, and it drops a key that is given twice.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

import yaml

from normata.core.documents.json_text import MAX_REPORTED, Flaw, Step

if TYPE_CHECKING:
    from collections.abc import Iterator

try:
    from yaml import CSafeLoader as _Loader
except ImportError:  # PyYAML was built without libyaml: some ten times slower, the same results
    from yaml import SafeLoader as _Loader  # type: ignore[assignment]

_TAG = "tag:yaml.org,2002:"
_TEXT_TAGS = frozenset(_TAG + kind for kind in ("str", "int", "float", "timestamp"))
_TRUTH = {"true": True, "false": False}
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_PLAIN_TRUTH = re.compile(r"true|True|TRUE|false|False|FALSE")


@dataclass(frozen=True, slots=True)
class Limits:
    """How large a document may be, with its aliases written out."""

    levels: int
    values: int
    characters: int


class YamlError(Exception):
    """The text is not YAML, or uses more of YAML than is read here. The message says where and why."""


def load(text: str, limits: Limits) -> tuple[object, list[Flaw]]:
    """The document that the text is, and which of its keys are given twice. Raises YamlError.

    YAML 1.1 takes much for what it was not meant to be: a reference ``164.310`` is the number 164.31, ``NO`` is false
    and ``2024-06-29`` a date. None of it is a number or a date to the formats read here. So true, false and null are
    what they are, and everything else is the text that it is.
    """
    try:
        return _Composer(limits).document(yaml.parse(text, Loader=_Loader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlError(f"{_at(mark)}: {error.problem or error.context}" if mark else str(error)) from error
    except yaml.reader.ReaderError as error:
        raise YamlError(f"{position(text, error.position)}: {error.reason}") from error


def position(text: str, offset: int) -> str:
    """Line and column of a character."""
    return f"line {text.count(chr(10), 0, offset) + 1}, column {offset - text.rfind(chr(10), 0, offset)}"


def _at(mark: Any) -> str:
    return f"line {mark.line + 1}, column {mark.column + 1}"


def _refuse(event: yaml.Event, reason: str) -> NoReturn:
    raise YamlError(f"{_at(event.start_mark)}: {reason}")


@dataclass(slots=True)
class _Open:
    """A collection whose end has not been read yet, and the step to the value that comes next.

    ``keys`` has the place in the text of each key of a mapping. ``values`` and ``characters`` are what the document
    held before it. ``levels`` is how many levels the deepest of its values has.
    """

    event: yaml.CollectionStartEvent
    content: dict[str, object] | list[object]
    values: int
    characters: int
    step: Step | None = None
    keys: dict[str, str] = field(default_factory=dict)
    levels: int = 0


@dataclass(frozen=True, slots=True)
class _Anchored:
    """A value that aliases may repeat, and what it adds to the document each time."""

    content: object
    text: str | None
    levels: int
    values: int
    characters: int


class _Composer:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._open: list[_Open] = []
        self._anchored: dict[str, _Anchored | None] = {}  # null while the value is open
        self._root: object = None
        self._values = 0
        self._characters = 0
        self._repeated: list[Flaw] = []

    def document(self, events: Iterator[yaml.Event]) -> tuple[object, list[Flaw]]:
        documents = 0
        for event in events:
            if isinstance(event, yaml.ScalarEvent):
                self._scalar(event)
            elif isinstance(event, yaml.CollectionStartEvent):
                self._begin(event)
            elif isinstance(event, yaml.CollectionEndEvent):
                self._end()
            elif isinstance(event, yaml.AliasEvent):
                self._alias(event)
            elif isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    _refuse(event, "a second document begins; one is expected")
        return self._root, self._repeated

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        text: str = event.value
        self._count(event, 1, len(text))
        content = text if self._is_key() else _meaning(event, text)
        if event.anchor is not None:
            self._anchored[event.anchor] = _Anchored(content, text, 0, 1, len(text))
        self._add(event, content, text)

    def _begin(self, event: yaml.CollectionStartEvent) -> None:
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        if event.tag not in (None, "!", _TAG + ("map" if is_mapping else "seq")):
            _refuse(event, f"the tag {event.tag} is not read")
        if self._is_key():
            _refuse(event, "a key must be text")
        if len(self._open) == self._limits.levels:
            self._refuse_depth(event)
        self._open.append(_Open(event, {} if is_mapping else [], self._values, self._characters))
        self._count(event, 1, 0)
        if event.anchor is not None:
            self._anchored[event.anchor] = None

    def _end(self) -> None:
        ended = self._open.pop()
        levels = ended.levels + 1
        if ended.event.anchor is not None:
            self._anchored[ended.event.anchor] = _Anchored(
                ended.content, None, levels, self._values - ended.values, self._characters - ended.characters
            )
        self._add(ended.event, ended.content, None, levels)

    def _alias(self, event: yaml.AliasEvent) -> None:
        if event.anchor not in self._anchored:
            _refuse(event, f"the alias *{event.anchor} has no anchor before it")
        anchored = self._anchored[event.anchor]
        if anchored is None:
            _refuse(event, f"a value must not contain itself, as *{event.anchor} would")
        if len(self._open) + anchored.levels > self._limits.levels:
            self._refuse_depth(event)
        self._count(event, anchored.values, anchored.characters)
        self._add(event, anchored.content, anchored.text, anchored.levels)

    def _is_key(self) -> bool:
        return bool(self._open) and isinstance(self._open[-1].content, dict) and self._open[-1].step is None

    def _add(self, event: yaml.Event, content: object, text: str | None, levels: int = 0) -> None:
        """Put a value where it belongs: into the collection around it, as a key, or as the document itself."""
        if not self._open:
            self._root = content
            return
        within = self._open[-1]
        if isinstance(within.content, list):
            within.content.append(content)
        elif within.step is None:
            if text is None:
                _refuse(event, "a key must be text")
            self._key(within, event, text)
            return
        else:
            within.content[str(within.step)] = content
            within.step = None
        within.levels = max(within.levels, levels)

    def _key(self, within: _Open, event: yaml.Event, key: str) -> None:
        if key == "<<":
            # Each level of merging copies all below it: a few lines would fill the memory.
            _refuse(event, "merge keys are not read")
        within.step = key
        here = _at(event.start_mark)
        first = within.keys.setdefault(key, here)
        if first != here and len(self._repeated) < MAX_REPORTED:
            self._repeated.append(Flaw(tuple(self._steps()), f"is given twice: in {first} and in {here}"))

    def _steps(self) -> Iterator[Step]:
        for within in self._open:
            # A list is at the item that its length names: the item is added once it is complete.
            yield len(within.content) if isinstance(within.content, list) else within.step or ""

    def _count(self, event: yaml.Event, values: int, characters: int) -> None:
        self._values += values
        self._characters += characters
        limits = self._limits
        for count, most, what in (
            (self._values, limits.values, "values"),
            (self._characters, limits.characters, "characters"),
        ):
            if count > most:
                _refuse(event, f"the document holds more than {most:,} {what} once its aliases are written out")

    def _refuse_depth(self, event: yaml.Event) -> NoReturn:
        _refuse(event, f"it is nested deeper than {self._limits.levels} levels")


def _meaning(event: yaml.ScalarEvent, text: str) -> object:
    if event.tag not in (None, "!"):
        return _tagged(event, text)
    is_plain = event.implicit[0] and not event.style
    if is_plain and text in _NULL:
        return None
    if is_plain and _PLAIN_TRUTH.fullmatch(text):
        return _TRUTH[text.lower()]
    return text


def _tagged(event: yaml.ScalarEvent, text: str) -> object:
    if event.tag in _TEXT_TAGS:
        return text
    if event.tag == _TAG + "bool":
        return _TRUTH.get(text.lower(), text)
    if event.tag == _TAG + "null":
        return None
    _refuse(event, f"the tag {event.tag} is not read")
