"""Reports of a framework: to read, to print, and as files."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from starlette.responses import Response

from normata.console.app.api_calls import Question
from normata.console.app.organization_request import OrganizationVisit

_FEW = 200  # rows that are rendered in a few milliseconds


async def show_gaps(visit: OrganizationVisit) -> Response:
    """What is missing of a framework, and what would close most of it."""
    report = await visit.ask_one(Question("getFrameworkGaps", id=visit.param("id")))
    return await _page(visit, "app/gaps.html", report["gaps"], report=report, can_state=visit.may("editor"))


async def show_applicability(visit: OrganizationVisit) -> Response:
    """The statement of applicability of a framework."""
    report = await visit.ask_one(Question("getStatementOfApplicability", id=visit.param("id")))
    return await _page(visit, "app/applicability.html", report["controls"], report=report)


async def _page(visit: OrganizationVisit, template: str, rows: Sequence[Any], **values: Any) -> Response:
    """The page of a report; one of many rows is made on a thread, so that nobody else waits for it."""
    render = partial(visit.page, template, **values)
    return render() if len(rows) <= _FEW else await asyncio.to_thread(render)


async def gaps_file(visit: OrganizationVisit) -> Response:
    """The gaps as a file."""
    return await visit.file("getFrameworkGaps", visit.param("id"))


async def applicability_file(visit: OrganizationVisit) -> Response:
    """The statement of applicability as a file."""
    return await visit.file("getStatementOfApplicability", visit.param("id"))
