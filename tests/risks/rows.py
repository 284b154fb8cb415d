"""What reviews say as bundles have it: outcomes of risk reviews, and the items of entitlement reviews."""

from __future__ import annotations

from typing import Any

from tests.entitlements.rows import OPTIONAL_OF_ITEMS, bare_item

RATED: dict[str, Any] = {"inherentProbability": 4, "inherentImpact": 4, "residualProbability": 2, "residualImpact": 3}
RATED |= {"treatmentStrategy": "MITIGATE"}
_OF_OUTCOMES = {
    *("note", "recordedById", "level", "acceptedAt", "nextReviewAt", "inherentProbability", "inherentImpact"),
    *("residualProbability", "residualImpact", "targetProbability", "targetImpact"),
}


def _bare_outcome(row_id: str, organization_id: str) -> dict[str, Any]:
    """What a running review says of a risk, with the fewest values."""
    return {
        "id": row_id,
        "organizationId": organization_id,
        "riskReviewId": f"risk-reviews-live-{organization_id}",
        "riskId": f"risks-live-{organization_id}",
        "name": "Flood",
        "recordedAt": "2026-01-02T03:04:05.678Z",
    }


OPTIONAL_OF_REVIEWS = {"riskReviewOutcomes": _OF_OUTCOMES, "entitlementReviewItems": OPTIONAL_OF_ITEMS}


def bare_reviews(row_id: str, organization_id: str) -> dict[str, dict[str, Any]]:
    """By array, what a running review says, with the fewest values."""
    return {
        "riskReviewOutcomes": _bare_outcome(row_id, organization_id),
        "entitlementReviewItems": bare_item(row_id, organization_id),
    }


def outcome_row(organization_id: str, member: str = "member-owner") -> dict[str, Any]:
    """What an archived review of an organization has said of a risk."""
    return {
        "id": f"outcome-{organization_id}",
        "organizationId": organization_id,
        "riskReviewId": f"risk-reviews-archived-{organization_id}",
        "riskId": f"risks-live-{organization_id}",
        "outcome": "CONFIRMED",
        "note": f"The review of {organization_id}.",
        "recordedAt": "2026-01-02T03:04:05.678Z",
        "recordedById": member,
        "name": "risk live",
        "status": "OPEN",
        "treatmentStrategy": "MITIGATE",
        "residualProbability": 5,
        "residualImpact": 5,
        "level": "CRITICAL",
    }
