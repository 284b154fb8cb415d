"""Texts that people write in Markdown (CommonMark), as markup that is safe to show."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import nh3
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

_FIRST_HEADING, _LAST_HEADING = 3, 6  # of a text: the page itself has the levels above
_LONGEST = 100_000  # characters: what is longer is shown as it is
_TAGS = (
    *("a", "blockquote", "br", "code", "em", "hr", "p", "pre", "s", "strong"),
    *("h3", "h4", "h5", "h6", "li", "ol", "ul"),
    *("table", "tbody", "td", "th", "thead", "tr"),
)
_ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}}


def markdown(written: str) -> Markup:
    """The markup of a text.

    HTML in it is text, and so are its entities: what somebody writes is what everybody reads. There are no pictures,
    which would come from elsewhere. Headings begin below those of the page. What the renderer should not have let
    through, nh3 takes out. It can take seconds for a long text that was written to take long.
    """
    if len(written) > _LONGEST:
        return Markup('<p class="prose">{}</p>').format(written)
    rendered = _renderer().render(written)
    clean = nh3.clean(
        rendered,
        tags=set(_TAGS),
        attributes={tag: set(names) for tag, names in _ATTRIBUTES.items()},
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )
    return Markup(clean)  # noqa: S704 - of what has just been cleaned


@cache
def _renderer() -> MarkdownIt:
    options = {"html": False, "breaks": True, "linkify": False, "typographer": False, "maxNesting": 40}
    made = MarkdownIt("commonmark", options).enable(["table", "strikethrough"]).disable(["image", "entity"])
    made.core.ruler.push("headings_of_a_page", lambda state: _lower_headings(state.tokens))
    return made


def _lower_headings(tokens: Sequence[Token]) -> None:
    """Have the highest heading of a text, whichever it is, begin where the page leaves off."""
    headings = [token for token in tokens if token.type in ("heading_open", "heading_close")]
    highest = min((int(token.tag[1:]) for token in headings), default=1)
    for token in headings:
        token.tag = f"h{min(int(token.tag[1:]) - highest + _FIRST_HEADING, _LAST_HEADING)}"
