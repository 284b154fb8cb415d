"""Links as bundles have them."""

from __future__ import annotations

from typing import Any


def link_row(organization_id: str, number: int, member: str = "member-owner") -> dict[str, Any]:
    """One of an organization: a member owns a finding, a label is related to an archived task, evidence supports."""
    ends = [
        ("memberships", member, "auditItems", f"auditItems-live-{organization_id}"),
        ("labels", f"labels-live-{organization_id}", "tasks", f"tasks-archived-{organization_id}"),
        ("evidence", f"evidence-live-{organization_id}", "controls", "sun.A.11"),
    ][number - 1]
    return {
        "id": f"link-{number}-{organization_id}",
        "organizationId": organization_id,
        **dict(zip(("fromKind", "fromId", "toKind", "toId"), ends, strict=True)),
        "relation": ("OWNS", "RELATES", "SUPPORTS")[number - 1],
        "note": f"Link {number} of {organization_id}",
        "createdAt": "2026-01-02T03:04:05.678Z",
    }


def bare_row(row_id: str, organization_id: str) -> dict[str, Any]:
    """A new link with the fewest values."""
    ends = {"fromKind": "controls", "fromId": "sun.A.1", "toKind": "labels", "toId": f"labels-live-{organization_id}"}
    return {"id": row_id, "organizationId": organization_id, **ends}
