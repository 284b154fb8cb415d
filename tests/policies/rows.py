"""Versions of policies as a bundle has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

# What rows get by the steps that follow, by array.
_NOT_OF_DRAFTS = {
    *("number", "contentSha256", "editedById", "submittedById", "approvedById", "reason", "submittedAt", "approvedAt"),
    *("publishedAt", "supersededAt", "erasedAt", "acknowledgingRoles"),
}

LATER = {
    "policyVersions": _NOT_OF_DRAFTS,
    "acknowledgements": {"requestedAt", "remindedAt", "acknowledgedAt"},
}

# The policies of the world beyond those of all kinds, and their statuses: one for each step that ends what it begins
# with. The published one has a draft.
POLICIES = {
    **dict.fromkeys(("reviewed", "rejected", "withdrawn"), "IN_REVIEW"),
    "approved": "APPROVED",
    **dict.fromkeys(("published", "retired"), "PUBLISHED"),
}


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


def acknowledgement_row(organization_id: str, member_id: str) -> dict[str, Any]:
    """That a member was asked to acknowledge that version."""
    key = {"organizationId": organization_id, "versionId": f"draft-{organization_id}", "memberId": member_id}
    return {"id": f"ask-{organization_id}", **key}


def open_acknowledgements(members: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """The rows of members who were asked long ago to acknowledge the published version, which begins with its load."""
    for owner, member in members.items():
        version = f"imported-{sha256(f'policies-published-{owner}'.encode()).hexdigest()[:32]}"
        key = {"id": f"open-{owner}", "organization_id": owner, "version_id": version, "member_id": member}
        yield key | {"requested_at": "2026-01-02T03:04:05.678Z"}


def policy_arrays(members: Mapping[str, str]) -> dict[str, list[dict[str, Any]]]:
    """The rows of organizations, each with the member who is asked."""
    return {
        "policyVersions": [policy_draft_row(owner) for owner in members],
        "acknowledgements": [acknowledgement_row(owner, member) for owner, member in members.items()],
    }


def minimal_rows(organization_id: str) -> dict[str, dict[str, Any]]:
    """A new row of each array, with no more than it must have."""
    new = {"id": "new"}
    return {
        "policyVersions": policy_draft_row(organization_id)
        | new
        | {"policyId": f"policies-approved-{organization_id}"},
        "acknowledgements": acknowledgement_row(organization_id, "member-viewer") | new,
    }
