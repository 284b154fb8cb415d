"""Search for controls, records, members, frameworks, pages and saved views: as a page, and as JSON for the palette."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import orjson
from starlette.responses import Response

from normata.console.app.api_calls import ApiQuery
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.records.references import called
from normata.console.app.sections import PLACES
from normata.console.app.view_links import LIST_PLACES, query_of, steps_of
from normata.console.filters import kind_words
from normata.console.pages import HEADERS
from normata.console.texts import has_text, text
from normata.core.http.roles import Role
from normata.core.schema.text import fold
from normata.frameworks.model import Control
from normata.identity.model import Membership
from normata.records.archive.queries import KINDS

MENTIONS = "mentions"  # the kind of what can follow the sign of a mention in a comment
ANYTHING = "anything"  # the kind of what can be linked: records of all kinds, controls and members
_MOST = 8  # of each group
_MOST_NAMES = 20  # to choose from
_MOST_DIGITS = 4  # that may have dots between them
_MOST_COVERING = 3  # controls that a note names
_FILLERS = frozenset(
    {"a", "an", "the", "my", "our", "some", "two", "three", "to", "for", "in", "of"}
)  # beside what is meant
_LOOKED_AT = 40  # controls, of which those come first that have the words in their name


class SearchResult(NamedTuple):
    """A search result: its name, what it is, and the path of its page.

    ``other_words`` are further ones that it is found by, ``id`` is that of what can be chosen for a reference.
    """

    label: str
    note: str
    path: str
    other_words: str = ""
    id: str = ""


Groups = list[tuple[str, Sequence[SearchResult]]]


async def find(page_request: OrganizationRequest) -> Response:
    """What has all words of ``search``, at most eight of each sort; with ``kind`` what can be chosen of one kind.

    Whoever asks for JSON gets it as that.
    """
    wanted, kind = page_request.query.get("search", "").strip(), page_request.query.get("kind", "")
    groups: Groups = []
    if wanted:
        groups = await _names(page_request, kind, wanted) if kind else await _groups(page_request, wanted)
    if page_request.context.headers.get(b"accept", b"").startswith(b"application/json"):
        return Response(
            orjson.dumps(_as_json(page_request, groups)), media_type="application/json", headers=dict(HEADERS)
        )
    return page_request.page("app/find.html", wanted=wanted, kind=kind, groups=groups)


async def anything(page_request: OrganizationRequest, wanted: str) -> list[SearchResult]:
    """What can be linked that a text finds, each with its kind and id as one value; controls come first."""
    controls = await _names(page_request, Control.array, wanted)
    records, people = await page_request.ask(
        ApiQuery("searchRecords", {"search": wanted, "limit": str(_MOST_NAMES)}),
        ApiQuery("listNames", {"kind": "people", "search": wanted, "limit": str(_MOST)}),
    )
    return [
        *(
            one._replace(note=text("find.control"), id=f"{Control.array}:{one.id}")
            for _, found in controls
            for one in found[:_MOST]
        ),
        *(_record(page_request, one)._replace(id=f"{one['kind']}:{one['id']}") for one in records["items"]),
        *(_member(page_request, one)._replace(id=f"{Membership.array}:{one['id']}") for one in people["items"]),
    ]


async def _names(page_request: OrganizationRequest, kind: str, wanted: str) -> Groups:
    """What can be chosen of a kind: live rows with these words in their names, or with such an identifier."""
    if kind == ANYTHING:
        found_things = await anything(page_request, wanted)
        return [(text("find.results"), found_things)] if found_things else []
    if kind == MENTIONS:
        people = await _mentions(page_request, wanted)
        return [(kind_words(Membership.array), people)] if people else []
    query = {"kind": kind, "limit": str(_MOST_NAMES)}
    spelled = _spelled_out(wanted) if kind in ("controls", "controlCoverages") else []
    answers = await page_request.ask(*(ApiQuery("listNames", {**query, "search": one}) for one in (*spelled, wanted)))
    *squeezed, named = (answer["items"] for answer in answers)
    exact = [one for found in squeezed for one in found if _squeezed(one["identifier"]).startswith(_squeezed(wanted))]
    rows = {one["id"]: one for one in (*exact, *named)}
    return [(kind_words(kind), [_name(page_request, kind, one) for one in rows.values()])] if rows else []


async def _mentions(page_request: OrganizationRequest, wanted: str) -> list[SearchResult]:
    """The members that a text finds, each with what mentions them alone: the name, or the address of namesakes."""
    # So many that namesakes of those who are shown are among them.
    query = {"kind": Membership.array, "search": wanted, "limit": "100"}
    found = (await page_request.ask_one(ApiQuery("listNames", query)))["items"]
    called_so = Counter(one["label"].casefold() for one in found)
    shared = [one["id"] for one in found[:_MOST] if called_so[one["label"].casefold()] > 1 or "@" in one["label"]]
    answers = await page_request.ask(*(ApiQuery("getMember", id=member_id) for member_id in shared))
    addresses = {one["id"]: one["email"] for one in answers if one["email"]}
    return [
        _member(page_request, one)._replace(
            note=addresses.get(one["id"], ""), id=f"@{addresses.get(one['id'], one['label'])}"
        )
        for one in found[:_MOST]
    ]


def _name(page_request: OrganizationRequest, kind: str, one: Mapping[str, Any]) -> SearchResult:
    found = called(kind, one)
    note = text("record.number", number=one["identifier"]) if kind in KINDS and one["identifier"] else ""
    return SearchResult(found.words, note, page_request.path(*found.steps), id=one["id"])


async def _groups(page_request: OrganizationRequest, wanted: str) -> Groups:
    query = {"search": wanted, "limit": str(_MOST)}
    controls, records, members, frameworks, adopted, *squeezed = await page_request.ask(
        ApiQuery("listCoverage", {**query, "limit": str(_LOOKED_AT)}),
        ApiQuery("searchRecords", query),
        ApiQuery("listNames", {**query, "kind": "memberships"}),
        ApiQuery("listFrameworks", query),
        ApiQuery("listFrameworks", {"adoptedOnly": "true", "sortColumn": "identifier"}),
        *(ApiQuery("listCoverage", {**query, "search": one}) for one in _spelled_out(wanted)),
    )
    words = fold(wanted).split()
    every = [word for word in words if word not in _FILLERS] or words

    def has_all(one: SearchResult) -> bool:
        return all(word in fold(f"{one.label} {one.other_words}") for word in every)

    def is_called_so(one: SearchResult) -> bool:
        return all(word in fold(one.label) for word in every)

    pages = sorted(
        (page for page in _pages(page_request, adopted["items"]) if has_all(page)), key=is_called_so, reverse=True
    )
    views = [view for view in _views(page_request) if has_all(view)]
    numbered = {
        one["id"]: one
        for found in squeezed
        for one in found["items"]
        if _squeezed(one["identifier"]).startswith(_squeezed(wanted))
    }
    found = {**numbered, **{one["id"]: one for one in controls["items"]}}
    named = [_control(page_request, one) for one in found.values()]
    named.sort(key=lambda one: (_squeezed(one.label.split()[0]) != _squeezed(wanted), not has_all(one)))
    groups: Groups = [
        (text("find.pages"), pages[:_MOST]),
        (text("find.views"), views[:_MOST]),
        (text("find.controls"), named[:_MOST]),
        (text("find.members"), [_member(page_request, one) for one in members["items"]]),
        (text("find.records"), [_record(page_request, one) for one in records["items"]]),
        (text("find.frameworks"), [_framework(page_request, one) for one in frameworks["items"]]),
    ]
    # A saved view stands after the pages, whatever it is called.
    foremost = {name for name, found in groups if _is_called(wanted, found)}
    if text("find.views") in foremost:
        foremost.add(text("find.pages"))
    return sorted(((name, found) for name, found in groups if found), key=lambda group: group[0] not in foremost)


def _is_called(wanted: str, found: Sequence[SearchResult]) -> bool:
    """Whether a name contains the text from the beginning of a word: such groups come first."""
    return any(f" {fold(wanted)}" in f" {fold(one.label)} {one.other_words}" for one in found)


def _spelled_out(wanted: str) -> list[str]:
    """The identifiers meant by somebody who leaves out punctuation, such as A.5.15 for ``a515``."""
    parts = re.fullmatch(r"([a-z]{1,4})[.-]?(\d[\d.-]{0,8})", fold(wanted))
    if parts is None:
        return []
    letters, number = parts[1], parts[2]
    if len(letters) == 4:
        found = [f"{letters[:2]}.{letters[2:]}-{one}" for one in (number, number.zfill(2))]
    elif number.isdecimal() and len(number) <= _MOST_DIGITS:
        between = product(("", "."), repeat=len(number) - 1)
        found = [f"{letters}." + "".join(map("".join, zip(number, (*dots, ""), strict=True))) for dots in between]
    else:
        found = [f"{letters}.{number}"]
    return [*found, f"{letters}-{number}"]


def _squeezed(identifier: str) -> str:
    """Letters and digits only, without leading zeros of numbers."""
    return re.sub(r"[\W_]", "", re.sub(r"(?<!\d)0+(?=\d)", "", fold(identifier)))


_SETTINGS: tuple[tuple[str, Role], ...] = (
    ("members", "viewer"),
    ("invitations", "auditor"),
    ("accounts", "auditor"),
    ("tokens", "auditor"),
    ("webhooks", "admin"),
)
_SETTINGS_PATHS = {"accounts": "service-accounts"}


def _pages(page_request: OrganizationRequest, adopted: Sequence[Mapping[str, Any]]) -> Iterator[SearchResult]:
    for place in PLACES:
        if not place.is_kind and page_request.may(place.role):
            yield SearchResult(place.label, "", page_request.path() + place.path, _other_words(place.key))
    if page_request.may("admin"):
        path = page_request.path("upload")
        yield SearchResult(text("app.upload.title"), "", path, _other_words("upload"))
    for key, role in _SETTINGS:
        if page_request.may(role):
            path = page_request.path("settings", _SETTINGS_PATHS.get(key, key))
            yield SearchResult(text(f"app.settings.{key}"), text("app.section.settings"), path, _other_words(key))
    yield SearchResult(text("account.title"), "", "/account/", _other_words("account"))
    for path, kind in KINDS.items():
        also = f"{kind.words()} {_other_words(path)}"
        yield SearchResult(kind_words(path), text("find.records"), page_request.path("records", path), also)
        if page_request.may("editor"):
            name = text("find.new", kind=kind.words())
            yield SearchResult(name, text("find.records"), page_request.path("new", path), also)
    for one in adopted:
        for step, name in (
            ("gaps", "app.gaps"),
            ("plan", "app.plan"),
            ("work", "app.work"),
            ("statement-of-applicability", "app.soa"),
            ("over-time", "app.over_time"),
        ):
            label = text("find.page_of", framework=one["identifier"], page=text(name))
            path = page_request.path("frameworks", one["id"], step)
            yield SearchResult(label, one["name"], path, _other_words(step))


def _views(page_request: OrganizationRequest) -> Iterator[SearchResult]:
    for view in page_request.saved_views:
        place = LIST_PLACES.get(view["kind"])
        if place is not None:
            path = page_request.path(*steps_of(view["kind"]), query=query_of(view))
            yield SearchResult(view["name"], place.label, path)


def _control(page_request: OrganizationRequest, one: Mapping[str, Any]) -> SearchResult:
    """A control, with how far it is covered and by what: for many that is all they want to know."""
    status = text("status.excluded")
    if one["isApplicable"]:
        status = text(f"status.{one['effectiveCoverageStatus'] or 'not_assessed'}")
    covering = [match["matchedControl"]["identifier"] for match in one["coveredBy"]]
    if covering:
        status = text("find.covered", status=status, controls=", ".join(covering[:_MOST_COVERING]))
    label, note = f"{one['identifier']} {one['name']}", f"{one['framework']['identifier']} · {status}"
    return SearchResult(label, note, page_request.path("controls", one["id"]))


def _record(page_request: OrganizationRequest, one: Mapping[str, Any]) -> SearchResult:
    kind = KINDS[one["kind"]].words().capitalize()
    note = kind if one["shortId"] is None else f"{kind} {one['shortId']}"
    return SearchResult(one["label"], note, page_request.path("records", one["kind"], one["id"]))


def _other_words(key: str) -> str:
    return text(f"find.words.{key}") if has_text(f"find.words.{key}") else ""


def _member(page_request: OrganizationRequest, one: Mapping[str, Any]) -> SearchResult:
    return SearchResult(one["label"], text("find.member"), page_request.path("settings", "members", one["id"]))


def _framework(page_request: OrganizationRequest, one: Mapping[str, Any]) -> SearchResult:
    # A framework that is not adopted has no page but the preview of its adoption.
    steps = () if one["isAdopted"] else ("adoption",)
    return SearchResult(one["name"], one["identifier"], page_request.path("frameworks", one["id"], *steps))


def _as_json(page_request: OrganizationRequest, groups: Groups) -> list[dict[str, Any]]:
    prefix = page_request.context.prefix
    return [
        {
            "name": name,
            "items": [
                {"label": one.label, "note": one.note, "address": prefix + one.path, "id": one.id} for one in found
            ],
        }
        for name, found in groups
    ]
