"""The list of controls, and the page of a control with the explanation of its coverage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from starlette.responses import Response

from normata.console.app.api_calls import ApiQuery, Fields, Query, Refusal
from normata.console.app.comments import comments_of, comments_query
from normata.console.app.control_columns import (
    all_columns,
    columns_of,
    group_counts,
    group_of,
    group_value,
    groupings,
)
from normata.console.app.control_owners import (
    ME,
    names_on_page,
    owner_choice_of,
    owner_names,
    people_for,
    with_own_id,
)
from normata.console.app.event_lines import UNSHOWN
from normata.console.app.links import happenings_of, links_of, links_query, named_in
from normata.console.app.neighbourhood import neighbourhood_of
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.people import PEOPLE
from normata.console.app.saved_views import ListView, Tab, list_view
from normata.console.app.staleness import WORDING_CHANGED, changed_wording, reasons_of
from normata.console.app.view_links import PARAMETER
from normata.console.filters import words
from normata.console.texts import text
from normata.core.schema.fields import COVERAGE_STATUSES, REASONS

# The filters of the list, as parameters of the page and of the operation.
_FILTERS = (
    "frameworks",
    "coverageStatus",
    "effectiveCoverageStatus",
    "isIndirectlyCovered",
    "hasGap",
    "isApplicable",
    "isAssessed",
    "isStale",
    "ownerId",
    "type",
    "search",
)
# The label of each filter, and its options.
_WORDS = {
    "frameworks": "field.framework",
    "coverageStatus": "field.coverageStatus",
    "effectiveCoverageStatus": "field.effective",
    "isIndirectlyCovered": "field.coveredBy",
    "hasGap": "field.coverageGap",
    "isApplicable": "field.isApplicable",
    "isAssessed": "field.isAssessed",
    "isStale": "field.isStale",
    "ownerId": "field.ownerId",
    "type": "field.type",
}
_OPTIONS = dict.fromkeys(_WORDS, "yes_no") | {
    "frameworks": "frameworks",
    "coverageStatus": "levels",
    "effectiveCoverageStatus": "levels",
    "hasGap": "noted",
    "ownerId": "owners",
    "type": "types",
}
# The views that everyone has, before anybody has saved one.
_VIEWS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "all": {},
    "mine": {"ownerId": [ME]},
    "gaps": {"type": ["CONTROL"], "isApplicable": ["true"], "effectiveCoverageStatus": ["NONE", "PARTIAL"]},
    "unassessed": {"type": ["CONTROL"], "isAssessed": ["false"]},
    "lifted": {"isIndirectlyCovered": ["true"]},
    "stale": {"isStale": ["true"]},
}
ADDITIONS = ("tasks", "auditItems", "evidence", "policies", "risks")  # the kinds of what is added to a control
_ORDER = ("sortColumn", "sortDirection", "page", "cursor", "limit")
_MAX_HISTORY = 20
_NOTHING_OPEN: list[Any] = [{"coverage": {}}, {}, {"items": [], "total": 0}, {"items": [], "total": 0}]


async def show_list(page_request: OrganizationRequest) -> Response:
    """The controls of the adopted frameworks, with filters; next to them the open control with its form."""
    sent = page_request.request.query_params
    wanted = {name: sent.getlist(name) for name in (*_FILTERS, *_ORDER)}
    open_id = sent.get("open", "") if page_request.may("editor") else ""
    about_open = (
        (
            ApiQuery("getControl", id=open_id),
            ApiQuery("explainCoverage", id=open_id),
            PEOPLE,
            links_query("controls", open_id),
        )
        if open_id
        else ()
    )
    group = group_of(sent.get("group"))
    find = sent.get("find.ownerId", "").strip()[:200]
    owned = await with_own_id(page_request, wanted["ownerId"])
    listed = wanted | {"ownerId": owned} | ({"sortColumn": [group]} if group else {})
    columns = columns_of(sent.getlist("columns"), is_of_one=len(wanted["frameworks"]) == 1)
    has_owners = any(column.key == "ownerId" for column in columns)
    controls, adopted, *found = await page_request.ask(
        ApiQuery("listCoverage", listed),
        ApiQuery("listFrameworks", {"adoptedOnly": "true", "sortColumn": "identifier"}),
        *about_open,
    )
    opened: Mapping[str, Any]
    opened, why, members, links = found or _NOTHING_OPEN
    chosen = {name: sent.get(name, "") for name in (*_FILTERS, *_ORDER)}
    shown_owners = [one["coverage"]["ownerId"] for one in controls["items"]] if has_owners else []
    owners = await owner_names(page_request, [*shown_owners, *owned])
    options = _options(adopted["items"], owners)
    order = [(name, chosen[name]) for name in ("sortColumn", "sortDirection", "limit") if chosen[name]]
    filters = [(name, value) for name in _FILTERS for value in sent.getlist(name) if value]
    view = list_view(page_request, "controls", (*_FILTERS, *_ORDER[:2], "columns", "group"))
    order += [("columns", key) for key in sent.getlist("columns")] + ([("group", group)] if group else [])
    order += [*([(PARAMETER, view.opened["id"])] if view.opened else []), *page_request.of_then.items()]
    return page_request.page(
        "app/controls.html",
        controls=controls,
        adopted=adopted["items"],
        options=options,
        can_assess=page_request.may("editor"),
        chosen=chosen,
        view=view,
        columns=columns,
        all_columns=all_columns(),
        keeps_columns=[*filters, *(pair for pair in order if pair[0] != "columns")],
        group=group,
        groupings=groupings(),
        group_value=group_value,
        group_counts=await group_counts(page_request, group, listed, controls["items"]),
        owners=owners,
        owner_choice=await owner_choice_of(page_request, options["owners"], find),
        sort_link=lambda **changed: page_request.link(**{"group": None, **changed}),
        views=[*_views(page_request, filters, view), *view.tabs],
        chips=_chips(page_request, filters, options),
        keeps=[*((name, value) for name, value in filters if name != "search"), *order],
        keeps_search=[*((name, value) for name, value in filters if name == "search"), *order],
        is_filtered=bool(filters),
        work=_framework_id(adopted["items"], chosen["frameworks"]),
        selected=set(sent.getlist("selected")),
        opened=opened if found else None,
        links=links_of("controls", open_id, links),
        why=why,
        place=_place(controls["items"], open_id),
        reasons=reasons_for(opened["coverage"]),
        people=await people_for(page_request, members, opened["coverage"].get("ownerId")),
        here_with=lambda **changed: page_request.here_with(**{"open": None, **changed}),
    )


def _options(adopted: Sequence[Mapping[str, Any]], owners: Mapping[str, str]) -> Mapping[str, list[tuple[str, str]]]:
    """The options of each filter: pairs of value and label."""
    return {
        "frameworks": [(one["slug"], one["identifier"]) for one in adopted],
        "levels": [(level, text(f"status.{level}")) for level in COVERAGE_STATUSES],
        "yes_no": [("true", text("app.yes")), ("false", text("app.no"))],
        "noted": [("true", text("app.noted")), ("false", text("app.not_noted"))],
        "owners": [(ME, text("app.controls.me")), *sorted(owners.items(), key=lambda one: one[1])],
        "types": [("CONTROL", text("type.CONTROL")), ("CATEGORY", text("type.CATEGORY"))],
    }


def _views(page_request: OrganizationRequest, filters: Sequence[tuple[str, str]], view: ListView) -> list[Tab]:
    """The built-in views as tabs. Changing the view keeps the framework that is selected."""
    remaining = {name: [value] for name, value in filters if name == "frameworks"}
    now = sorted((name, value) for name, value in filters if name != "frameworks")
    views = []
    for key, query in _VIEWS.items():
        pairs = sorted((name, value) for name, values in query.items() for value in values)
        path = page_request.context.prefix + page_request.path("controls", query={**remaining, **query})
        views.append((text(f"list.view.{key}"), path, None, pairs == now and view.opened is None))
    return views


def _chips(
    page_request: OrganizationRequest,
    filters: Sequence[tuple[str, str]],
    options: Mapping[str, list[tuple[str, str]]],
) -> list[tuple[str, str, str]]:
    """The active filters: the label, the values as words, and the address without the filter."""
    found: dict[str, list[str]] = {}
    for name, value in filters:
        if name != "search":
            called = dict(options[_OPTIONS[name]])
            found.setdefault(name, []).append(called.get(value, value))
    return [
        (text(_WORDS[name]), ", ".join(values), page_request.link(**{name: None, "page": None}))
        for name, values in found.items()
    ]


def _framework_id(adopted: Sequence[Mapping[str, Any]], chosen: str) -> str:
    """The framework for "Work through gaps": the one that is selected, or else the first; empty if there is none."""
    named = [one["id"] for one in adopted if chosen in (one["id"], one["slug"], one["identifier"])]
    return next(iter([*named, *(one["id"] for one in adopted)]), "")


class _Place(NamedTuple):
    """The position of a row in its list, and the ids of its neighbours."""

    number: int = 0
    before: str = ""
    after: str = ""


def _place(controls: Sequence[Mapping[str, Any]], control_id: str) -> _Place:
    ids = [one["id"] for one in controls]
    if control_id not in ids:
        return _Place(after=ids[0] if control_id and ids else "")
    at = ids.index(control_id)
    return _Place(at + 1, ids[at - 1] if at else "", ids[at + 1] if at + 1 < len(ids) else "")


def reasons_for(coverage: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The reasons to choose from, and those that the assessment has already: pairs of value and label."""
    return [(reason, words(reason)) for reason in dict.fromkeys((*REASONS, *coverage.get("reasons", ())))]


async def show_one(page_request: OrganizationRequest) -> Response:
    """The page of a control: its assessment, why it is covered, what would lift it, what it supports, its records."""
    origin = Origin(page_request.query.get("return_to", ""), page_request.query.get("gaps", ""))
    return await control_page(page_request, page_request.param("id"), origin=origin)


class SettingAside(NamedTuple):
    """What was entered to set a match aside, and why it was refused; empty if nothing was entered."""

    match_id: str = ""
    justification: str = ""
    refusal: Refusal | None = None


_NOT_TRIED = SettingAside()


class Origin(NamedTuple):
    """Where the person came from: the page that the form returns to, and the framework whose gaps they looked at."""

    return_to: str = ""
    gaps_of: str = ""


_DIRECT = Origin()


async def control_page(
    page_request: OrganizationRequest,
    control_id: str,
    *,
    refusal: Refusal | None = None,
    typed: Mapping[str, Any] | None = None,
    setting_aside: SettingAside = _NOT_TRIED,
    origin: Origin = _DIRECT,
    again: Fields | None = None,
) -> Response:
    """The page of a control, with the values ``typed`` into its form and why they were refused, if they were.

    ``again`` is a form that is shown once more and was not saved.
    """
    control, why = await page_request.ask(
        ApiQuery("getControl", id=control_id), ApiQuery("explainCoverage", id=control_id)
    )
    assessment = why["assessment"]
    is_now = page_request.past is None
    about: dict[str, Query] = {"listMembers": PEOPLE.query}
    if is_now:  # of these the past is not known
        about["listFindings"] = {"controlId": control_id, "limit": "100"}
        about["listLinks"] = links_query("controls", control_id).query
        about["listComments"] = comments_query("controls", control_id).query
        about["listMatches"] = {"control": control_id, "published": "true", "counts": "false", "limit": "100"}
    stale = reasons_of(control["coverage"])
    reworded = ApiQuery("getWordings", id=control_id) if WORDING_CHANGED in stale and is_now else None
    if assessment is not None and is_now:
        about["listTasks"] = {"controlCoverageId": assessment["id"], "limit": "100"}
    api_queries = [ApiQuery(name, query) for name, query in about.items()]
    events = ApiQuery("listControlEvents", {"limit": str(_MAX_HISTORY)}, id=control_id)
    if is_now:
        *answers, history = await page_request.ask(*api_queries, *([reworded] if reworded else []), events)
    else:  # its framework may be left, and not published any more
        answers = await page_request.ask(*api_queries)
        (history,) = await page_request.ask_if_there(events) or [{"items": [], "total": 0}]
    found = dict(zip(about, answers, strict=False))
    owners, users = await names_on_page(
        page_request, found["listMembers"], control["coverage"]["ownerId"], history["items"]
    )
    refused = refusal or setting_aside.refusal
    return page_request.page(
        "app/control.html",
        status=refused.status if refused else 200,
        control=control,
        why=why,
        proof=as_tree(why["proof"]),
        stale=stale,
        rewording=changed_wording(answers[-1]) if reworded else None,
        others=[as_tree(other) for other in why["others"]],
        neighbourhood=neighbourhood_of(page_request, control, why),
        findings=found.get("listFindings"),
        tasks=found.get("listTasks"),
        history=history,
        links=links_of("controls", control_id, found["listLinks"]) if is_now else None,
        comments=comments_of(page_request, "controls", control_id, found["listComments"]) if is_now else None,
        happenings=await happenings_of(
            page_request, "controls", control_id, history["items"], named_in(found["listLinks"]) if is_now else {}
        ),
        unshown=UNSHOWN | {"controlId", "ownerId"},
        names=users,
        member_names=owners,
        people=await people_for(page_request, found["listMembers"], control["coverage"]["ownerId"]),
        says=dict(control["coverage"]) | dict(typed or {}),
        reasons=reasons_for(control["coverage"]),
        refusal=refusal,
        setting_aside=setting_aside,
        set_aside=[match for match in found["listMatches"]["items"] if match["setAside"]] if is_now else [],
        return_to=origin.return_to,
        gaps_of=origin.gaps_of,
        is_again=again is not None,
        assessed_at=again.get("assessed_at") if again is not None else control["coverage"]["updatedAt"] or "",
        can_assess=page_request.may("editor"),
        additions=ADDITIONS,
    )


_DEEPEST = 40  # levels of the tree: nobody reads a deeper one


class Branch(NamedTuple):
    """A step of a proof with its premises. A step that was shown before has no branches again."""

    step: Mapping[str, Any]
    premises: tuple[Branch, ...]
    is_repeated: bool


def as_tree(proof: Sequence[Mapping[str, Any]]) -> Branch | None:
    """The proof as a tree with its last step as the root; null for an empty proof.

    Each step comes after its premises, so the tree is finite.
    """
    if not proof:
        return None
    places = {(step["control"]["id"], step["level"]): number for number, step in enumerate(proof)}
    shown: set[int] = set()

    def branch(number: int, depth: int = 0) -> Branch:
        step = proof[number]
        if number in shown or depth == _DEEPEST:
            return Branch(step, (), is_repeated=bool(step["premises"]))
        shown.add(number)
        below = [places.get((one["controlId"], one["level"])) for one in step["premises"]]
        return Branch(
            step, tuple(branch(one, depth + 1) for one in below if one is not None and one < number), is_repeated=False
        )

    return branch(len(proof) - 1)
