"""What the pages of risks and of their reviews show beside what every record has."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from normata.console.app.api_calls import ApiQuery
from normata.console.app.organization_request import OrganizationRequest
from normata.records.assurance import Risk
from normata.records.base import Restorable
from normata.records.kinds import EntitlementReview, RiskReview

_FEW = "5"


class RiskDetails(NamedTuple):
    """What treats a risk, and the ratings that it has had."""

    treatment: Mapping[str, Any]
    ratings: Sequence[Mapping[str, Any]]


class Progress(NamedTuple):
    """How many risks a review lists, and how many have an outcome."""

    total: int
    done: int


async def risk_details(page_request: OrganizationRequest, kind: type[Restorable], row_id: str) -> RiskDetails | None:
    """What the page of a risk shows; null for other records."""
    if kind is not Risk:
        return None
    treatment, ratings = await page_request.ask(
        ApiQuery("getRiskTreatment", id=row_id), ApiQuery("getRiskRatings", id=row_id)
    )
    return RiskDetails(treatment, ratings["items"])


async def review_progress(page_request: OrganizationRequest, kind: type[Restorable], row_id: str) -> Progress | None:
    """What the page of a risk review shows; null for other records."""
    if kind is not RiskReview:
        return None
    every, left = await page_request.ask(
        ApiQuery("listRiskReviewItems", {"limit": _FEW}, row_id),
        ApiQuery("listRiskReviewItems", {"limit": _FEW, "isOpen": "true"}, row_id),
    )
    return Progress(every["total"], every["total"] - left["total"])


async def entitlement_progress(
    page_request: OrganizationRequest, kind: type[Restorable], row_id: str
) -> Mapping[str, Any] | None:
    """What the page of an entitlement review shows; null for other records."""
    if kind is not EntitlementReview:
        return None
    found: Mapping[str, Any] = await page_request.ask_one(ApiQuery("getEntitlementReviewProgress", id=row_id))
    return found


async def resting_on_gaps(
    page_request: OrganizationRequest, kind: type[Restorable], records: Sequence[Mapping[str, Any]]
) -> Collection[str]:
    """The ids of those of a page of risks whose claims rest on a gap; none of other records."""
    ids = [one["id"] for one in records]
    if kind is not Risk or not ids:
        return ()
    query = {"id": ids, "restsOnGap": "true"}
    found = await page_request.ask_one(ApiQuery("listRiskRegister", query))
    return {one["id"] for one in found["items"]}
