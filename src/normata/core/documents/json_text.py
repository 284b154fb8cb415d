"""Strict JSON (RFC 8259): faults that Python's decoder accepts are marked, and found with their places.

The decoder drops repeated names, and its hooks do not know the place in the document. So they leave a mark in the
value, and a walk through the value finds the marks. The walk is needed only if there are marks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from json import JSONDecoder
from typing import Any, TypeAlias

from normata.core.changes.source import pointer

Step: TypeAlias = str | int

MOST_FLAWS = 100  # of one text
_MAX_DIGITS = 4_300  # of an integer; Python converts no more
_SURROGATE = re.compile("[\ud800-\udfff]")  # half of a pair: JSON can escape one, but no encoding can represent it


@dataclass(frozen=True, slots=True)
class Flaw:
    """A fault of the value at these steps."""

    steps: tuple[Step, ...]
    reason: str


def place(*steps: Step) -> str:
    """The JSON Pointer of these steps, safe to print."""
    return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", pointer(*steps))


@dataclass(frozen=True, slots=True)
class _Wrong:
    """Represents a value that JSON does not have or Python cannot hold."""

    reason: str


class _Repeating(dict[str, object]):
    """An object that repeats names: of each, it has the last value."""

    names: tuple[str, ...] = ()


class StrictDecoder(JSONDecoder):
    """Decodes JSON. ``is_sound`` is true if nothing was marked since it was last set."""

    def __init__(self, *, exact_numbers: bool = False) -> None:
        """With ``exact_numbers``, numbers remain texts."""
        self.is_sound = True
        super().__init__(
            object_pairs_hook=self._object,
            parse_int=str if exact_numbers else self._whole,
            parse_float=str if exact_numbers else self._fraction,
            parse_constant=str if exact_numbers else self._constant,
        )

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(pairs)
        if len(values) == len(pairs):
            return values
        self.is_sound = False
        marked = _Repeating(values)
        names = [name for name, _ in pairs]
        for name in values:
            names.remove(name)
        marked.names = tuple(dict.fromkeys(names))
        return marked

    def _whole(self, number: str) -> object:
        return self._too_large(number) if len(number.lstrip("-")) > _MAX_DIGITS else int(number)

    def _fraction(self, number: str) -> object:
        value = float(number)
        return self._too_large(number) if math.isinf(value) else value

    def _constant(self, name: str) -> object:
        self.is_sound = False
        return _Wrong(f"is {name}, which is no value of JSON")

    def _too_large(self, number: str) -> _Wrong:
        self.is_sound = False
        return _Wrong(f"is a number that is too large: {number[:20]}…")


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules for a decoded value.

    It may have up to ``levels`` levels; deeper nesting is a flaw of the value at the first ``faulty`` steps. Texts must
    not have ``unusable`` characters, for which ``reason`` is the message.
    """

    levels: int
    faulty: int
    unusable: re.Pattern[str] = _SURROGATE
    reason: str = "must not hold half of a surrogate pair"


def flaws(value: object, rules: Rules) -> list[Flaw]:
    """The first hundred flaws of a decoded value. A value in several places, by a YAML alias, is reported once."""
    return list(dict.fromkeys(islice(_walk(value, rules, (), set()), MOST_FLAWS)))


def _walk(value: object, rules: Rules, steps: tuple[Step, ...], seen: set[int]) -> Iterator[Flaw]:
    if isinstance(value, str):
        if rules.unusable.search(value):
            yield Flaw(steps, rules.reason)
    elif isinstance(value, _Wrong):
        yield Flaw(steps, value.reason)
    elif isinstance(value, (dict, list)) and id(value) not in seen:
        seen.add(id(value))
        if len(steps) == rules.levels:
            yield Flaw(steps[: rules.faulty], f"is nested deeper than {rules.levels - rules.faulty} levels")
            return
        if isinstance(value, _Repeating):
            yield from (Flaw((*steps, name), "is given twice") for name in value.names)
        if isinstance(value, dict) and any(map(rules.unusable.search, value)):
            yield Flaw(steps, rules.reason)
        for step, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _walk(inner, rules, (*steps, step), seen)


def mended(value: Any, levels: int) -> Any:
    """A copy of a decoded value without its flaws, so that the rest of it can be checked."""
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, dict):
        return {mended(name, 0): mended(inner, levels - 1) for name, inner in value.items()} if levels else None
    if isinstance(value, list):
        return [mended(inner, levels - 1) for inner in value] if levels else None
    return None if isinstance(value, _Wrong) else value
