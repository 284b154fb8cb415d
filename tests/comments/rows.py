"""Comments as bundles have them."""

from __future__ import annotations

from typing import Any


def comment_rows() -> list[dict[str, Any]]:
    """One of each user who belongs to an organization of the world."""
    alphas = [_row("org-alpha", role, f"member-{role}") for role in ("owner", "admin", "editor", "auditor", "viewer")]
    return [*alphas, _row("org-beta", "foreigner", "member-foreigner")]


def _row(organization_id: str, user: str, member: str) -> dict[str, Any]:
    """One of a user: of an editor on an archived label, of others on a live task."""
    kind, state = ("labels", "archived") if user == "editor" else ("tasks", "live")
    return {
        "id": f"comment-{user}",
        "organizationId": organization_id,
        "aboutKind": kind,
        "aboutId": f"{kind}-{state}-{organization_id}",
        "authorId": member,
        "text": f"Comment of {user}",
        "createdAt": "2026-01-02T03:04:05.678Z",
        "updatedAt": "2026-01-02T03:04:05.678Z",
    }


def bare_row(row_id: str, organization_id: str, member: str) -> dict[str, Any]:
    """A new comment with the fewest values."""
    about = {"aboutKind": "controls", "aboutId": "sun.A.1"}
    return {"id": row_id, "organizationId": organization_id, **about, "authorId": member, "text": "New"}
