"""Markdown (CommonMark) that people write, read within bounds: some texts take time with the square of their length."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.ruler import RuleOptionsType
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline.state_inline import Delimiter
from markdown_it.token import Token

LONGEST = 100_000  # characters; a longer text is not read as Markdown
FIRST_HEADING, _LAST_HEADING = 3, 6  # of a text; the page has the levels above
_SECONDS = 0.05  # of processor time for a text
_ORDINARY = 12_000  # characters; a text up to this length may take longer, if its steps are few
_PIECES, _LOOKS = 1, 4  # allowed per character without a look at the time: inline pieces, and steps that pair emphasis


class TooSlow(Exception):
    """A text takes too long to read."""


def as_html(written: str) -> str:
    """A text as HTML that is not safe yet. HTML and entities in it are as typed. Raises TooSlow."""
    made: str = _renderer().render(written, {_BUDGET: _Budget(written)})
    return made


def as_tokens(written: str) -> Sequence[Token]:
    """The tokens of a text, those of its lines with children. Raises TooSlow."""
    return _renderer().parse(written, {_BUDGET: _Budget(written)})


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
        """Count a piece. Raises TooSlow if the time is used up and the text has more pieces than an ordinary one."""
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
            raise TooSlow


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
        token.tag = f"h{min(int(token.tag[1:]) - highest + FIRST_HEADING, _LAST_HEADING)}"
