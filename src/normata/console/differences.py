"""The difference of two texts, as unchanged, added and removed pieces, for people."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import groupby
from operator import itemgetter
from typing import Literal, NamedTuple

# Comparing takes time with the square of the length. Above the first limit lines are compared in place of words; above
# the second, the text counts as replaced.
_MOST_WORDS, _MOST_LINES = 600, 300
_AROUND = 60  # unchanged characters shown on each side of a change
_MOST_SHOWN = 1_500  # characters of one piece

Did = Literal["keep", "add", "drop", "skip"]


class Piece(NamedTuple):
    """A part of a text: what was done to it, and its words, which are empty for a skipped part."""

    did: Did
    words: str


def difference(before: str, after: str) -> list[Piece]:
    """The changes between two texts, with some unchanged words around them."""
    return list(_shortened(_joined(_compared(_words(before), _words(after)))))


def difference_as_read(before: str, after: str) -> list[Piece]:
    """The changes between two Markdown texts, without the marks that no reader sees, unless these alone changed."""
    read = _MARKS.sub("", before), _MARKS.sub("", after)
    return difference(*(read if read[0] != read[1] else (before, after)))


def difference_in_full(before: str, after: str) -> list[Piece]:
    """The same with all unchanged words."""
    return list(_joined(_compared(_words(_MARKS.sub("", before)), _words(_MARKS.sub("", after)))))


# Of headings, quotes, strong words and code.
_MARKS = re.compile(r"^ {0,3}(?:#{1,6}[ \t]+|>[ \t]?)|[ \t]+#+[ \t]*$|\*\*|`", re.MULTILINE)


def _words(text: str) -> list[str]:
    return re.findall(r"\s+|\w+|[^\w\s]", text)


def _compared(before: Sequence[str], after: Sequence[str]) -> Iterator[Piece]:
    """The pieces of two sequences. Equal ends are not compared, because most changes are small."""
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    yield Piece("keep", "".join(before[:start]))
    yield from _middle(before[start : len(before) - end], after[start : len(after) - end])
    yield Piece("keep", "".join(before[len(before) - end :]))


def _middle(before: Sequence[str], after: Sequence[str]) -> Iterator[Piece]:
    if len(before) + len(after) <= _MOST_WORDS:
        yield from _matched(before, after)
        return
    old, new = ("".join(words).splitlines(keepends=True) for words in (before, after))
    yield from _matched(old, new) if len(old) + len(new) <= _MOST_LINES else _replaced(before, after)


def _matched(before: Sequence[str], after: Sequence[str]) -> Iterator[Piece]:
    for did, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        yield from [Piece("keep", "".join(before[i:j]))] if did == "equal" else _replaced(before[i:j], after[k:m])


def _replaced(before: Sequence[str], after: Sequence[str]) -> Iterator[Piece]:
    yield Piece("drop", "".join(before))
    yield Piece("add", "".join(after))


def _joined(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """The pieces without empty ones, and with neighbours of the same kind merged."""
    for did, found in groupby((piece for piece in pieces if piece.words), key=itemgetter(0)):
        yield Piece(did, "".join(piece.words for piece in found))


def _shortened(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """The pieces with only the ends of unchanged ones, and only the beginning of very long ones."""
    found = list(pieces)
    for number, (did, words) in enumerate(found):
        if did != "keep":
            yield Piece(did, words if len(words) <= _MOST_SHOWN else f"{words[:_MOST_SHOWN]}…")
            continue
        head = words[:_AROUND] if number else ""
        tail = words[-_AROUND:] if number + 1 < len(found) else ""
        if len(words) <= len(head) + len(tail):
            yield Piece(did, words)
            continue
        if head:
            yield Piece(did, head)
        yield Piece("skip", "")
        if tail:
            yield Piece(did, tail)
