"""Finds controls, records, frameworks and pages by their words: as a page, and for the palette as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson
from starlette.responses import Response

from normata.console.app.api_calls import ApiQuery
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.sections import SECTIONS
from normata.console.filters import kind_words
from normata.console.pages import HEADERS
from normata.console.texts import text
from normata.core.schema.text import fold
from normata.records.archive.queries import KINDS

_MOST = 8  # of each group
_LOOKED_AT = 40  # controls, of which those come first that have the words in their name


class SearchResult(NamedTuple):
    """Something that was found: what it is called, what it is, and the path of its page."""

    label: str
    note: str
    path: str


Groups = list[tuple[str, Sequence[SearchResult]]]


async def find(page_request: OrganizationRequest) -> Response:
    """What has all words of ``search``, at most eight of each sort. Whoever asks for JSON gets it as that."""
    wanted = page_request.query.get("search", "").strip()
    groups = await _groups(page_request, wanted) if wanted else []
    if page_request.context.headers.get(b"accept", b"").startswith(b"application/json"):
        return Response(
            orjson.dumps(_as_json(page_request, groups)), media_type="application/json", headers=dict(HEADERS)
        )
    return page_request.page("app/find.html", wanted=wanted, groups=groups)


async def _groups(page_request: OrganizationRequest, wanted: str) -> Groups:
    query = {"search": wanted, "limit": str(_MOST)}
    controls, records, frameworks, adopted = await page_request.ask(
        ApiQuery("listControls", {**query, "limit": str(_LOOKED_AT)}),
        ApiQuery("searchRecords", query),
        ApiQuery("listFrameworks", query),
        ApiQuery("listFrameworks", {"adoptedOnly": "true", "sortColumn": "identifier"}),
    )
    every = fold(wanted).split()

    def has_all(one: SearchResult) -> bool:
        return all(word in fold(one.label) for word in every)

    pages = [page for page in _pages(page_request, adopted["items"]) if has_all(page)]
    named = sorted((_control(page_request, one) for one in controls["items"]), key=has_all, reverse=True)
    groups: Groups = [
        (text("find.pages"), pages[:_MOST]),
        (text("find.controls"), named[:_MOST]),
        (text("find.records"), [_record(page_request, one) for one in records["items"]]),
        (text("find.frameworks"), [_framework(page_request, one) for one in frameworks["items"]]),
    ]
    return [(name, found) for name, found in groups if found]


def _pages(page_request: OrganizationRequest, adopted: Sequence[Mapping[str, Any]]) -> Iterator[SearchResult]:
    for section in SECTIONS:
        if page_request.may(section.role):
            yield SearchResult(text(f"app.section.{section.key}"), "", page_request.path() + section.path)
    for path in KINDS:
        yield SearchResult(kind_words(path), text("find.records"), page_request.path("records", path))
    for one in adopted:
        for step, name in (
            ("gaps", "app.gaps"),
            ("work", "app.work"),
            ("statement-of-applicability", "app.soa"),
        ):
            label = text("find.page_of", framework=one["identifier"], page=text(name))
            yield SearchResult(label, one["name"], page_request.path("frameworks", one["id"], step))


def _control(page_request: OrganizationRequest, one: Mapping[str, Any]) -> SearchResult:
    return SearchResult(
        f"{one['identifier']} {one['name']}", one["framework"]["identifier"], page_request.path("controls", one["id"])
    )


def _record(page_request: OrganizationRequest, one: Mapping[str, Any]) -> SearchResult:
    kind = KINDS[one["kind"]].words().capitalize()
    note = kind if one["shortId"] is None else f"{kind} {one['shortId']}"
    return SearchResult(one["label"], note, page_request.path("records", one["kind"], one["id"]))


def _framework(page_request: OrganizationRequest, one: Mapping[str, Any]) -> SearchResult:
    # What is not adopted has no page but that which tells what adopting it would bring.
    steps = () if one["isAdopted"] else ("adoption",)
    return SearchResult(one["name"], one["identifier"], page_request.path("frameworks", one["id"], *steps))


def _as_json(page_request: OrganizationRequest, groups: Groups) -> list[dict[str, Any]]:
    prefix = page_request.context.prefix
    return [
        {
            "name": name,
            "items": [{"label": one.label, "note": one.note, "address": prefix + one.path} for one in found],
        }
        for name, found in groups
    ]
