"""More of everything that is listed, for the tests of all lists: a list of something else needs its rows here."""

from __future__ import annotations

from typing import Any

from normata.records.base import Restorable
from tests import world
from tests.world import ALPHA


def crowd(count: int) -> dict[str, list[dict[str, Any]]]:
    """So many more of each, of alpha: each control with a match, a child and a statement, and labels archived, too."""
    numbers = range(count)
    alphas = [{"id": f"crowd-{number}", "organizationId": ALPHA} for number in numbers]
    return {
        "frameworks": [{"id": f"crowd-{number}", "name": f"Crowded {number}"} for number in numbers],
        "controls": [
            {
                "id": f"crowd-{number}",
                "frameworkId": "fw-sun",
                "name": f"Crowded {number}",
                "parentId": f"crowd-{number - 1}" if number % 10 else None,
            }
            for number in numbers
        ],
        "controlMatches": [
            {"id": f"crowd-{number}", "sourceControlId": "own.A.1", "targetControlId": f"crowd-{number}"}
            | {"matchLevel": "FULL"}
            for number in numbers
        ],
        "frameworkAdoptions": [row | {"frameworkId": row["id"]} for row in alphas],
        "controlCoverages": [row | {"controlId": row["id"]} for row in alphas],
        "notifications": [
            row | {"userId": f"user-{role}", "id": f"{row['id']}-{role}"} for row in alphas for role in world.ROLES
        ],
        **{
            kind.path: [row | {kind.title_column(): f"Crowded {row['id']}"} for row in alphas]
            for kind in Restorable.kinds
        },
        "labels": [
            row | {"name": row["id"], "id": f"{place}{row['id']}", "archivedAt": archived_at}
            for row in alphas
            for place, archived_at in (("", None), ("archived-", world.ARCHIVED))
        ],
    }
