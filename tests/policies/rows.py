"""Versions of policies as a bundle has them."""

from __future__ import annotations

from typing import Any

# What a draft gets by the steps that follow.
NOT_OF_DRAFTS = {
    *("number", "contentSha256", "editedById", "submittedById", "approvedById", "reason", "submittedAt", "approvedAt"),
    *("publishedAt", "supersededAt", "erasedAt"),
}

# The policies of the world beyond those of all kinds, and their statuses. The published one has a draft.
POLICIES = {"reviewed": "IN_REVIEW", "approved": "APPROVED", "published": "PUBLISHED"}


def policy_values(state: str, approver_id: str) -> dict[str, Any]:
    """What such a policy has; nothing for a record in another state."""
    known = {"approverId": approver_id, "content": "Lock the door."}
    return known | {"status": POLICIES[state]} if state in POLICIES else {}


def policy_draft_row(organization_id: str) -> dict[str, Any]:
    """The draft of the next version of the published policy of the world."""
    return {
        "id": f"draft-{organization_id}",
        "organizationId": organization_id,
        "policyId": f"policies-published-{organization_id}",
        "title": "policy published",
        "content": "Lock the doors.",
    }
