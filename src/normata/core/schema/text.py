"""Texts in the forms for comparing, sorting, searching and slugs."""

from __future__ import annotations

import re
import unicodedata

# Invisible characters, for a pattern: control characters, line breaks, and those that change the direction of text.
UNSEEN = r"\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
# Characters that are part of visible text, such as joiners, but show nothing alone.
BLANK = r"\xad\u115f\u1160\u200b-\u200d\u2060\u2800\u3164\ufeff"
_UNSEEN = re.compile(f"[{UNSEEN}]")
_SPACE = re.compile(rf"[\s{UNSEEN}{BLANK}]+")
_NO_SLUG = re.compile(r"[^a-z0-9]+")
_DIGITS = re.compile(r"[0-9]+")


def plain(value: str) -> str:
    """A name on one line, without invisible characters, which could make it look like another one."""
    return " ".join(_UNSEEN.sub(lambda found: " " if found[0].isspace() else "", value).split())


def slugify(*parts: str) -> str:
    """The parts as one slug: ASCII letters and digits with single hyphens, at most 80 characters, never empty."""
    plain = unicodedata.normalize("NFKD", " ".join(parts).casefold()).encode("ascii", "ignore").decode()
    return _NO_SLUG.sub("-", plain)[:80].strip("-") or "untitled"


def search_text(*parts: str | None) -> str:
    """The text for searches: folded for case and width in every script, one part per line.

    SQLite's ``lower`` knows ASCII only, and no two databases fold alike, so the folding is done here and stored.
    """
    return fold("\n".join(part for part in parts if part))


def fold(value: str) -> str:
    """``value`` in the form in which texts that look the same to a reader are equal (NFKC, case folded)."""
    if value.isascii():  # ASCII is normalized already, except for case
        return value.lower()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", value).casefold())


def same_wording(one: str | None, other: str | None) -> bool:
    """Whether two texts differ by white space and letter case at most.

    What shows nothing, such as a soft hyphen, counts as white space. Characters that Unicode declares to be the same,
    composed or not, are the same here. Null is an empty text.
    """
    return one == other or _wording(one or "") == _wording(other or "")


def _wording(value: str) -> str:
    caseless = unicodedata.normalize("NFD", unicodedata.normalize("NFD", value).casefold())
    return _SPACE.sub("", caseless)


def natural_key(value: str) -> str:
    """A key whose code-point order is the natural order of ``value``: A.5.2 comes before A.5.10.

    Each run of digits is written as its length and itself, so that the longer number sorts later; at most 999 digits
    count. Equal keys (A.5.02 and A.5.2) are ordered by the end of the sort order.
    """

    def number(match: re.Match[str]) -> str:
        digits = match.group().lstrip("0")[:999] or "0"
        return f"{len(digits):03}{digits}"

    return _DIGITS.sub(number, fold(value))


# The first characters of formulas, and full-width forms that some spreadsheets treat alike.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def harmless(cell: str) -> str:
    """A cell of a table that no spreadsheet interprets as a formula: with a leading apostrophe, as OWASP recommends."""
    return f"'{cell}" if cell.startswith(FORMULA) else cell


def guarded(cell: str) -> str:
    """:func:`harmless`, and such that :func:`unguarded` has the cell back: "" and '… get an apostrophe, too."""
    return f"'{cell}" if not cell or cell.startswith(("'", *FORMULA)) else cell


def unguarded(cell: str) -> str:
    """A cell of a table without the apostrophe that :func:`guarded` puts in front; that of other texts stays."""
    rest = cell[1:]
    return rest if cell.startswith("'") and (not rest or rest.startswith(("'", *FORMULA))) else cell
