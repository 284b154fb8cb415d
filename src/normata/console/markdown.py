"""Markdown (CommonMark) that people write, as safe HTML."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from functools import cache
from hashlib import sha256
from threading import Lock
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.ruler import RuleOptionsType
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline.state_inline import Delimiter
from markdown_it.token import Token
from markupsafe import Markup

from normata.console.texts import text

_FIRST_HEADING, _LAST_HEADING = 3, 6  # of a text; the page has the levels above
_LONGEST = 100_000  # characters; a longer text is shown as plain text
_SECONDS = 0.05  # of processor time for a text
_ORDINARY = 12_000  # characters; a text up to this length may take longer, if its steps are few
_PIECES, _LOOKS = 1, 4  # allowed per character without a look at the time: inline pieces, and steps that pair emphasis
_CACHED = 8_000_000  # characters of markup in the cache of a process
_TAGS = (
    *("a", "blockquote", "br", "code", "em", "hr", "p", "pre", "s", "strong"),
    *("h3", "h4", "h5", "h6", "li", "ol", "ul"),
    *("table", "tbody", "td", "th", "thead", "tr"),
)
_ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}}


class _TooSlow(Exception):
    """A text takes too long to render."""


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
    if len(written) > _LONGEST:
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
        rendered = _renderer().render(written, {_BUDGET: _Budget(written)})
    except _TooSlow:
        return _plain(written)
    clean = nh3.clean(
        rendered,
        tags=set(_TAGS),
        attributes={tag: set(names) for tag, names in _ATTRIBUTES.items()},
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )
    return Markup(clean)  # noqa: S704 - sanitized above


_BUDGET = "budget"  # its key in the environment of markdown-it


class _Budget:
    """The processor time for a text, measured for its thread, so that waiting for a processor does not count.

    Even processor time grows on a busy machine. So as many steps as an ordinary text takes are always allowed.
    """

    def __init__(self, written: str) -> None:
        length = len(written) if len(written) <= _ORDINARY else 0
        self._end = time.thread_time() + _SECONDS
        self._pieces, self._looks = _PIECES * length, _LOOKS * length

    def take_piece(self) -> None:
        """Count a piece. Raises _TooSlow if the time is used up and the text has more pieces than an ordinary one."""
        self._pieces -= 1
        if self._pieces < 0:
            self._require_time()

    def take_look(self) -> None:
        """Count a step of pairing emphasis. Raises what :meth:`take_piece` raises."""
        self._looks -= 1
        if self._looks < 0:
            self._require_time()

    def _require_time(self) -> None:
        if time.thread_time() > self._end:
            raise _TooSlow


class _Delimiters(list[Delimiter]):
    """Marks of emphasis. Pairing them can take the square of their number, so each access counts as a step."""

    def __init__(self, found: Iterable[Delimiter], budget: _Budget) -> None:
        super().__init__(found)
        self._budget = budget

    def __getitem__(self, place: Any) -> Any:
        self._budget.take_look()
        return super().__getitem__(place)


def _bound_block(state: StateBlock, _first: int, _last: int, _silent: bool) -> bool:
    state.env[_BUDGET].take_piece()
    return False


def _bound_inline(state: StateInline, _silent: bool) -> bool:
    state.env[_BUDGET].take_piece()
    return False


def _bound_delimiters(state: StateInline) -> None:
    budget = state.env[_BUDGET]
    state.delimiters = _Delimiters(state.delimiters, budget)
    for meta in state.tokens_meta:
        if meta and "delimiters" in meta:  # those within a link
            meta["delimiters"] = _Delimiters(meta["delimiters"], budget)


@cache
def _renderer() -> MarkdownIt:
    options = {"html": False, "breaks": True, "linkify": False, "typographer": False, "maxNesting": 40}
    made = MarkdownIt("commonmark", options).enable(["table", "strikethrough"]).disable(["image", "entity"])
    ends: RuleOptionsType = {
        "alt": ["paragraph", "reference", "blockquote", "list", "table"]
    }  # the rules that look for the end of such a block call it, too
    made.block.ruler.before("table", "time", _bound_block, ends)
    made.inline.ruler.before("text", "time", _bound_inline)
    made.inline.ruler2.before("balance_pairs", "time", _bound_delimiters)
    made.core.ruler.push("headings_of_a_page", lambda state: _lower_headings(state.tokens))
    return made


def _lower_headings(tokens: Sequence[Token]) -> None:
    """Shift the headings of a text so that the highest one is just below those of the page."""
    headings = [token for token in tokens if token.type in ("heading_open", "heading_close")]
    highest = min((int(token.tag[1:]) for token in headings), default=1)
    for token in headings:
        token.tag = f"h{min(int(token.tag[1:]) - highest + _FIRST_HEADING, _LAST_HEADING)}"
