"""Markdown (CommonMark) that people write, as safe HTML."""

from __future__ import annotations

from collections import OrderedDict
from hashlib import sha256
from threading import Lock

import nh3
from markupsafe import Markup

from normata.console.texts import text
from normata.core.documents.markdown_source import LONGEST, TooSlow, as_html

_CACHED = 8_000_000  # characters of markup in the cache of a process
_TAGS = (
    *("a", "blockquote", "br", "code", "em", "hr", "p", "pre", "s", "strong"),
    *("h3", "h4", "h5", "h6", "li", "ol", "ul"),
    *("table", "tbody", "td", "th", "thead", "tr"),
)
_ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}}


class _Cache:
    """The markup of the texts that were rendered last, by hash."""

    def __init__(self) -> None:
        self._lock = Lock()  # long texts are rendered on threads
        self._found: OrderedDict[bytes, Markup] = OrderedDict()
        self._size = 0

    def get(self, key: bytes) -> Markup | None:
        """The markup of a text; null if it is not cached."""
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
            return self._found.get(key)

    def put(self, key: bytes, markup: Markup) -> None:
        """Cache the markup of a text, and drop what has not been used for longest."""
        with self._lock:
            if key not in self._found:
                self._found[key] = markup
                self._size += len(markup)
            while self._size > _CACHED:
                self._size -= len(self._found.popitem(last=False)[1])


_rendered = _Cache()


def markdown(written: str) -> Markup:
    """The markup of a text.

    HTML and entities are shown as typed, so that readers see what was written. Images are not loaded, because they
    would come from other hosts. Headings begin below those of the page. As a second defence, nh3 removes all but the
    allowed elements. A text that is too long, or too slow to render, is shown as plain text with a note.
    """
    if len(written) > LONGEST:
        return _plain(written)
    key = sha256(written.encode(errors="surrogatepass")).digest()
    found = _rendered.get(key)
    if found is None:
        found = _render(written)
        _rendered.put(key, found)
    return found


def _plain(written: str) -> Markup:
    note = text("record.markdown.plain")
    return Markup('<p class="gap small">{}</p><p class="prose">{}</p>').format(note, written)


def _render(written: str) -> Markup:
    try:
        rendered = as_html(written)
    except TooSlow:
        return _plain(written)
    clean = nh3.clean(
        rendered,
        tags=set(_TAGS),
        attributes={tag: set(names) for tag, names in _ATTRIBUTES.items()},
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )
    return Markup(clean)  # noqa: S704 - sanitized above
