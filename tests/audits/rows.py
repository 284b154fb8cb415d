"""Rows of checklists as bundles have them."""

from __future__ import annotations

from typing import Any

OPTIONAL_OF_ROWS = {"checklistRows": {"identifier", "note", "checkedAt", "checkedById"}}


def new_checklist_row(organization_id: str) -> dict[str, dict[str, Any]]:
    """A new row with the fewest values, by its array."""
    row = {"id": "new", "organizationId": organization_id, "auditId": f"audits-live-{organization_id}"}
    return {"checklistRows": row | {"aboutKind": "controls", "aboutId": "sun.A.8", "label": "New"}}


def checklist_row(organization_id: str, member: str) -> dict[str, Any]:
    """What a member has checked in the live audit of an organization, of which there is a finding."""
    return {
        "id": f"row-{organization_id}",
        "organizationId": organization_id,
        "auditId": f"audits-live-{organization_id}",
        "aboutKind": "policies",
        "aboutId": f"policies-live-{organization_id}",
        "label": "policy live",
        "position": 1,
        "status": "CONFORMING",
        "note": f"Seen in {organization_id}.",
        "checkedAt": "2026-01-02T03:04:05.678Z",
        "checkedById": member,
        "findingIds": [f"auditItems-live-{organization_id}"],
    }


def scope_row(organization_id: str) -> dict[str, Any]:
    """A policy is in scope of that audit, and has no row yet."""
    ends = ("policies", f"policies-approved-{organization_id}", "audits", f"audits-live-{organization_id}")
    return {
        "id": f"scope-{organization_id}",
        "organizationId": organization_id,
        **dict(zip(("fromKind", "fromId", "toKind", "toId"), ends, strict=True)),
        "relation": "IN_SCOPE",
        "createdAt": "2026-01-02T03:04:05.677Z",
    }
