"""Styles and scripts, whose addresses contain a hash of their content, so that browsers can cache them for ever."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path

from starlette.routing import Route

from normata.core.http.content import Content
from normata.core.http.pages import content_page

FOLDER = Path(__file__).with_name("static")
_PREFIX = "/static/"
_FOR_EVER = b"public, max-age=31536000, immutable"  # a year
_TYPES = {".css": b"text/css; charset=utf-8", ".js": b"text/javascript; charset=utf-8", ".svg": b"image/svg+xml"}


class Assets:
    """The files of the folder ``static``, which are read once.

    ``normata.css`` is at ``/static/normata.3f2a9c1b8d07.css/``. A new content has a new address, so that no page can
    get an old style sheet.
    """

    def __init__(self) -> None:
        self._paths: dict[str, str] = {}
        self._contents: dict[str, Content] = {}
        for file in sorted(FOLDER.iterdir()):
            body = file.read_bytes()
            path = f"{_PREFIX}{file.stem}.{sha256(body).hexdigest()[:12]}{file.suffix}"
            self._paths[file.name] = path
            self._contents[path] = Content(body, _TYPES[file.suffix], _FOR_EVER, vary=b"accept-encoding")

    def path(self, name: str) -> str:
        """The path of a file. Raises KeyError if there is none."""
        return self._paths[name]

    def routes(self) -> Iterator[Route]:
        """A route for each file."""
        for path, content in self._contents.items():
            yield content_page(f"{path}/", partial(_same, content))


def _same(content: Content, _prefix: str) -> Content:
    return content
