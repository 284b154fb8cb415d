"""The texts of notifications: a JSON object of each key with its text, in which ``{label}`` stands for a parameter."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

ENGLISH = Path(__file__).parent / "texts.en.json"


def sentence(key: str | None, params: Mapping[str, Any]) -> str | None:
    """The English text of ``key`` with its parameters filled in; null where there is none of this key.

    A parameter that is missing stays as it stands in the text.
    """
    text = _english().get(key or "")
    return text and re.sub(r"\{(\w+)\}", lambda found: str(params.get(found[1], found[0])), text)


@cache
def _english() -> Mapping[str, str]:
    found: dict[str, str] = json.loads(ENGLISH.read_text("utf-8"))
    return found
