"""What no reader of a JSON text may pass over, with the place of each.

Python's decoder is fast, but it drops a name that is given twice, and it can tell no place. So it decodes every text,
and a text with something wrong is walked once more, here. Nothing here calls itself, so depth is no danger.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from json import JSONDecodeError
from json.decoder import scanstring  # type: ignore[attr-defined]  # the stubs lack it
from typing import TYPE_CHECKING, TypeAlias

from normata.core.changes.source import pointer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Step: TypeAlias = str | int

MAX_REPORTED = 100  # flaws of one text: to find a line takes a look at all that stands before it
_MAX_DIGITS = 4_300  # of a whole number: Python converts no more
_BLANKS = re.compile(r"[ \t\n\r]*")
_PLAIN = re.compile(r"(-?(?:0|[1-9][0-9]*))(\.[0-9]+)?([eE][+-]?[0-9]+)?|true|false|null|NaN|-?Infinity")
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Flaw:
    """What is wrong with the value that these steps lead to."""

    steps: tuple[Step, ...]
    reason: str


def place(*steps: Step) -> str:
    """The JSON Pointer of these steps, fit to be printed."""
    return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", pointer(*steps))


def is_too_large(number: str, *, is_whole: bool) -> bool:
    """Whether Python cannot hold a number."""
    return len(number.lstrip("-")) > _MAX_DIGITS if is_whole else math.isinf(float(number))


def flaws(
    text: str, start: int, *, deepest: int, steps: int = 0, position: Callable[[int], str], numbers: bool = True
) -> tuple[list[Flaw], int]:
    """What is wrong with the JSON value that starts at ``start``, and how far it was walked.

    Told are names that are given twice and, if ``numbers``, numbers that are too large and constants that JSON does not
    have; the first 100 of them. The walk ends early below the level ``deepest``. That is a flaw of the value that this
    many ``steps`` lead to. ``position`` words an offset. Raises JSONDecodeError where the text is not JSON.
    """
    walk = _Walk(text, start, position, numbers=numbers)
    if not walk.run(deepest):
        reason = f"is nested deeper than {deepest - steps} levels: in {position(walk.at)}"
        walk.found.append(Flaw(walk.steps()[:steps], reason))
    return walk.found, walk.at


def levels(value: object, most: int) -> int:
    """How many levels of objects and arrays a value has, counted up to one more than ``most``."""
    count, within = 0, [value] if isinstance(value, (dict, list)) else []
    while within and count <= most:
        count += 1
        within = [
            inner
            for outer in within
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
    return count


def texts_with(characters: re.Pattern[str], value: object) -> Iterator[tuple[Step, ...]]:
    """The steps to each text that has one of these characters, and to each object with such a name.

    What occurs in several places, by an alias of YAML, is told of once.
    """
    seen: set[int] = set()
    steps: list[Step] = []
    within: list[Iterator[tuple[Step, object]]] = [iter([("", value)])]
    while within:
        for step, found in within[-1]:
            if isinstance(found, str):
                if characters.search(found):
                    yield (*steps, step)[1:]
            elif isinstance(found, (dict, list)) and id(found) not in seen:
                seen.add(id(found))
                steps.append(step)
                within.append(iter(found.items()) if isinstance(found, dict) else iter(enumerate(found)))
                if isinstance(found, dict) and any(map(characters.search, found)):
                    yield tuple(steps[1:])
                break
        else:
            within.pop()
            del steps[len(within) - 1 :]


@dataclass(slots=True)
class _Container:
    """An object or array that the walk is in, and the step to the value that it is at.

    ``names`` has the offset of each name of an object.
    """

    closing: str
    step: Step
    names: dict[str, int] = field(default_factory=dict)


class _Walk:
    def __init__(self, text: str, start: int, position: Callable[[int], str], *, numbers: bool) -> None:
        self.at = start
        self.found: list[Flaw] = []
        self._text = text
        self._position = position
        self._numbers = numbers
        self._within: list[_Container] = []

    def run(self, deepest: int) -> bool:
        """Walk to the end of the value, or to the first level below ``deepest``; tell whether the end was reached."""
        while True:
            char = self._next()
            if char in ("{", "["):
                if len(self._within) == deepest:
                    return False
                self.at += 1
                self._within.append(_Container("}", "") if char == "{" else _Container("]", -1))
                if self._next() != self._within[-1].closing:
                    self._go_on()
                    continue
            elif char == '"':
                self._string()
            else:
                self._plain()
            while self._within and self._next() == self._within[-1].closing:
                self.at += 1
                self._within.pop()
            if not self._within:
                return True
            self._pass(",")
            self._go_on()

    def steps(self) -> tuple[Step, ...]:
        """The steps to where the walk is."""
        return tuple(container.step for container in self._within)

    def _go_on(self) -> None:
        """Go on to the next item, or to the value of the next name."""
        container = self._within[-1]
        if isinstance(container.step, int):
            container.step += 1
            return
        if self._next() != '"':
            raise JSONDecodeError("Expecting property name enclosed in double quotes", self._text, self.at)
        start = self.at
        container.step = self._string()
        first = container.names.setdefault(container.step, start)
        if first != start and len(self.found) < MAX_REPORTED:  # to word a position takes a look at all before it
            self._add_flaw(f"is given twice: in {self._position(first)} and in {self._position(start)}")
        self._pass(":")

    def _string(self) -> str:
        value: str
        value, self.at = scanstring(self._text, self.at + 1)
        return value

    def _plain(self) -> None:
        match = _PLAIN.match(self._text, self.at)
        if match is None:
            raise JSONDecodeError("Expecting value", self._text, self.at)
        self.at = match.end()
        whole, fraction, exponent = match.groups()
        if not self._numbers:
            return
        if whole is None:
            if match[0] not in ("true", "false", "null"):
                self._add_flaw(f"is {match[0]}, which is no value of JSON")
        elif is_too_large(match[0], is_whole=not (fraction or exponent)):
            self._add_flaw(f"is a number that is too large: {match[0][:20]}…")

    def _next(self) -> str:
        """The next character that is not blank; empty at the end."""
        self.at = _BLANKS.match(self._text, self.at).end()  # type: ignore[union-attr]  # it may match nothing
        return self._text[self.at : self.at + 1]

    def _pass(self, expected: str) -> None:
        if self._next() != expected:
            raise JSONDecodeError(f"Expecting {expected!r} delimiter", self._text, self.at)
        self.at += 1

    def _add_flaw(self, reason: str) -> None:
        if len(self.found) < MAX_REPORTED:
            self.found.append(Flaw(self.steps(), reason))
