"""YAML as catalogs use it: objects, lists and text, within limits.

YAML 1.1 interprets many texts as other types: a reference ``164.310`` is the number 164.31, ``NO`` is false and
``2024-06-29`` a date. The formats read here have no numbers or dates. So only true, false and null are interpreted, and
everything else remains text. The parser's events are read, and not its tree of nodes: libyaml builds that by unlimited
recursion, and it takes four times the memory and up to four times the time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import yaml

from normata.core.documents.json_text import MOST_FLAWS, Flaw, Step

try:
    from yaml import CSafeLoader as _Loader
except ImportError:  # PyYAML without libyaml: ten times slower, same results
    from yaml import SafeLoader as _Loader  # type: ignore[assignment]

_TAG = "tag:yaml.org,2002:"
_TEXT_TAGS = frozenset(_TAG + kind for kind in ("str", "int", "float", "timestamp"))
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUTH = re.compile(r"(true|True|TRUE)|false|False|FALSE")


@dataclass(frozen=True, slots=True)
class Limits:
    """The maximum size of a document, with its aliases written out."""

    levels: int
    values: int
    characters: int


class YamlError(Exception):
    """The text is not YAML, or uses more of YAML than is read here. The message has the place and the reason."""


def load(text: str, limits: Limits) -> tuple[object, list[Flaw]]:
    """The document in the text, and its repeated keys. Raises YamlError."""
    try:
        reader = _Reader(yaml.parse(text, Loader=_Loader), limits)
        return reader.document(), reader.repeated
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlError(f"{_at(mark)}: {error.problem or error.context}" if mark else str(error)) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        column = error.position - text.rfind("\n", 0, error.position)
        raise YamlError(f"line {line}, column {column}: {error.reason}") from error


def _at(mark: Any) -> str:
    return f"line {mark.line + 1}, column {mark.column + 1}"


def _refuse(event: yaml.Event, reason: str) -> NoReturn:
    raise YamlError(f"{_at(event.start_mark)}: {reason}")


@dataclass(frozen=True, slots=True)
class _Node:
    """A value, its text if it is a scalar, and the size that each alias of it adds to the document."""

    content: object
    text: str | None
    levels: int
    values: int
    characters: int


class _Reader:
    """Reads events into values. ``repeated`` has the repeated keys."""

    def __init__(self, events: Iterator[Any], limits: Limits) -> None:
        self.repeated: list[Flaw] = []
        self._events = events
        self._limits = limits
        self._steps: list[Step] = []
        self._anchored: dict[str, _Node | None] = {}  # null while the value is being read
        self._values = self._characters = 0

    def document(self) -> object:
        next(self._events)  # start of the stream
        if isinstance(next(self._events), yaml.StreamEndEvent):
            return None
        content = self._node(next(self._events)).content
        next(self._events)  # end of the document
        if not isinstance(end := next(self._events), yaml.StreamEndEvent):
            _refuse(end, "a second document begins; one is expected")
        return content

    def _node(self, event: Any, *, is_key: bool = False) -> _Node:
        """The value that starts with this event."""
        if isinstance(event, yaml.AliasEvent):
            return self._repeat(event)
        values, characters, levels, text = self._values, self._characters, 0, None
        if event.anchor is not None:
            self._anchored[event.anchor] = None
        if isinstance(event, yaml.ScalarEvent):
            text = event.value
            self._count(event, 1, len(text))
            content = text if is_key else _meaning(event, text)
        else:
            if is_key:
                _refuse(event, "a key must be text")
            content, levels = self._collection(event)
        node = _Node(content, text, levels, self._values - values, self._characters - characters)
        if event.anchor is not None:
            self._anchored[event.anchor] = node
        return node

    def _repeat(self, event: yaml.AliasEvent) -> _Node:
        if event.anchor not in self._anchored:
            _refuse(event, f"the alias *{event.anchor} has no anchor before it")
        node = self._anchored[event.anchor]
        if node is None:
            _refuse(event, f"a value must not contain itself, as *{event.anchor} would")
        self._require_levels(event, node.levels)
        self._count(event, node.values, node.characters)
        return node

    def _collection(self, event: yaml.CollectionStartEvent) -> tuple[object, int]:
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        if event.tag not in (None, "!", _TAG + ("map" if is_mapping else "seq")):
            _refuse(event, f"the tag {event.tag} is not read")
        self._require_levels(event, 1)
        self._count(event, 1, 0)
        return self._mapping() if is_mapping else self._list()

    def _mapping(self) -> tuple[dict[str, object], int]:
        content: dict[str, object] = {}
        marks: dict[str, Any] = {}
        levels = 0
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._node(event, is_key=True).text
            if key is None:
                _refuse(event, "a key must be text")
            if key == "<<":  # each merge copies everything below it, so a few lines could fill the memory
                _refuse(event, "merge keys are not read")
            self._steps.append(key)
            first = marks.setdefault(key, event.start_mark)
            if first is not event.start_mark and len(self.repeated) < MOST_FLAWS:
                reason = f"is given twice: in {_at(first)} and in {_at(event.start_mark)}"
                self.repeated.append(Flaw(tuple(self._steps), reason))
            node = self._node(next(self._events))
            content[key] = node.content
            levels = max(levels, node.levels)
            self._steps.pop()
        return content, levels + 1

    def _list(self) -> tuple[list[object], int]:
        content: list[object] = []
        levels = 0
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            self._steps.append(len(content))
            node = self._node(event)
            content.append(node.content)
            levels = max(levels, node.levels)
            self._steps.pop()
        return content, levels + 1

    def _require_levels(self, event: yaml.Event, more: int) -> None:
        if len(self._steps) + more > self._limits.levels:
            _refuse(event, f"it is nested deeper than {self._limits.levels} levels")

    def _count(self, event: yaml.Event, values: int, characters: int) -> None:
        self._values += values
        self._characters += characters
        if self._values > self._limits.values:
            self._refuse_size(event, self._limits.values, "values")
        if self._characters > self._limits.characters:
            self._refuse_size(event, self._limits.characters, "characters")

    def _refuse_size(self, event: yaml.Event, most: int, what: str) -> NoReturn:
        _refuse(event, f"the document holds more than {most:,} {what} once its aliases are written out")


def _meaning(event: yaml.ScalarEvent, text: str) -> object:
    if event.tag in _TEXT_TAGS:
        return text
    if event.tag == _TAG + "bool":
        return {"true": True, "false": False}.get(text.lower(), text)
    if event.tag == _TAG + "null":
        return None
    if event.tag not in (None, "!"):
        _refuse(event, f"the tag {event.tag} is not read")
    if event.style or not event.implicit[0]:
        return text
    if text in _NULL:
        return None
    truth = _TRUTH.fullmatch(text)
    return text if truth is None else truth[1] is not None
