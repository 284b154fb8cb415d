"""The text of a policy as a document: a version or the draft, with or without what it changes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

from markupsafe import Markup

from normata.console.app.api_calls import ApiQuery
from normata.console.app.organization_request import OrganizationRequest
from normata.console.differences import Did, Piece, difference_in_full
from normata.console.filters import as_json
from normata.console.markdown import markdown
from normata.core.documents.markdown_source import LONGEST
from normata.policies.paragraphs import paragraphs

DRAFT = "draft"  # in the address, in place of a number
_MOST_COMPARED = 10_000_000  # pairs of characters of paragraphs whose words are compared; the rest counts as replaced


class Passage(NamedTuple):
    """A part of a text, with its ``markup``; or what has become of a paragraph, in ``pieces``.

    ``did`` says whether the whole paragraph was added or removed.
    """

    markup: Markup | None
    pieces: Sequence[Piece] = ()
    did: Did = "keep"


class Paper(NamedTuple):
    """A text of a policy. ``version`` is what is known of it: a version or a draft; null for one with neither.

    ``since`` is the number of the version that it can be compared with, null if there is none. ``passages`` are those
    of the text, or with what differs if ``shows_changes``.
    """

    version: Mapping[str, Any] | None
    is_draft: bool
    is_erased: bool
    since: int | None
    shows_changes: bool
    passages: Sequence[Passage]

    @property
    def number(self) -> int | None:
        """The number of the version; null if it has none yet."""
        return None if self.version is None else self.version["number"]


async def paper_of(
    page_request: OrganizationRequest,
    policy: Mapping[str, Any],
    draft: Mapping[str, Any] | None,
    versions: Sequence[Mapping[str, Any]],
    *,
    is_to_approve: bool,
) -> Paper:
    """The text that the address names by ``version`` and ``show``.

    Without them it is the one in force, but for who is to approve the next one, with what it changes.
    """
    wanted, show = page_request.query.get("version", ""), page_request.query.get("show")
    is_next = draft is not None and policy["status"] not in ("DRAFT", "IN_REVIEW")
    is_draft = draft is not None and (not is_next or wanted == DRAFT or (not wanted and is_to_approve))
    version = draft if is_draft else await _version(page_request, policy, versions, wanted)
    content = policy["content"] if version is None else version["content"]
    is_erased = version is not None and not is_draft and version["erasedAt"] is not None
    since = None
    if is_next if is_draft else version is not None:
        named = {} if is_draft else {"version": str(version["number"])} if version else {}
        found = await page_request.ask_one(ApiQuery("getPolicyChanges", named, policy["id"]))
        is_short = isinstance(content, str) and len(content) <= LONGEST
        since = found["since"] if found["changes"] is not None and is_short else None
    shows_changes = since is not None and show != "text" and (show == "changes" or (is_to_approve and not wanted))
    if shows_changes:
        passages = await asyncio.to_thread(lambda: list(_changed(content, found["changes"])))
    else:
        written = content if isinstance(content, str) else "" if content is None else as_json(content)
        passages = [Passage(await asyncio.to_thread(markdown, written))]
    return Paper(version, is_draft, is_erased, since, shows_changes, passages)


async def _version(
    page_request: OrganizationRequest, policy: Mapping[str, Any], versions: Sequence[Mapping[str, Any]], wanted: str
) -> Mapping[str, Any] | None:
    """The approved version with a number, else the one in force; null if there is none."""
    if wanted.isdecimal() and len(wanted) < 10:
        found = next((one for one in versions if one["number"] == int(wanted)), None)
        if found is None:
            page = await page_request.ask_one(ApiQuery("listPolicyVersions", {"number": wanted}, policy["id"]))
            found = next(iter(page["items"]), None)
        if found is not None:
            return found
    states = ("PUBLISHED", "APPROVED", "RETIRED")
    return next((one for state in states for one in versions if one["state"] == state), None)


def _changed(content: str, changes: Sequence[Mapping[str, Any]]) -> Iterator[Passage]:
    """The text of a version with what was added and removed in it. A paragraph that was reworded is one passage."""
    text = paragraphs(content)
    old = new = at = 0  # paragraphs before and after that were passed, and changes
    left = _MOST_COMPARED
    while at < len(changes):
        same = changes[at]["paragraph"] - 1 - (old if changes[at]["change"] == "REMOVED" else new)
        if same:
            yield Passage(markdown("\n\n".join(text[new : new + same])))
        old, new = old + same, new + same
        dropped = _run(changes[at:], "REMOVED", old)
        added = _run(changes[at + len(dropped) :], "ADDED", new)
        for before, after in zip(dropped, added, strict=False):
            left -= len(before) * len(after)
            if left >= 0:
                yield Passage(None, difference_in_full(before, after))
            else:
                yield from (Passage(markdown(before), (), "drop"), Passage(markdown(after), (), "add"))
        yield from (Passage(markdown(one), (), "drop") for one in dropped[len(added) :])
        yield from (Passage(markdown(one), (), "add") for one in added[len(dropped) :])
        old, new, at = old + len(dropped), new + len(added), at + len(dropped) + len(added)
    if new < len(text):
        yield Passage(markdown("\n\n".join(text[new:])))


def _run(changes: Sequence[Mapping[str, Any]], what: str, place: int) -> Sequence[str]:
    """The paragraphs that were added or removed one after the other, from a place on."""
    found = enumerate(changes, place + 1)
    run = takewhile(lambda one: (one[1]["change"], one[1]["paragraph"]) == (what, one[0]), found)
    return [change["text"] for _, change in run]
