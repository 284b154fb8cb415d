"""Finds controls, records, frameworks and pages by their words: as a page, and for the palette as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson
from starlette.responses import Response

from normata.console.app.api_calls import Question
from normata.console.app.organization_request import OrganizationVisit
from normata.console.app.sections import SECTIONS
from normata.console.filters import kind_words
from normata.console.pages import HEADERS
from normata.console.texts import text
from normata.core.schema.text import fold
from normata.records.archive.queries import KINDS

_MOST = 8  # of each group
_LOOKED_AT = 40  # controls, of which those come first that have the words in their name


class Found(NamedTuple):
    """Something that was found: what it is called, what it is, and the path of its page."""

    label: str
    note: str
    path: str


Groups = list[tuple[str, Sequence[Found]]]


async def find(visit: OrganizationVisit) -> Response:
    """What has all words of ``search``, at most eight of each sort. Whoever asks for JSON gets it as that."""
    wanted = visit.query.get("search", "").strip()
    groups = await _groups(visit, wanted) if wanted else []
    if visit.context.headers.get(b"accept", b"").startswith(b"application/json"):
        return Response(orjson.dumps(_as_json(visit, groups)), media_type="application/json", headers=dict(HEADERS))
    return visit.page("app/find.html", wanted=wanted, groups=groups)


async def _groups(visit: OrganizationVisit, wanted: str) -> Groups:
    query = {"search": wanted, "limit": str(_MOST)}
    controls, records, frameworks, adopted = await visit.ask(
        Question("listControls", {**query, "limit": str(_LOOKED_AT)}),
        Question("searchRecords", query),
        Question("listFrameworks", query),
        Question("listFrameworks", {"adoptedOnly": "true", "sortColumn": "identifier"}),
    )
    every = fold(wanted).split()

    def has_all(one: Found) -> bool:
        return all(word in fold(one.label) for word in every)

    pages = [page for page in _pages(visit, adopted["items"]) if has_all(page)]
    named = sorted((_control(visit, one) for one in controls["items"]), key=has_all, reverse=True)
    groups: Groups = [
        (text("find.pages"), pages[:_MOST]),
        (text("find.controls"), named[:_MOST]),
        (text("find.records"), [_record(visit, one) for one in records["items"]]),
        (text("find.frameworks"), [_framework(visit, one) for one in frameworks["items"]]),
    ]
    return [(name, found) for name, found in groups if found]


def _pages(visit: OrganizationVisit, adopted: Sequence[Mapping[str, Any]]) -> Iterator[Found]:
    for section in SECTIONS:
        if visit.may(section.role):
            yield Found(text(f"app.section.{section.key}"), "", visit.path() + section.path)
    for path in KINDS:
        yield Found(kind_words(path), text("find.records"), visit.path("records", path))
    for one in adopted:
        for step, name in (
            ("gaps", "app.gaps"),
            ("work", "app.work"),
            ("statement-of-applicability", "app.soa"),
        ):
            label = text("find.page_of", framework=one["identifier"], page=text(name))
            yield Found(label, one["name"], visit.path("frameworks", one["id"], step))


def _control(visit: OrganizationVisit, one: Mapping[str, Any]) -> Found:
    return Found(
        f"{one['identifier']} {one['name']}", one["framework"]["identifier"], visit.path("controls", one["id"])
    )


def _record(visit: OrganizationVisit, one: Mapping[str, Any]) -> Found:
    kind = KINDS[one["kind"]].words().capitalize()
    note = kind if one["shortId"] is None else f"{kind} {one['shortId']}"
    return Found(one["label"], note, visit.path("records", one["kind"], one["id"]))


def _framework(visit: OrganizationVisit, one: Mapping[str, Any]) -> Found:
    # What is not adopted has no page but that which tells what adopting it would bring.
    steps = () if one["isAdopted"] else ("adoption",)
    return Found(one["name"], one["identifier"], visit.path("frameworks", one["id"], *steps))


def _as_json(visit: OrganizationVisit, groups: Groups) -> list[dict[str, Any]]:
    prefix = visit.context.prefix
    return [
        {
            "name": name,
            "items": [{"label": one.label, "note": one.note, "address": prefix + one.path} for one in found],
        }
        for name, found in groups
    ]
