"""Questionnaires, answers and assessments of vendors as bundles have them."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from sqlalchemy import insert

from normata.core.changes.unit_of_work import Change, UnitOfWork
from normata.vendors.link_model import VendorLink
from tests.external_ids.rows import external_id_row

PARTS = [
    {
        "name": "Access",
        "questions": [
            {"id": "access-devices", "text": "Are devices encrypted?", "kind": "YES_NO", "weight": 3, "choices": []},
            {
                "id": "reviews",
                "text": "How often do you review rights?",
                "kind": "CHOICE",
                "weight": 1,
                "choices": [{"text": "Yearly", "score": 80}, {"text": "Never", "score": 0}],
            },
        ],
    },
    {
        "name": "Data",
        "questions": [{"id": "where", "text": "Where is our data?", "kind": "TEXT", "weight": 1, "choices": []}],
    },
]

# The assessments of the world beyond those of all kinds, and their statuses: one for each step.
ASSESSMENTS = {"sent": "SENT", "answered": "SENT", "submitted": "SUBMITTED", "reopened": "SUBMITTED"}

OPTIONAL = {
    "questionnaires": {"edition"},
    "vendorAnswers": {"value", "remark", "answeredById"},
}


def assessment_values(state: str, organization_id: str) -> dict[str, Any]:
    """What such an assessment has; nothing for one in another state."""
    if state not in ASSESSMENTS:
        return {}
    known = {"status": ASSESSMENTS[state], "questionnaireId": f"used-{organization_id}"}
    return known | {"vendorId": f"vendors-live-{organization_id}"}


def questionnaire_row(row_id: str, organization_id: str) -> dict[str, Any]:
    """A questionnaire."""
    return {"id": row_id, "organizationId": organization_id, "name": f"Ask {row_id}", "parts": PARTS}


def answer_row(row_id: str, organization_id: str, state: str = "answered") -> dict[str, Any]:
    """An answer to the first question of an assessment of the world."""
    return {
        "id": row_id,
        "organizationId": organization_id,
        "assessmentId": f"vendor-assessments-{state}-{organization_id}",
        "question": "access-devices",
        "answeredAt": "2026-01-02T03:04:05.678Z",
    }


def vendor_arrays(organization_ids: tuple[str, ...]) -> dict[str, list[dict[str, Any]]]:
    """The rows of organizations: questionnaires, unused and sent, an answer to the sent one, and an external id."""
    content = {"value": "PARTLY", "remark": "Half of them."}
    return {
        "questionnaires": [
            questionnaire_row(f"{use}-{owner}", owner) for owner in organization_ids for use in ("free", "used")
        ],
        "vendorAnswers": [answer_row(f"answer-{owner}", owner) | content for owner in organization_ids],
        "externalIds": [external_id_row(owner) for owner in organization_ids],
    }


def add_links(unit: UnitOfWork, organization_ids: tuple[str, ...]) -> None:
    """Add a link of each organization, because bundles contain none. Nobody can use it: its digest is of no secret."""
    for owner in organization_ids:
        values = {
            "id": f"link-for-{owner}",
            "organization_id": owner,
            "assessment_id": f"vendor-assessments-sent-{owner}",
            "digest": sha256(owner.encode()).hexdigest(),
            "created_at": "2026-01-02T03:04:05.678Z",
            "expires_at": "2126-01-02T03:04:05.678Z",
        }
        unit.rows(insert(VendorLink).values(values))
        unit.publish(Change("create", VendorLink, owner, values["id"], values))


def minimal_rows(organization_id: str) -> dict[str, dict[str, Any]]:
    """A new row of each array, with no more than it must have."""
    return {
        "questionnaires": questionnaire_row("new", organization_id),
        "vendorAnswers": answer_row("new", organization_id, "sent"),
        "externalIds": external_id_row(organization_id, "new"),
    }
