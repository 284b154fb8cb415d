"""Answers of a bounded size: long texts and lists are cut, and the cuts say how to read on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from normata.core.schema.wire import encode

MOST = 40_000  # bytes of an answer as JSON
# How many characters of a text and how many items of a list remain; further down, less.
_STEPS = ((4_000, 100), (2_000, 50), (1_000, 25), (400, 15), (200, 10), (100, 5), (60, 3), (40, 1))
_DEEPEST = 8


class Cut(NamedTuple):
    """A text or list that was cut: its place as a JSON Pointer, how much of it is there, from where on, and of what."""

    at: str
    start: int
    shown: int
    of: int

    def as_json(self) -> dict[str, Any]:
        """The cut, as answers have it, with the place to read on from."""
        return {"at": self.at, "from": self.start, "shown": self.shown, "of": self.of, "next": self.start + self.shown}


class NoSuchPlace(ValueError):
    """An answer has nothing at a JSON Pointer that can be read in parts."""


def part_of(content: Any, at: str, start: int) -> Any:
    """What is at a JSON Pointer (RFC 6901), without its first ``start`` characters or items. Raises NoSuchPlace."""
    found = content
    for step in at.split("/")[1:] if at else ():
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and name in found:
            found = found[name]
        elif isinstance(found, list) and name.isdecimal() and int(name[:9]) < len(found):
            found = found[int(name[:9])]
        else:
            raise NoSuchPlace(at)
    if start and not isinstance(found, str | list):
        raise NoSuchPlace(at)
    return found[start:] if start else found


def bounded(content: Any, *, at: str = "", start: int = 0, most: int = MOST) -> tuple[Any, Sequence[Cut]]:
    """Content with at most ``most`` bytes, and what was cut. It was at ``at`` in an answer, without ``start`` items."""
    if len(encode(content)) <= most:
        return content, ()
    for characters, items in _STEPS:
        cutter = _Cutter(characters, items, [])
        found = cutter.cut(content, at, start, 0)
        if len(encode(found)) <= most:
            return found, cutter.cuts
    if isinstance(content, dict):  # with more members than anything of ours has
        return dict.fromkeys(list(content)[:50]), [Cut(at, 0, 0, len(content))]
    return None, [Cut(at, start, 0, len(content))]


class _Cutter(NamedTuple):
    """Cuts texts and lists, and notes what it has cut."""

    characters: int
    items: int
    cuts: list[Cut]

    def cut(self, content: Any, at: str, start: int, depth: int) -> Any:
        if isinstance(content, str):
            most = self.characters if depth else self.characters * 8  # what is read alone may fill the answer
            if len(content) > most:
                self.cuts.append(Cut(at, start, most, start + len(content)))
            return content[:most]
        if isinstance(content, list):
            most = self.items if depth < _DEEPEST else 0
            if len(content) > most:
                self.cuts.append(Cut(at, start, most, start + len(content)))
            return [self.cut(one, f"{at}/{start + number}", 0, depth + 1) for number, one in enumerate(content[:most])]
        if isinstance(content, dict):
            return {name: self.cut(value, f"{at}/{_escaped(name)}", 0, depth + 1) for name, value in content.items()}
        return content


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
