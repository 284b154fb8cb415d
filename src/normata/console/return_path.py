"""Where a person goes after signing in: a path of this instance, and nowhere else."""

from __future__ import annotations

import re
from urllib.parse import unquote

_PATH = re.compile(r"/(app|account)/[A-Za-z0-9._~/%-]*(\?[A-Za-z0-9._~/%=&+,:@-]*)?", re.ASCII)
_LONGEST = 1_000


def safe_path(text: str) -> str:
    """``text`` where it is a path under ``/app/`` or ``/account/``, with or without a query; else empty.

    Whatever a browser might read as another host or leave the two folders with is refused: two slashes, backslashes,
    steps upwards, and the same in escapes. What is allowed is listed; a scheme or a blank is not among it.
    """
    if len(text) > _LONGEST or _PATH.fullmatch(text) is None:
        return ""
    path = text.partition("?")[0]
    for _ in range(2):  # also what was escaped twice
        path = unquote(path)
    if "//" in path or "\\" in path or not path.isprintable() or any(part in (".", "..") for part in path.split("/")):
        return ""
    return text
