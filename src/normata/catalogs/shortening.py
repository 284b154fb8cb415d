"""Shortening texts to one line, within the length of names."""

from __future__ import annotations

LONGEST_NAME = 500
LONGEST_SHORT_TEXT = 1_000


def one_line(text: str, longest: int) -> str:
    """The text on one line, cut between words, with an ellipsis where it was cut."""
    line = " ".join(text.split())
    if len(line) <= longest:
        return line
    cut = line[: longest - 1]
    if line[longest - 1] != " ":  # the cut is within a word; only a single word that fills the line is cut anyway
        cut = cut.rpartition(" ")[0] or cut
    return cut.rstrip(" .:;,") + "…"
