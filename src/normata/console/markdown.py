"""Texts that people write in Markdown (CommonMark), as markup that is safe to show."""

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

_FIRST_HEADING, _LAST_HEADING = 3, 6  # of a text: the page itself has the levels above
_LONGEST = 100_000  # characters: what is longer is shown as it is
_SECONDS = 0.05  # of a processor that a text may take
_ORDINARY = 12_000  # characters: a text of so many is rendered on the busiest machine, as long as its steps are few
_PIECES, _LOOKS = 1, 4  # for each character: the pieces of a text, and the looks that it takes to pair its emphasis
_CACHED = 8_000_000  # characters of markup that a process has in memory
_TAGS = (
    *("a", "blockquote", "br", "code", "em", "hr", "p", "pre", "s", "strong"),
    *("h3", "h4", "h5", "h6", "li", "ol", "ul"),
    *("table", "tbody", "td", "th", "thead", "tr"),
)
_ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}}


class _TooSlow(Exception):
    """A text takes longer to render than it may."""


class _Cache:
    """The markup of the texts that were rendered last, by their hashes."""

    def __init__(self) -> None:
        self._lock = Lock()  # long texts are rendered on threads
        self._found: OrderedDict[bytes, Markup] = OrderedDict()
        self._size = 0

    def get(self, key: bytes) -> Markup | None:
        """The markup of a text, if it is there."""
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
            return self._found.get(key)

    def put(self, key: bytes, markup: Markup) -> None:
        """Store the markup of a text, and forget what has not been used for longest."""
        with self._lock:
            if key not in self._found:
                self._found[key] = markup
                self._size += len(markup)
            while self._size > _CACHED:
                self._size -= len(self._found.popitem(last=False)[1])


_rendered = _Cache()


def markdown(written: str) -> Markup:
    """The markup of a text.

    HTML in it is text, and so are its entities: what somebody writes is what everybody reads. There are no pictures,
    which would come from elsewhere. Headings begin below those of the page. What the renderer should not have let
    through, nh3 takes out. A text that is long, or was written to take long, is shown as it is, with a note.
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
    return Markup(clean)  # noqa: S704 - of what has just been cleaned


_BUDGET = "budget"  # where the environment of a text has its own


class _Budget:
    """The time that a text has: of this thread, so that waiting for a processor does not count.

    A busy machine makes that time longer, too. So a text that people may have written has steps that do not count.
    """

    def __init__(self, written: str) -> None:
        length = len(written) if len(written) <= _ORDINARY else 0
        self._end = time.thread_time() + _SECONDS
        self._pieces, self._looks = _PIECES * length, _LOOKS * length

    def take_piece(self) -> None:
        """Count a piece of the text. Raises _TooSlow where time is used up, and there are more than people write."""
        self._pieces -= 1
        if self._pieces < 0:
            self._require_time()

    def take_look(self) -> None:
        """Count a look at a mark of emphasis. Raises what :meth:`take_piece` raises."""
        self._looks -= 1
        if self._looks < 0:
            self._require_time()

    def _require_time(self) -> None:
        if time.thread_time() > self._end:
            raise _TooSlow


class _Delimiters(list[Delimiter]):
    """Marks of emphasis. To pair them may take the square of their number, so each look at one is a step."""

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
    }  # also where one of these looks for its end
    made.block.ruler.before("table", "time", _bound_block, ends)
    made.inline.ruler.before("text", "time", _bound_inline)
    made.inline.ruler2.before("balance_pairs", "time", _bound_delimiters)
    made.core.ruler.push("headings_of_a_page", lambda state: _lower_headings(state.tokens))
    return made


def _lower_headings(tokens: Sequence[Token]) -> None:
    """Have the highest heading of a text, whichever it is, begin where the page leaves off."""
    headings = [token for token in tokens if token.type in ("heading_open", "heading_close")]
    highest = min((int(token.tag[1:]) for token in headings), default=1)
    for token in headings:
        token.tag = f"h{min(int(token.tag[1:]) - highest + _FIRST_HEADING, _LAST_HEADING)}"
