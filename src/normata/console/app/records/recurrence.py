"""How often a task or a review recurs: on its page, in the form of a task, and in the note once it is done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from normata.console.app.api_calls import ApiQuery
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.records.kinds import Kind, getting
from normata.console.filters import day_text
from normata.console.texts import text
from normata.recurrences.kinds import RECURRING, REVIEWS


class Repeats(NamedTuple):
    """How often a record recurs, in words, empty if it does not; and the ``following`` one, null until it is made.

    ``can_set`` is true of a review that the member can let recur.
    """

    words: str
    following: Mapping[str, Any] | None
    frequency: str
    can_set: bool


async def repeats_of(page_request: OrganizationRequest, kind: Kind, record: Mapping[str, Any]) -> Repeats | None:
    """How often a record recurs; null for a kind that never does."""
    if kind not in RECURRING:
        return None
    found, following = await _recurrence(page_request, kind, record["id"])
    is_open = kind in REVIEWS and record["finishedAt"] is None and record["archivedAt"] is None
    return Repeats(
        _words(found),
        following,
        found["frequency"] or "",
        can_set=is_open and page_request.may("editor"),
    )


async def following_words(page_request: OrganizationRequest, kind: Kind, record_id: str) -> str:
    """What follows a record that was just done, in a few words; empty if nothing does."""
    if kind not in RECURRING:
        return ""
    _, following = await _recurrence(page_request, kind, record_id)
    if following is None:
        return ""
    return text("recurrence.next_is", number=following["shortId"], day=day_text(following["deadline"]))


async def _recurrence(
    page_request: OrganizationRequest, kind: Kind, record_id: str
) -> tuple[Mapping[str, Any], Mapping[str, Any] | None]:
    """What the operation says of a record, and the record that follows it; null if there is none."""
    found = await page_request.ask_one(ApiQuery(f"get{kind.__name__}Recurrence", id=record_id))
    if found["nextId"] is None:
        return found, None
    return found, await page_request.ask_one(ApiQuery(getting(kind), id=found["nextId"]))


def _words(found: Mapping[str, Any]) -> str:
    if found["frequency"] is None:
        return ""
    often = text(f"recurrence.{found['frequency']}")
    if found["nextDeadline"] is None:
        return often
    return text("recurrence.with_next", often=often, day=day_text(found["nextDeadline"]))
