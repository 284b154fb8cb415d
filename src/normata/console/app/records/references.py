"""The rows that records refer to, by name: as links and as choices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from normata.console.app.api_calls import ApiQuery
from normata.console.app.organization_request import OrganizationRequest
from normata.console.texts import text
from normata.records.archive.queries import KINDS
from normata.records.fields import ANY, Field

_MOST = 100  # ids in one query, and choices in a list
_OFFERED = {"memberships": "people"}  # the kinds of names that are offered, where that is not the kind itself
_BY_IDENTIFIER = ("controls", "controlCoverages")  # shown with identifier and name

Named = Mapping[tuple[str, str], "Called"]


class Called(NamedTuple):
    """A row with its name. ``steps`` lead to its page; they are empty if there is none that the person can open.

    ``note`` says why the row is not live, and is empty if it is.
    """

    id: str
    words: str
    steps: tuple[str, ...]
    note: str


class Choice(NamedTuple):
    """What can be chosen for a reference: the first of ``total`` that ``find`` finds, and what is chosen already.

    ``kind`` is the kind of names that are offered.
    """

    options: Sequence[Called]
    total: int
    find: str
    kind: str
    may_search: bool = False

    @property
    def is_part(self) -> bool:
        """Whether to offer a search, because not all choices are listed."""
        return self.may_search or bool(self.find) or self.total > _MOST


def queries_for_names(wanted: Iterable[tuple[str, str | None]]) -> list[ApiQuery]:
    """The queries for the names of rows, live or not, from pairs of kind and id."""
    ids: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for target, row_id in wanted:
        if target and row_id:
            ids[target][row_id] = None
    return [
        _query_for_names(target, found[start : start + _MOST])
        for target, found in ((target, list(found)) for target, found in ids.items())
        for start in range(0, len(found), _MOST)
    ]


def _query_for_names(target: str, ids: Sequence[str]) -> ApiQuery:
    if target == ANY:
        return ApiQuery("searchRecords", {"id": ids, "archived": "include", "limit": str(_MOST)})
    return ApiQuery("listNames", {"kind": target, "id": ids, "archived": "include"})


async def names_of(page_request: OrganizationRequest, wanted: Iterable[tuple[str, str | None]]) -> Named:
    """The names of rows by kind and id. Rows that the person cannot see are missing."""
    api_queries = queries_for_names(wanted)
    answers = await page_request.ask(*api_queries) if api_queries else []
    named: dict[tuple[str, str], Called] = {}
    for api_query, answer in zip(api_queries, answers, strict=True):
        target = str(api_query.query.get("kind", ANY))
        for item in answer["items"]:
            named[target, item["id"]] = called(item["kind"] if target == ANY else target, item)
    return named


def called(target: str, item: Mapping[str, Any]) -> Called:
    """A row of this kind with its name, from the answer of ``listNames``."""
    words = item["label"]
    if target in _BY_IDENTIFIER:
        words = f"{item['identifier']} {words}"
    note = "" if item["isLive"] else text(f"record.{_gone(target)}")
    return Called(item["id"], words, _steps(target, item), note)


def _gone(target: str) -> str:
    if target in KINDS:
        return "not_live"
    return "removed" if target in ("memberships", "users") else "not_adopted"


def _steps(target: str, item: Mapping[str, Any]) -> tuple[str, ...]:
    if target in KINDS:
        return "records", target, item["id"]
    if target == "controlCoverages":
        return "controls", item["controlId"]
    if target == "frameworks" and not item["isLive"]:  # the preview of adopting it again
        return target, item["id"], "adoption"
    if target in ("memberships", "people") and item["isLive"]:
        return "settings", "members", item["id"]
    return (target, item["id"]) if target in ("controls", "frameworks") and item["isLive"] else ()


async def choices_of(
    page_request: OrganizationRequest, fields: Sequence[Field], chosen: Mapping[str, str], find: Mapping[str, str]
) -> Mapping[str, Choice]:
    """The choices for reference fields, by field.

    ``chosen`` has the present ids, ``find`` the searches of fields with too many choices.
    """
    if not fields:
        return {}
    offered = {
        field.name: ApiQuery(
            "listNames", {"kind": _offered_of(field), "search": find.get(field.name, ""), "limit": str(_MOST)}
        )
        for field in fields
    }
    api_queries: list[ApiQuery] = []
    for api_query in offered.values():
        if api_query not in api_queries:
            api_queries.append(api_query)
    known = queries_for_names((field.target, chosen.get(field.name)) for field in fields)
    answers = await page_request.ask(*api_queries, *known)
    found = dict(enumerate(answers[: len(api_queries)]))
    names = {
        (str(api_query.query["kind"]), item["id"]): called(str(api_query.query["kind"]), item)
        for api_query, answer in zip(known, answers[len(api_queries) :], strict=True)
        for item in answer["items"]
    }
    return {
        field.name: _choice(
            field,
            found[api_queries.index(offered[field.name])],
            names.get((field.target, chosen.get(field.name, ""))),
            find.get(field.name, ""),
        )
        for field in fields
    }


async def choice_of(page_request: OrganizationRequest, kind: str, find: str = "") -> Choice:
    """The rows of a kind to choose from: the first of those that ``find`` finds."""
    answer = await page_request.ask_one(ApiQuery("listNames", {"kind": kind, "search": find, "limit": str(_MOST)}))
    return Choice([called(kind, item) for item in answer["items"]], answer["total"], find, kind)


def _choice(field: Field, answer: Mapping[str, Any], chosen: Called | None, find: str) -> Choice:
    options = [called(field.target, item) for item in answer["items"]]
    if chosen is not None and all(option.id != chosen.id for option in options):
        options.insert(0, chosen)
    return Choice(options, answer["total"], find, _offered_of(field))


def _offered_of(field: Field) -> str:
    """The kind of names that are offered for a reference: a record is in the hands of people, and not of programs."""
    return _OFFERED.get(field.target, field.target)
