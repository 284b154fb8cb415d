"""The paragraphs of a text, and what differs between those of two versions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any, Literal

from pydantic import Field

from normata.core.changes.difference import canonical
from normata.core.schema.wire import Wire

# Paragraphs from the first to the last that differs. To compare them takes time with the cube of their number where the
# same ones come again and again: 0.1 s for these. Where there are more, all of them count as replaced.
_MOST = 300


class ParagraphChange(Wire):
    """A paragraph that one version has and the one before has not, or the other way round."""

    change: Literal["ADDED", "REMOVED"] = Field(description="`ADDED` by the version, or `REMOVED` by it.")
    paragraph: int = Field(
        description="Its place, from 1: in the version if it was added, in the one before if it was removed."
    )
    text: str = Field(description="The paragraph.")


def paragraphs(content: Any) -> list[str]:
    """The paragraphs of a text, which blank lines part; each text of any other document is one."""
    if isinstance(content, str):
        return [found for part in re.split(r"\n[ \t]*\n", content.replace("\r\n", "\n")) if (found := part.strip())]
    return list(_texts(content))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)
    elif value is not None:
        yield value if isinstance(value, str) else canonical(value)


class Comparison:
    """Two texts that are to be compared. ``cost`` grows with the time that it takes."""

    def __init__(self, before: Any, after: Any) -> None:
        self._old, self._new = paragraphs(before), paragraphs(after)
        self._start = _equal(self._old, self._new)
        most = min(len(self._old), len(self._new)) - self._start
        self._end = min(most, _equal(self._old[::-1], self._new[::-1]))

    @property
    def cost(self) -> int:
        """How many pairs of paragraphs there are to compare."""
        old, new = self._middle
        return len(old) * len(new) if self._is_short else 0

    @property
    def changes(self) -> list[dict[str, Any]]:
        """The members of :class:`ParagraphChange`, in reading order."""
        old, new = self._middle
        if not self._is_short:
            return [*_each("REMOVED", old, self._start), *_each("ADDED", new, self._start)]
        found: list[dict[str, Any]] = []
        for what, old_from, old_to, new_from, new_to in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if what != "equal":
                found += _each("REMOVED", old[old_from:old_to], self._start + old_from)
                found += _each("ADDED", new[new_from:new_to], self._start + new_from)
        return found

    @property
    def _middle(self) -> tuple[Sequence[str], Sequence[str]]:
        old_end, new_end = len(self._old) - self._end, len(self._new) - self._end
        return self._old[self._start : old_end], self._new[self._start : new_end]

    @property
    def _is_short(self) -> bool:
        return max(map(len, self._middle)) <= _MOST


def _equal(old: Sequence[str], new: Sequence[str]) -> int:
    """How many paragraphs two texts have in common at their beginning."""
    return next(
        (place for place, (one, other) in enumerate(zip(old, new, strict=False)) if one != other),
        min(len(old), len(new)),
    )


def _each(change: str, found: Sequence[str], start: int) -> list[dict[str, Any]]:
    return [{"change": change, "paragraph": start + place, "text": text} for place, text in enumerate(found, 1)]
