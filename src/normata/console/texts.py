"""All texts of the console, from one file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from markupsafe import Markup

_ENGLISH = Path(__file__).with_name("texts.en.json")


def text(key: str, /, **values: object) -> str:
    """The text ``key``, with ``{name}`` replaced by the value of that name. Raises KeyError for an unknown key.

    If a value is markup, the result is markup, and the other values are escaped.
    """
    sentence = english()[key]
    if "{" not in sentence:
        return sentence
    marked = any(isinstance(value, Markup) for value in values.values())
    return Markup(sentence).format(**values) if marked else sentence.format(**values)  # noqa: S704 - our own text


def counted(key: str, count: int, /, **values: object) -> str:
    """The text ``key`` for a count: ``key.one`` for 1 if it exists, else ``key``."""
    chosen = f"{key}.one" if count == 1 and has_text(f"{key}.one") else key
    return text(chosen, count=f"{count:,}", **values)


def has_text(key: str) -> bool:
    """Whether there is a text ``key``."""
    return key in english()


def refusal(cause: str) -> str:
    """The message for a refused sign-in, by its cause."""
    texts = english()
    return texts.get(f"refused.{cause}", texts["refused.other"])


@cache
def english() -> Mapping[str, str]:
    """All texts by key."""
    found: dict[str, str] = json.loads(_ENGLISH.read_text("utf-8"))
    return found
