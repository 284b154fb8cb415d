"""The buttons with which an incident goes on: contained, notified, resolved, closed."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.records import details
from normata.console.app.records.editing import with_faults
from normata.console.app.records.forms import read, typed_entry
from normata.console.app.records.incident_view import FIELDS_OF, STATUS_OF, step_fields
from normata.console.texts import text
from normata.core.http.problems import InvalidRequest
from normata.records.kinds import Incident


async def take_step(page_request: OrganizationRequest) -> Response:
    """Set what a step sets: its status, and the fields that were filled in."""
    page_request.require("editor")
    form = await page_request.fields()
    incident_id, step = page_request.param("id"), form.get("step")
    if step not in FIELDS_OF:
        raise InvalidRequest(text("problem.form"))
    entries = [entry for field in step_fields(step) if (entry := typed_entry(field, form)) is not None]
    entered = read([entry for entry in entries if entry.shown], form.get("zone"))
    body: dict[str, Any] = dict(entered.values)
    if step in STATUS_OF:
        body["status"] = STATUS_OF[step]
    outcome = await page_request.change(
        "changeIncident", row_id=incident_id, body=body, checks_only=bool(entered.faults)
    )
    refusal = with_faults(outcome.refusal, entered.faults)
    if refusal is not None:
        return await details.show_one(page_request, refusal, kind=Incident)
    return page_request.back(form, page_request.path("records", Incident.path, incident_id), f"incident_{step}")
