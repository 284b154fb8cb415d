"""Recurrences as bundles have them."""

from __future__ import annotations

from typing import Any

OPTIONAL = {"frequency", "day", "nextId", "madeAt"}


def recurrence_rows(organization_id: str) -> list[dict[str, Any]]:
    """The live reviews of an organization recur, and have had their next ones, which are archived."""
    return [
        {
            "id": f"recurrence-of-{kind}-{organization_id}",
            "organizationId": organization_id,
            "kind": kind,
            "recordId": f"{kind}-live-{organization_id}",
            "frequency": "MONTHLY",
            "day": 31,
            "nextId": f"{kind}-archived-{organization_id}",
            "madeAt": "2026-01-02T03:04:05.678Z",
        }
        for kind in ("entitlement-reviews", "risk-reviews")
    ]


def bare_row(row_id: str, organization_id: str) -> dict[str, Any]:
    """A new recurrence with the fewest values."""
    record = {"kind": "tasks", "recordId": f"tasks-live-{organization_id}"}
    return {"id": row_id, "organizationId": organization_id, **record}
