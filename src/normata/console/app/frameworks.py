"""The pages of frameworks: the list, one framework, the preview of an adoption, and the crosswalk of two."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response

from normata.console.app import coverage_series
from normata.console.app.api_calls import ApiQuery, Refusal
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.reports import assessable
from normata.console.pictures import Axis, matrix
from normata.console.texts import text
from normata.core.http.problems import InvalidRequest

_MAX_PAGE = 100
_MOST_WINS = 6
_MAX_PAGES = 20  # of controls, for each framework in a crosswalk


async def show_list(page_request: OrganizationRequest) -> Response:
    """The frameworks that the organization can see, whether adopted or not."""
    wanted = {name: page_request.query.get(name, "") for name in ("search", "page")}
    if page_request.past is not None:  # of any other one there is only the preview of adopting it now
        wanted["adoptedOnly"] = "true"
    (found,) = await page_request.ask(ApiQuery("listFrameworks", wanted))
    return page_request.page(
        "app/frameworks.html", frameworks=found, search=wanted["search"], can_adopt=page_request.may("admin")
    )


async def show_one(page_request: OrganizationRequest) -> Response:
    """An adopted framework with its coverage, in total and by category."""
    framework_id, past = page_request.param("id"), page_request.past
    reports = (
        ApiQuery("getFrameworkCoverage", id=framework_id),
        ApiQuery("getFrameworkGaps", id=framework_id),
        ApiQuery("getCoverageHistory", {"step": "month", "to": past.moment if past else ""}, id=framework_id),
        coverage_series.AUDITS,
    )
    of_today = (ApiQuery("getFramework", id=framework_id), ApiQuery("listBaselines", id=framework_id))
    if past is None:
        summary, report, series, audits, framework, listed = await page_request.ask(*reports, *of_today)
    else:  # it may be left, and not published any more
        summary, report, series, audits = await page_request.ask(*reports)
        framework, listed = await page_request.ask_if_there(*of_today) or (None, {"baselines": [], "original": None})
    counts, name = summary["counts"], summary["framework"]["name"]
    return page_request.page(
        "app/framework.html",
        summary=summary,
        baselines=listed,
        shown=coverage_series.show(page_request, name, series, listed["baselines"], audits["items"]),
        change=coverage_series.change_of(series, counts["effective"]),
        changed=coverage_series.counts_changed(series, counts["effective"] | {"excluded": counts["notApplicable"]}),
        ready=_share(counts["effective"]["full"], counts["applicable"]),
        wins=_wins(report["nextSteps"], counts),
        can_adopt=page_request.may("admin"),
        **assessable(page_request),
        can_edit=page_request.may("admin") and framework is not None and framework["organizationId"] is not None,
    )


def _share(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0


def _wins(next_steps: Sequence[Mapping[str, Any]], counts: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], float]]:
    """The best next steps, each with the percentage that would be covered fully after it alone."""
    full = counts["effective"]["full"]
    return [(one, _share(full + one["closes"], counts["applicable"])) for one in next_steps[:_MOST_WINS]]


async def preview(page_request: OrganizationRequest) -> Response:
    """The preview of adopting a framework, or of changing its baseline."""
    return await _previewed(page_request, page_request.query.get("baseline"), None)


async def _previewed(page_request: OrganizationRequest, baseline: str | None, refusal: Refusal | None) -> Response:
    """The preview with a baseline: an empty string for none, null for the one adopted now.

    Whoever may adopt also sees the result of a dry run.
    """
    framework_id = page_request.param("id")
    query = {} if baseline is None else {"baseline": baseline}
    found, listed = await page_request.ask(
        ApiQuery("previewAdoption", query, id=framework_id), ApiQuery("listBaselines", id=framework_id)
    )
    choices = [
        (one["id"], text("app.baseline.of", name=one["name"], count=one["requirements"])) for one in listed["baselines"]
    ]
    effects = None
    if page_request.may("admin") and refusal is None and (baseline is not None or not found["isAdopted"]):
        body = None if baseline is None else {"baseline": baseline or None}
        effects = (await page_request.change("adoptFramework", row_id=framework_id, body=body, dry_run=True)).answer
    return page_request.page(
        "app/adoption.html",
        status=200 if refusal is None else refusal.status,
        found=found,
        effects=effects,
        baselines={"choices": choices},
        refusal=refusal,
        can_adopt=page_request.may("admin"),
    )


async def adopt_or_leave(page_request: OrganizationRequest) -> Response:
    """Adopt a framework, or leave it, as ``step`` says."""
    page_request.require("admin")
    form, framework_id = await page_request.fields(), page_request.param("id")
    is_leaving = form.get("step") == "leave"
    if form.get("step") == "preview":
        path = page_request.path("frameworks", framework_id, "adoption")
        return page_request.go(f"{path}?{urlencode({'baseline': form.get('baseline')})}")
    if not is_leaving and form.get("step") != "adopt":
        raise InvalidRequest(text("problem.form"))
    body = {"baseline": form.get("baseline") or None} if form.has("hasBaseline") else None
    outcome = await page_request.change(
        "leaveFramework" if is_leaving else "adoptFramework", row_id=framework_id, body=body
    )
    if outcome.refusal is not None:
        return await _previewed(page_request, None, outcome.refusal)
    if is_leaving:
        return page_request.go(page_request.path("frameworks"), "left")
    return page_request.go(page_request.path("frameworks", framework_id), "adopted")


async def show_crosswalk(page_request: OrganizationRequest) -> Response:
    """How two adopted frameworks match: the number of matches between each part of one and each part of the other."""
    (found,) = await page_request.ask(ApiQuery("listFrameworks", {"adoptedOnly": "true", "sortColumn": "identifier"}))
    adopted = found["items"]
    by_slug = {one["slug"]: one for one in adopted}
    source, target = page_request.query.get("from", ""), page_request.query.get("to", "")
    one, other = by_slug.get(source), by_slug.get(target)
    if len(adopted) > 1 and not target and (one is not None or not source):
        one, other = await _best_pair(page_request, adopted, one)
    if one is None or other is None:
        return page_request.page("app/crosswalk.html", adopted=adopted, one=None, other=None)
    (rows, is_all), (columns, are_all) = await _controls(page_request, one, other)
    return page_request.page(
        "app/crosswalk.html",
        adopted=adopted,
        choices=[(framework["slug"], framework["identifier"]) for framework in adopted],
        one=one,
        other=other,
        is_whole=is_all and are_all,
        forth=_counted(columns, one),
        back=_counted(rows, other),
        **_drawn(page_request, one, other, rows, columns),
    )


async def _best_pair(
    page_request: OrganizationRequest, adopted: Sequence[Mapping[str, Any]], one: Mapping[str, Any] | None
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The two adopted frameworks with the most matches between them. ``one`` is one of the two, if not null."""
    counted = await page_request.ask_one(ApiQuery("countMatches"))
    by_id = {framework["id"]: framework for framework in adopted}
    by_size = sorted(adopted, key=lambda framework: (framework["_count"]["controls"], framework["id"]))
    order = [framework["id"] for framework in by_size]  # the smaller one becomes the rows: a page has more room across
    best: Counter[tuple[str, str]] = Counter()
    for count in counted["items"]:
        pair = (count["sourceFrameworkId"], count["targetFrameworkId"])
        if by_id.keys() >= set(pair) and (one is None or one["id"] in pair):
            first, second = sorted(pair, key=order.index)
            best[first, second] += count["matches"]
    if not best:
        first = one or adopted[0]
        return first, next(framework for framework in adopted if framework["id"] != first["id"])
    (source, target), _ = max(best.items(), key=lambda pair: pair[1])
    return (by_id[target], by_id[source]) if one is not None and one["id"] == target else (by_id[source], by_id[target])


def _drawn(
    page_request: OrganizationRequest,
    one: Mapping[str, Any],
    other: Mapping[str, Any],
    all_rows: Sequence[Mapping[str, Any]],
    all_columns: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """The matrix as a picture and as a table, and the matches of the selected cell."""
    cells = _cells(all_rows, all_columns, one)
    above, beside = {row for row, _ in cells}, {column for _, column in cells}
    rows = [control for control in _parts(all_rows) if control["id"] in above]
    columns = [control for control in _parts(all_columns) if control["id"] in beside]
    chosen = (page_request.query.get("row", ""), page_request.query.get("column", ""))

    def axes(controls: Sequence[Mapping[str, Any]]) -> list[Axis]:
        return [Axis(control["id"], control["identifier"], control["name"]) for control in controls]

    picture = matrix(
        name=text("crosswalk.matrix", source=one["identifier"], target=other["identifier"]),
        about=text("app.crosswalk.about", source=one["identifier"], target=other["identifier"]),
        rows=axes(rows),
        columns=axes(columns),
        counts=cells,
        href=lambda row, column: (
            page_request.link(row=row, column=column, **{"from": one["slug"], "to": other["slug"]}) + "#cell"
        ),
        chosen=chosen if chosen in cells else None,
    )
    return {
        "rows": rows,
        "columns": columns,
        "cells": cells,
        "picture": picture,
        "pair": _pair(chosen, all_rows, all_columns) if chosen in cells else None,
    }


def _pair(
    chosen: tuple[str, str],
    rows: Sequence[Mapping[str, Any]],
    columns: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """The matches of a cell, which lead from below its row to below its column."""
    by_id = {control["id"]: control for control in rows}
    matches = []
    for control in columns:
        if chosen[1] not in (control["parentId"], control["id"]):
            continue
        for match in control["sourceMatches"]:
            source = by_id.get(match["matchedControl"]["id"])
            if source is not None and (source["parentId"] or source["id"]) == chosen[0]:
                matches.append(
                    {
                        "source": source,
                        "source_level": source["effectiveCoverageStatus"],
                        "level": match["matchLevel"],
                        "target": control,
                        "target_level": control["effectiveCoverageStatus"],
                    }
                )
    names = {control["id"]: f"{control['identifier']} {control['name']}" for control in (*rows, *columns)}
    return {"row": names[chosen[0]], "column": names[chosen[1]], "matches": matches}


async def _controls(page_request: OrganizationRequest, *frameworks: Mapping[str, Any]) -> list[tuple[list[Any], bool]]:
    """The controls of each framework, and whether they are complete: a very large one is cut."""
    pages = [min(-(-framework["_count"]["controls"] // _MAX_PAGE), _MAX_PAGES) for framework in frameworks]
    api_queries = [
        ApiQuery("listControls", {"frameworks": framework["id"], "page": str(number + 1)})
        for framework, count in zip(frameworks, pages, strict=True)
        for number in range(count)
    ]
    answers = iter(await page_request.ask(*api_queries) if api_queries else [])
    found = [[control for answer in islice(answers, count) for control in answer["items"]] for count in pages]
    return [
        (controls, framework["_count"]["controls"] <= _MAX_PAGES * _MAX_PAGE)
        for framework, controls in zip(frameworks, found, strict=True)
    ]


def _counted(controls: Sequence[Mapping[str, Any]], source: Mapping[str, Any]) -> Mapping[str, int]:
    """How many requirements there are, and how many of them have a full match or only partial ones from ``source``."""
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
    """The controls that have children, in catalog order. Each becomes a row or a column."""
    return [one for one in controls if one["children"] and any(child for child in one["children"])]


def _cells(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[Mapping[str, Any]], one: Mapping[str, Any]
) -> Mapping[tuple[str, str], int]:
    """The number of matches from below each part of ``one`` to below each part of the other framework."""
    above = {control["id"]: control["parentId"] for control in rows}
    cells: defaultdict[tuple[str, str], int] = defaultdict(int)
    for control in columns:
        for match in control["sourceMatches"]:
            source = match["matchedControl"]
            if source["framework"]["id"] == one["id"] and source["id"] in above:
                cells[above[source["id"]] or source["id"], control["parentId"] or control["id"]] += 1
    return cells
