"""Conditions that a text has the words of a search."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlalchemy import ColumnElement, String, and_, bindparam, func, literal

from normata.core.schema.text import fold

FEW_WORDS = 4  # words in a search; statements for so many are worth caching


def matching(column: ColumnElement[str], search: str, *, is_common: bool = False) -> ColumnElement[bool]:
    """The condition that ``column``, see :func:`normata.core.schema.text.search_text`, has every word of ``search``.

    ``is_common`` is true if many rows are known to have them (:class:`normata.core.db.trigrams.Hits`).
    """
    words = fold(search).split()
    if is_common:
        return and_(True, *(_common(column, literal(word, String())) for word in words))
    return and_(True, *(column.contains(word, autoescape=True) for word in words))


def _common(column: ColumnElement[str], word: ColumnElement[str]) -> ColumnElement[bool]:
    """The condition that ``column`` has a common word.

    PostgreSQL takes every pattern of LIKE for a rare one where row-level security applies, and would read and sort all
    rows. Of this function it expects a third, so it goes through the rows in the order of the list.
    """
    return func.strpos(column, word) > 0


def has_words(column: ColumnElement[str], name: str, number: int, *, is_common: bool = False) -> ColumnElement[bool]:
    """The condition that ``column`` has a number of words, which are parameters: see :func:`words_as`.

    It is for statements that are built once, because large ones take longer to build than to execute. See
    :func:`matching` for ``is_common``.
    """
    if is_common:
        plain = (bindparam(f"{name}_{place}_plain", type_=String()) for place in range(number))
        return and_(True, *(_common(column, word) for word in plain))
    words = (bindparam(f"{name}_{place}", type_=String()) for place in range(number))
    return and_(True, *(column.like(word, escape="/") for word in words))


def words_as(name: str, words: Sequence[str]) -> dict[str, str]:
    """The words of a search as the parameters of :func:`has_words`."""
    patterns = {f"{name}_{place}": f"%{_SPECIAL.sub(_escaped, word)}%" for place, word in enumerate(words)}
    return patterns | {f"{name}_{place}_plain": word for place, word in enumerate(words)}


_SPECIAL = re.compile("[/%_]")  # in a pattern of LIKE


def _escaped(match: re.Match[str]) -> str:
    return f"/{match[0]}"
