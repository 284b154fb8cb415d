"""What the examples of several reports in the documentation have in common."""

from __future__ import annotations

from typing import Any

FRAMEWORK_ID = "The id of a framework that the organization has adopted."

HEAD: dict[str, Any] = {
    "organization": {"id": "org-harbourlight", "name": "Harbourlight Logistics", "slug": "harbourlight"},
    "framework": {
        "id": "iso-27001-2022",
        "name": "ISO/IEC 27001:2022",
        "identifier": "ISO-27001",
        "slug": "iso-27001",
        "version": "2022",
    },
    "baseline": None,
}


def counts(
    requirements: int, excluded: int, unassessed: int, indirect: int, statuses: tuple[int, ...]
) -> dict[str, Any]:
    """Counts; ``statuses`` are the assessed and the effective numbers at NONE, PARTIAL and FULL."""
    names = ("none", "partial", "full")
    return {
        "requirements": requirements,
        "applicable": requirements - excluded,
        "notApplicable": excluded,
        "withoutAssessment": unassessed,
        "conflicts": 0,
        "stale": 0,
        "indirectlyCovered": indirect,
        "assessed": dict(zip(names, statuses[:3], strict=True)),
        "effective": dict(zip(names, statuses[3:], strict=True)),
    }


COUNTS = counts(93, 2, 31, 14, (7, 22, 31, 27, 30, 34))

IDENTITIES: dict[str, Any] = {
    "control": {
        "id": "nist-csf-2.0:PR.AA-01",
        "identifier": "PR.AA-01",
        "name": "Managed identities and credentials",
        "slug": "pr-aa-01-managed-identities-and-credentials",
        "framework": {
            "id": "nist-csf-2.0",
            "name": "NIST Cybersecurity Framework 2.0",
            "identifier": "NIST-CSF-2.0",
            "identifierColor": "#1D4F91",
        },
    },
    "effectiveCoverageStatus": "PARTIAL",
}
