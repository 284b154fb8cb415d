"""The path to return to after signing in: one of this instance only."""

from __future__ import annotations

import re
from urllib.parse import unquote

_PATH = re.compile(r"/(app|account)/[A-Za-z0-9._~/%-]*(\?[A-Za-z0-9._~/%=&+,:@-]*)?", re.ASCII)
_LONGEST = 1_000


def safe_path(text: str) -> str:
    """``text`` if it is a path under ``/app/`` or ``/account/``, with or without a query; else an empty string.

    Refused is everything that a browser might take for another host or for a path elsewhere: double slashes,
    backslashes, ``..``, and their escapes. The allowed characters are listed, without colon and blank.
    """
    if len(text) > _LONGEST or _PATH.fullmatch(text) is None:
        return ""
    path = text.partition("?")[0]
    for _ in range(2):  # text may be escaped twice
        path = unquote(path)
    if "//" in path or "\\" in path or not path.isprintable() or any(part in (".", "..") for part in path.split("/")):
        return ""
    return text
