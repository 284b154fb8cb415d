"""The texts of notifications: a JSON object of keys and texts, in which ``{label}`` stands for a parameter."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from starlette.routing import Route

from normata.core.http.content import Content
from normata.core.http.pages import content_page

ENGLISH = Path(__file__).parent / "texts.en.json"


def sentence(key: str | None, params: Mapping[str, Any]) -> str | None:
    """The English text of ``key`` with its parameters filled in; null if there is none of this key.

    A missing parameter is not replaced.
    """
    text = _english().get(key or "")
    return text and re.sub(r"\{(\w+)\}", lambda found: str(params.get(found[1], found[0])), text)


@cache
def _english() -> Mapping[str, str]:
    found: dict[str, str] = json.loads(ENGLISH.read_text("utf-8"))
    return found


_AN_HOUR = b"public, max-age=3600"


def routes() -> Iterator[Route]:
    """The route of /notifications/texts/, which needs no token."""
    content = Content(ENGLISH.read_bytes(), cache_control=_AN_HOUR, vary=b"accept-encoding")
    yield content_page("/notifications/texts/", lambda _root: content)
