"""Versions of statements as a bundle has them."""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from typing import Any


def version_row(organization_id: str, framework_id: str, approver_id: str) -> dict[str, Any]:
    """A draft of a statement that has no rows, made without PDF."""
    row: dict[str, Any] = {
        "id": f"soa-{organization_id}",
        "organizationId": organization_id,
        "frameworkId": framework_id,
        "number": 1,
        "title": f"Statement of {organization_id}",
        "approverId": approver_id,
    }
    statement = json.dumps(_statement(organization_id, framework_id)).encode()
    for name, content in (("json", statement), ("csv", b"Identifier,Name\r\n"), ("xlsx", b"PK")):
        row[f"{name}Sha256"] = sha256(content).hexdigest()
        row[f"{name}File"] = b64encode(content).decode()
    return row


def _statement(organization_id: str, framework_id: str) -> dict[str, Any]:
    """A statement about no requirement, with all its members."""
    counts = dict.fromkeys(("none", "partial", "full"), 0)
    zero = {"requirements": 0, "applicable": 0, "notApplicable": 0, "withoutAssessment": 0, "conflicts": 0, "stale": 0}
    none: dict[str, Any] = zero | {"indirectlyCovered": 0, "assessed": counts, "effective": counts}
    return {
        "organization": {"id": organization_id, "name": organization_id, "slug": organization_id},
        "framework": {"id": framework_id, "name": "Own", "slug": "own", "version": "1"}
        | {"identifier": framework_id.removeprefix("fw-").upper()},
        **dict.fromkeys(("baseline", "title", "scope", "version", "approver", "log", "applicabilityPrefix")),
        "date": "2026-01-02",
        "otherFrameworks": [],
        "counts": none,
        "objections": {
            "excludedWithoutJustification": 0,
            "includedWithoutJustification": 0,
            "applicableWithoutStatus": 0,
            "mandatoryExcluded": 0,
            "conflicting": 0,
        },
        "controls": [],
        "mandatory": {"counts": none, "requirements": []},
        "otherRequirements": None,
    }


def version_rows(organization_id: str, framework_id: str, approver_id: str) -> list[dict[str, Any]]:
    """A version in each state, the draft first."""
    draft = version_row(organization_id, framework_id, approver_id)
    approved = {"state": "APPROVED", "approvedAt": "2026-02-03T04:05:06.789Z"}
    over = {"state": "SUPERSEDED", "approvedAt": "2026-01-03T04:05:06.789Z", "supersededAt": approved["approvedAt"]}
    return [
        draft | {"number": 3},
        draft | {"id": f"approved-{draft['id']}", "number": 2} | approved,
        draft | {"id": f"superseded-{draft['id']}", "number": 1} | over,
    ]
