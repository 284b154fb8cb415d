"""Every sentence of the console, in one file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from markupsafe import Markup

_ENGLISH = Path(__file__).with_name("texts.en.json")


def text(key: str, /, **values: object) -> str:
    """The sentence ``key``, with ``{name}`` replaced by the value of this name. Raises KeyError for an unknown one.

    It is markup where a value is: then the other values are escaped.
    """
    sentence = english()[key]
    marked = any(isinstance(value, Markup) for value in values.values())
    return Markup(sentence).format(**values) if marked else sentence.format(**values)  # noqa: S704 - of our own making


def counted(key: str, count: int, /, **values: object) -> str:
    """The sentence ``key`` for so many things: ``key.one`` for one of them, where there is such a sentence."""
    chosen = f"{key}.one" if count == 1 and has_text(f"{key}.one") else key
    return text(chosen, count=f"{count:,}", **values)


def has_text(key: str) -> bool:
    """Whether there is a sentence ``key``."""
    return key in english()


def refusal(cause: str) -> str:
    """What a person reads of a refused sign-in."""
    texts = english()
    return texts.get(f"refused.{cause}", texts["refused.other"])


@cache
def english() -> Mapping[str, str]:
    """All of them, by their keys."""
    found: dict[str, str] = json.loads(_ENGLISH.read_text("utf-8"))
    return found
