"""What the page of an audit shows beside what every record has."""

from __future__ import annotations

from normata.audits.model import NOT_CHECKED
from normata.audits.rows import to_member
from normata.console.app.api_calls import ApiQuery
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.records.risk_details import Progress
from normata.records.base import Restorable
from normata.records.kinds import Audit

_FEW = "5"


async def audit_progress(page_request: OrganizationRequest, kind: type[Restorable], row_id: str) -> Progress | None:
    """How many rows its checklist has, and how many of them are checked; null for other records."""
    if kind is not Audit:
        return None
    found = await page_request.ask_one(ApiQuery("listAuditChecklist", {"limit": _FEW}, row_id))
    total = sum(found["counts"].values())
    return Progress(total, total - found["counts"][to_member(NOT_CHECKED)])
