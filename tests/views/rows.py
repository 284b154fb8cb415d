"""Saved views as bundles have them."""

from __future__ import annotations

from typing import Any


def view_row(organization_id: str, number: int, member: str) -> dict[str, Any]:
    """One of two of an organization: one that is shared, and one of a member, who answers for its records."""
    return {
        "id": f"view-{number}-{organization_id}",
        "organizationId": organization_id,
        "userId": member.replace("member-", "user-"),
        "isShared": number == 1,
        "kind": "tasks",
        "name": f"View {number} of {organization_id}",
    } | {"query": {"status": ["TODO"], "sortColumn": ["title"]}}
