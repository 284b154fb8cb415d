"""Frameworks: those that there are, what adopting one would bring, and how two of them match."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from normata.console.app.api_calls import ApiQuery
from normata.console.app.organization_request import OrganizationRequest
from normata.console.texts import text
from normata.core.http.problems import InvalidRequest

_MAX_PAGE = 100
_MAX_PAGES = 20  # of the controls of a framework in a crosswalk


async def show_list(page_request: OrganizationRequest) -> Response:
    """The frameworks that the organization can see, adopted or not."""
    wanted = {name: page_request.query.get(name, "") for name in ("search", "page")}
    (found,) = await page_request.ask(ApiQuery("listFrameworks", wanted))
    return page_request.page(
        "app/frameworks.html", frameworks=found, search=wanted["search"], can_adopt=page_request.may("admin")
    )


async def show_one(page_request: OrganizationRequest) -> Response:
    """An adopted framework: its coverage in counts, as a whole and below each category."""
    framework_id = page_request.param("id")
    summary, framework = await page_request.ask(
        ApiQuery("getFrameworkCoverage", id=framework_id), ApiQuery("getFramework", id=framework_id)
    )
    return page_request.page(
        "app/framework.html",
        summary=summary,
        can_adopt=page_request.may("admin"),
        can_edit=page_request.may("admin") and framework["organizationId"] is not None,
    )


async def preview(page_request: OrganizationRequest) -> Response:
    """What adopting a framework would bring."""
    found = await page_request.ask_one(ApiQuery("previewAdoption", id=page_request.param("id")))
    return page_request.page("app/adoption.html", found=found, refusal=None, can_adopt=page_request.may("admin"))


async def adopt_or_leave(page_request: OrganizationRequest) -> Response:
    """Adopt a framework, or leave it where ``step`` says so."""
    page_request.require("admin")
    form, framework_id = await page_request.fields(), page_request.param("id")
    is_leaving = form.get("step") == "leave"
    if not is_leaving and form.get("step") != "adopt":
        raise InvalidRequest(text("problem.form"))
    outcome = await page_request.change("leaveFramework" if is_leaving else "adoptFramework", row_id=framework_id)
    if outcome.refusal is not None:
        found = await page_request.ask_one(ApiQuery("previewAdoption", id=framework_id))
        return page_request.page(
            "app/adoption.html",
            status=outcome.refusal.status,
            found=found,
            refusal=outcome.refusal,
            can_adopt=page_request.may("admin"),
        )
    if is_leaving:
        return page_request.go(page_request.path("frameworks"), "left")
    return page_request.go(page_request.path("frameworks", framework_id), "adopted")


async def show_crosswalk(page_request: OrganizationRequest) -> Response:
    """How two adopted frameworks match: how many matches lead from each part of one to each part of the other."""
    (found,) = await page_request.ask(ApiQuery("listFrameworks", {"adoptedOnly": "true", "sortColumn": "identifier"}))
    adopted = found["items"]
    by_slug = {one["slug"]: one for one in adopted}
    names = [one["slug"] for one in adopted]
    one = by_slug.get(page_request.query.get("from", names[0] if names else ""))
    other = by_slug.get(page_request.query.get("to", names[1] if len(names) > 1 else ""))
    if one is None or other is None:
        return page_request.page("app/crosswalk.html", adopted=adopted, one=None, other=None)
    rows, is_all = await _controls(page_request, one)
    columns, are_all = await _controls(page_request, other)
    return page_request.page(
        "app/crosswalk.html",
        adopted=adopted,
        one=one,
        other=other,
        is_whole=is_all and are_all,
        forth=_counted(columns, one),
        back=_counted(rows, other),
        rows=_parts(rows),
        columns=_parts(columns),
        cells=_cells(rows, columns, one),
    )


async def _controls(page_request: OrganizationRequest, framework: Mapping[str, Any]) -> tuple[list[Any], bool]:
    """The controls of a framework, and whether these are all: of a very large one only the first are shown."""
    pages = -(-framework["_count"]["controls"] // _MAX_PAGE)
    api_queries = [
        ApiQuery("listControls", {"frameworks": framework["id"], "page": str(number + 1)})
        for number in range(min(pages, _MAX_PAGES))
    ]
    answers = await page_request.ask(*api_queries) if api_queries else []
    return [control for answer in answers for control in answer["items"]], pages <= _MAX_PAGES


def _counted(controls: Sequence[Mapping[str, Any]], source: Mapping[str, Any]) -> Mapping[str, int]:
    """How many matches lead from ``source`` into controls of another framework, and how many of these they reach."""
    reached: Counter[str] = Counter()
    for control in controls:
        if control["children"]:
            continue
        levels = {
            match["matchLevel"]
            for match in control["sourceMatches"]
            if match["matchedControl"]["framework"]["id"] == source["id"]
        }
        reached["leaves"] += 1
        reached["full"] += "FULL" in levels
        reached["partial"] += levels == {"PARTIAL"}
    return {"leaves": reached["leaves"], "full": reached["full"], "partial": reached["partial"]}


def _parts(controls: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The controls that others are directly below, in catalog order: a row or a column each."""
    return [one for one in controls if one["children"] and any(child for child in one["children"])]


def _cells(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[Mapping[str, Any]], one: Mapping[str, Any]
) -> Mapping[tuple[str, str], int]:
    """How many matches lead from below a part of ``one`` to below a part of the other framework."""
    above = {control["id"]: control["parentId"] for control in rows}
    cells: defaultdict[tuple[str, str], int] = defaultdict(int)
    for control in columns:
        for match in control["sourceMatches"]:
            source = match["matchedControl"]
            if source["framework"]["id"] == one["id"] and source["id"] in above:
                cells[above[source["id"]] or source["id"], control["parentId"] or control["id"]] += 1
    return cells
