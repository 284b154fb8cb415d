"""More of everything that is listed, for the tests of all lists: a list of something else needs its rows here."""

from __future__ import annotations

from typing import Any

from pydantic.alias_generators import to_camel

from normata.records.base import Restorable
from normata.records.due.queries import due_dates
from normata.records.kinds import Label
from tests import world
from tests.external_ids.rows import external_id_row
from tests.soa_versions.rows import version_row
from tests.vendors.rows import questionnaire_row
from tests.world import ALPHA


def crowd(count: int, name: str = "crowd") -> dict[str, list[dict[str, Any]]]:
    """So many more of each, of alpha: each control with a match, a child and a statement, and labels archived, too.

    ``name`` is that of their ids.
    """
    numbers = range(count)
    alphas = [{"id": f"{name}-{number}", "organizationId": ALPHA} for number in numbers]
    return {
        "users": [{"id": f"{name}-{number}", "email": f"{name}-{number}@alpha.example"} for number in numbers],
        "memberships": [row | {"userId": row["id"]} for row in alphas],
        "frameworks": [{"id": f"{name}-{number}", "name": f"Crowded {number}"} for number in numbers],
        "controls": [
            {
                "id": f"{name}-{number}",
                "frameworkId": "fw-sun",
                "name": f"Crowded {number}",
                "parentId": f"{name}-{number - 1}" if number % 10 else None,
            }
            for number in numbers
        ],
        "controlMatches": [
            {"id": f"{name}-{number}", "sourceControlId": "own.A.1", "targetControlId": f"{name}-{number}"}
            | {"matchLevel": "FULL"}
            for number in numbers
        ],
        "frameworkAdoptions": [row | {"frameworkId": row["id"]} for row in alphas],
        "controlCoverages": [row | {"controlId": row["id"]} for row in alphas],
        "notifications": [
            row | {"userId": f"user-{role}", "id": f"{row['id']}-{role}"} for row in alphas for role in world.ROLES
        ],
        "savedViews": [
            row | {"userId": row["id"], "isShared": True, "kind": "tasks", "name": row["id"]} for row in alphas
        ],
        "soaVersions": [
            version_row(ALPHA, "fw-own", "member-editor") | row | {"title": row["id"], "number": number}
            for number, row in enumerate(alphas, 4)
        ],
        **{kind.path: [_record(kind, row) for row in alphas] for kind in Restorable.kinds},
        "externalIds": [external_id_row(ALPHA, row["id"]) for row in alphas],
        "questionnaires": [questionnaire_row(row["id"], ALPHA) for row in alphas],
        "comments": [
            row | {"aboutKind": "tasks", "aboutId": row["id"], "authorId": "member-owner", "text": "Well"}
            for row in alphas
        ],
        "links": [
            row | {"fromKind": "tasks", "fromId": row["id"], "toKind": "controls", "toId": row["id"]} for row in alphas
        ],
        "labels": [
            _record(Label, row | {"id": f"{place}{row['id']}", "archivedAt": archived_at})
            for row in alphas
            for place, archived_at in (("", None), ("archived-", world.ARCHIVED))
        ],
    }


def _record(kind: type[Restorable], row: dict[str, Any]) -> dict[str, Any]:
    """A record that the editor answers for, overdue where it is of the first kind with such dates."""
    due = {to_camel(date.column): world.DUE for date in due_dates()[:1] if date.kind is kind}
    answers = {to_camel(kind.responsible): "member-editor"} if kind.responsible is not None else {}
    return row | {kind.title_column(): f"Crowded {row['id']}"} | due | answers
