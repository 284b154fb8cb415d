"""The buttons that verify a finding, finalize a record, let a review recur, or remove an external id."""

from __future__ import annotations

from starlette.responses import Response

from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.records import details
from normata.console.app.records.kinds import kind_of
from normata.errors import NotFound
from normata.records.kinds import Finding, Record
from normata.recurrences.kinds import REVIEWS


async def verify(page_request: OrganizationRequest) -> Response:
    """Verify a finding, with a note on what was looked at."""
    page_request.require("editor")
    form = await page_request.fields()
    finding_id = page_request.param("id")
    body = {"note": form.get("note").strip() or None}
    outcome = await page_request.change("verifyFinding", row_id=finding_id, body=body)
    if outcome.refusal is not None:
        return await details.show_one(page_request, outcome.refusal, kind=Finding)
    return page_request.back(form, page_request.path("records", Finding.path, finding_id), "finding_verified")


async def finalize(page_request: OrganizationRequest) -> Response:
    """Finalize a record."""
    page_request.require("editor")
    form = await page_request.fields()
    record_id = page_request.param("id")
    outcome = await page_request.change("finalizeRecord", row_id=record_id)
    if outcome.refusal is not None:
        return await details.show_one(page_request, outcome.refusal, kind=Record)
    return page_request.back(form, page_request.path("records", Record.path, record_id), "record_finalized")


async def set_recurrence(page_request: OrganizationRequest) -> Response:
    """Let a review recur, or end that."""
    kind, review_id = kind_of(page_request), page_request.param("id")
    if kind not in REVIEWS:
        raise NotFound
    page_request.require("editor")
    form = await page_request.fields()
    frequency = form.get("frequency")
    operation = f"{'put' if frequency else 'delete'}{kind.__name__}Recurrence"
    outcome = await page_request.change(
        operation, row_id=review_id, body={"frequency": frequency} if frequency else None
    )
    if outcome.refusal is not None:
        return await details.show_one(page_request, outcome.refusal)
    return page_request.back(form, page_request.path("records", kind.path, review_id), "recurrence_set")


async def remove_external_id(page_request: OrganizationRequest) -> Response:
    """Remove an external id from a record."""
    kind, record_id = kind_of(page_request), page_request.param("id")
    page_request.require("editor")
    form = await page_request.fields()
    outcome = await page_request.change("deleteExternalId", row_id=form.get("remove"))
    if outcome.refusal is not None:
        return await details.show_one(page_request, outcome.refusal)
    return page_request.back(form, page_request.path("records", kind.path, record_id), "external_id_removed")
