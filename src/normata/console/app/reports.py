"""Reports of a framework: to read, to print, and as files."""

from __future__ import annotations

from starlette.responses import Response

from normata.console.app.asking import Question
from normata.console.app.visiting import OrganizationVisit


async def show_gaps(visit: OrganizationVisit) -> Response:
    """What is missing of a framework, and what would close most of it."""
    report = await visit.ask_one(Question("getFrameworkGaps", id=visit.param("id")))
    return visit.page("app/gaps.html", report=report, can_state=visit.may("editor"))


async def show_applicability(visit: OrganizationVisit) -> Response:
    """The statement of applicability of a framework."""
    report = await visit.ask_one(Question("getStatementOfApplicability", id=visit.param("id")))
    return visit.page("app/applicability.html", report=report)


async def gaps_file(visit: OrganizationVisit) -> Response:
    """The gaps as a file."""
    return await visit.file("getFrameworkGaps", visit.param("id"))


async def applicability_file(visit: OrganizationVisit) -> Response:
    """The statement of applicability as a file."""
    return await visit.file("getStatementOfApplicability", visit.param("id"))
