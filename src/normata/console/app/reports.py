"""Reports about a framework: to read, to print and to download."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from starlette.responses import Response

from normata.console.app.api_calls import ApiQuery
from normata.console.app.downloads import download_report
from normata.console.app.organization_request import OrganizationRequest
from normata.console.texts import text
from normata.reports.statement import FORMATS, OTHERS

_FEW = 200  # rows; rendering them takes a few milliseconds
_LENGTHS = ("12", "25", "50")  # numbers of steps of a plan


async def show_gaps(page_request: OrganizationRequest) -> Response:
    """The gaps of a framework, and the next steps that would close most of them."""
    report = await page_request.ask_one(ApiQuery("getFrameworkGaps", id=page_request.param("id")))
    return await _page(page_request, "app/gaps.html", report["gaps"], report=report, **assessable(page_request))


async def show_plan(page_request: OrganizationRequest) -> Response:
    """The plan that closes many gaps of a framework with few assessments."""
    steps = page_request.query.get("steps", _LENGTHS[0])
    plan = await page_request.ask_one(ApiQuery("getGapPlan", {"steps": steps}, id=page_request.param("id")))
    lengths = [
        (text("app.plan.steps_of", count=length), page_request.link(steps=length), length == steps)
        for length in _LENGTHS
    ]
    return page_request.page("app/plan.html", plan=plan, lengths=lengths, **assessable(page_request))


async def show_applicability(page_request: OrganizationRequest) -> Response:
    """The statement of applicability of a framework, with the necessary controls of further ones."""
    framework_id, others = page_request.param("id"), page_request.values(OTHERS)
    report, adopted = await page_request.ask(
        ApiQuery("getStatementOfApplicability", {OTHERS: others}, id=framework_id),
        ApiQuery("listFrameworks", {"adoptedOnly": "true", "sortColumn": "identifier"}),
    )
    rows = [*report["controls"], *report["mandatory"]["requirements"]]
    return await _page(
        page_request,
        "app/applicability.html",
        rows,
        report=report,
        objected=[one for one in rows if one["objections"]],
        # From a control that was assessed to the objections that remain.
        return_to=page_request.here_with(objections="shown") if page_request.may("editor") else "",
        others=others,
        further=[(one["id"], one["identifier"]) for one in adopted["items"] if one["id"] != framework_id],
        frameworks={one["id"]: one["identifier"] for one in report["otherFrameworks"]},
        formats=[name for name, one in FORMATS.by_name.items() if one.is_there()],
    )


def assessable(page_request: OrganizationRequest) -> dict[str, Any]:
    """What a page needs whose rows can be assessed as full: whether the person may, and what they have ticked."""
    return {
        "can_assess": page_request.may("editor"),
        "selected": frozenset(page_request.request.query_params.getlist("selected")),
    }


async def _page(page_request: OrganizationRequest, template: str, rows: Sequence[Any], **values: Any) -> Response:
    """The page of a report. One with many rows is rendered on a thread, so that other requests do not wait."""
    render = partial(page_request.page, template, **values)
    return render() if len(rows) <= _FEW else await asyncio.to_thread(render)


async def gaps_file(page_request: OrganizationRequest) -> Response:
    """The gaps as a file to download."""
    return await download_report(page_request, "getFrameworkGaps", page_request.param("id"))


async def oscal_file(page_request: OrganizationRequest) -> Response:
    """A document of OSCAL to download: the ``model`` that the address names, or the original."""
    chosen = {name: page_request.query[name] for name in ("model", "original") if name in page_request.query}
    return await download_report(page_request, "getFrameworkOscal", page_request.param("id"), **chosen)


async def applicability_file(page_request: OrganizationRequest) -> Response:
    """The statement of applicability as a file to download."""
    others = page_request.values(OTHERS)
    return await download_report(
        page_request, "getStatementOfApplicability", page_request.param("id"), **{OTHERS: others}
    )
