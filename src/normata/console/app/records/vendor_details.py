"""What the pages of vendors and of their assessments show of answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from normata.console.app.api_calls import ApiQuery
from normata.console.app.organization_request import OrganizationRequest
from normata.records.assurance import VendorAssessment
from normata.records.base import Restorable
from normata.records.kinds import Vendor


class AnsweredAssessment(NamedTuple):
    """The answers of an assessment; ``link`` is null on the page of its vendor."""

    assessment_id: str
    answers: Mapping[str, Any]
    link: Mapping[str, Any] | None = None


async def answers_for(
    page_request: OrganizationRequest, kind: type[Restorable], record: Mapping[str, Any]
) -> AnsweredAssessment | None:
    """The answers of an assessment, or of the last one of a vendor; null for other records."""
    if kind is VendorAssessment:
        answers, link = await page_request.ask(
            ApiQuery("getVendorAnswers", id=record["id"]), ApiQuery("getVendorLink", id=record["id"])
        )
        return AnsweredAssessment(record["id"], answers, link)
    if kind is not Vendor or record["lastAssessmentId"] is None:
        return None
    found = await page_request.ask_if_there(ApiQuery("getVendorAnswers", id=record["lastAssessmentId"]))
    return None if found is None else AnsweredAssessment(record["lastAssessmentId"], found[0])
