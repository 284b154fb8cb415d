"""The paragraphs of a text, and what differs between those of two versions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any, Literal

from pydantic import Field

from normata.core.changes.difference import canonical
from normata.core.schema.wire import Wire

_MOST = 2_000  # paragraphs that are compared; comparing takes time with the square of their number


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


def changes_between(before: Any, after: Any) -> list[dict[str, Any]]:
    """The members of :class:`ParagraphChange` of two texts, in reading order. Very long ones count as replaced."""
    old, new = paragraphs(before), paragraphs(after)
    if len(old) > _MOST or len(new) > _MOST:
        return [*_each("REMOVED", old, 0), *_each("ADDED", new, 0)] if old != new else []
    found: list[dict[str, Any]] = []
    for what, old_from, old_to, new_from, new_to in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if what != "equal":
            found += _each("REMOVED", old[old_from:old_to], old_from)
            found += _each("ADDED", new[new_from:new_to], new_from)
    return found


def _each(change: str, found: Sequence[str], start: int) -> list[dict[str, Any]]:
    return [{"change": change, "paragraph": start + place, "text": text} for place, text in enumerate(found, 1)]
