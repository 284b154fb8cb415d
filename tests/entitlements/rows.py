"""Items of entitlement reviews as bundles have them."""

from __future__ import annotations

from typing import Any

OPTIONAL_OF_ITEMS = {"remark", "decision", "change", "decidedAt", "decidedById", "taskId"}


def bare_item(row_id: str, organization_id: str) -> dict[str, Any]:
    """An item of a running review that nobody has decided yet."""
    return {
        "id": row_id,
        "organizationId": organization_id,
        "entitlementReviewId": f"entitlement-reviews-live-{organization_id}",
        "person": "Jonas Weber",
        "system": "Source code",
        "entitlement": "Reader",
    }


def item_row(organization_id: str, member: str) -> dict[str, Any]:
    """An item of a running review that a member has decided."""
    return bare_item(item_id(organization_id), organization_id) | {
        "entitlement": "Maintainer",
        "remark": f"An item of {organization_id}.",
        "decision": "CHANGE",
        "change": "Reader",
        "decidedAt": "2026-01-02T03:04:05.678Z",
        "decidedById": member,
        "taskId": f"tasks-archived-{organization_id}",
    }


def item_id(organization_id: str) -> str:
    """The id of the world's item of an organization."""
    return f"item-{organization_id}"
