"""What the interface says of each kind, copied by hand: where it is restored, and the names and types of its fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from normata.records.base import Restorable
from tests.world import ALPHA

# Of the strings, these hold a date or a timestamp.
_TIMES = frozenset({"deadline", "started", "ended", "dueDate", "contractExpiry", "notificationDeadline", "validUntil"})

# Strings, integers and so on that are never null; enums and booleans never are.
_NEVER_NULL = frozenset(
    {"id", "organizationId", "createdAt", "updatedAt", "slug", "name", "title", "acronym", "shortId", "order"}
)


@dataclass(frozen=True)
class Shape:
    """One kind as the wire has it: its component and its fields, a type by name."""

    component: str
    fields: dict[str, str]

    def nullable(self, name: str) -> bool:
        """Whether the field may be null."""
        return self.fields[name] not in ("enum", "boolean", "files") and name not in _NEVER_NULL


def _shape(
    component: str,
    strings: str,
    *,
    integers: str = "",
    numbers: str = "",
    enums: str = "",
    booleans: str = "",
    anything: str = "",
    files: str = "",
) -> Shape:
    fields = {name: "time" if name.endswith("At") or name in _TIMES else "string" for name in strings.split()}
    for names, kind in (
        (integers, "integer"),
        (numbers, "number"),
        (enums, "enum"),
        (booleans, "boolean"),
        (anything, "any"),
        (files, "files"),
    ):
        fields |= dict.fromkeys(names.split(), kind)
    return Shape(component, fields)


SHAPES = {
    "tasks": _shape(
        "Task",
        "id slug organizationId title description instructions category deadline frequency assigneeMemberId"
        " assigneeBusinessRoleId controlCoverageId policyId evidenceId riskId assetId vendorId auditId"
        " treatmentActionId incidentId riskReviewId assetReviewId entitlementReviewId vendorReviewId trainingId"
        " processId deviceId recordId taskTemplateId createdAt updatedAt archivedAt",
        integers="shortId categoryOrder order",
        enums="type status priority",
    ),
    "auditItems": _shape(
        "Finding",
        "id slug name deadline identifier findings causes correction measures notes verifiedAt verifiedById"
        " verifiedByName verificationNote archivedAt createdAt updatedAt organizationId controlId auditId",
        enums="type status source",
    ),
    "assets": _shape(
        "Asset",
        "id slug name description ownerId createdAt updatedAt archivedAt organizationId parentId assetClassId"
        " locationId retentionPeriodId lastReviewId",
        integers="shortId",
        numbers="confidentialityRating integrityRating availabilityRating",
        enums="status",
    ),
    "policies": _shape(
        "Policy",
        "id title slug categoryId organizationId approverId currentVersion lastApprovedAt lastApprovedBy"
        " reviewScheduleId lastReviewedAt nextReviewAt createdAt updatedAt archivedAt",
        integers="order",
        enums="status",
        anything="content",
    ),
    "record-categories": _shape(
        "RecordCategory",
        "id name slug description color organizationId ownerId defaultTemplateId cadenceScheduleId createdAt"
        " updatedAt archivedAt",
        integers="order",
        booleans="allowPortalSubmission",
    ),
    "entitlement-reviews": _shape(
        "EntitlementReview",
        "id title description createdAt updatedAt finishedAt deadline archivedAt organizationId coordinatorId"
        " employeeId",
        integers="shortId",
        enums="type",
    ),
    "audits": _shape(
        "Audit",
        "id slug name started ended auditor notes createdAt updatedAt archivedAt organizationId frameworkId",
        enums="type",
    ),
    "risk-reviews": _shape(
        "RiskReview",
        "id title notes createdAt finishedAt deadline archivedAt organizationId coordinatorId",
        integers="shortId",
        enums="priorityFilter",
    ),
    "acronyms": _shape(
        "Acronym",
        "id slug acronym acronymPlural extended extendedPlural createdAt updatedAt archivedAt definitionId"
        " organizationId",
    ),
    "labels": _shape("Label", "id slug name scope color createdAt updatedAt archivedAt organizationId"),
    # Restore answers null; these are the fields of its bundle array.
    "integration-checks": _shape(
        "IntegrationCheck",
        "id organizationId name slug provider createdAt updatedAt archivedAt",
        enums="status",
    ),
    "incidents": _shape(
        "Incident",
        "id slug name description ownerId reportedByMemberId threatClassId occurredAt detectedAt resolvedAt closedAt"
        " rootCause lessonsLearned notificationDeadline authorityNotifiedAt dataSubjectsNotifiedAt notificationNotes"
        " createdAt updatedAt archivedAt organizationId",
        integers="shortId",
        booleans="isPersonalDataBreach",
        enums="status severity",
    ),
    "vendors": _shape(
        "Vendor",
        "id slug name description createdAt updatedAt organizationId archivedAt website contactName contactEmail"
        " contractExpiry ownerId locationId assessmentPeriodId lastAssessmentId",
        integers="shortId",
        numbers="inherentProbability inherentImpact residualProbability residualImpact",
        enums="category relationship status treatmentStrategy",
    ),
    "records": _shape(
        "Record",
        "id slug organizationId categoryId title assigneeMemberId assigneeBusinessRoleId dueDate finalizedAt"
        " finalizedBy reviewScheduleId lastReviewedAt nextReviewAt createdAt updatedAt archivedAt",
        integers="shortId currentVersion",
        enums="status",
        anything="content",
    ),
    "evidence": _shape(
        "Evidence",
        "id slug name description url collectedAt collectedById ownerId validUntil createdAt updatedAt archivedAt"
        " organizationId",
        integers="shortId",
        enums="type",
        files="fileIds",
    ),
    "risks": _shape(
        "Risk",
        "id slug name description category ownerId acceptedAt acceptedById nextReviewAt createdAt updatedAt archivedAt"
        " organizationId",
        integers="shortId inherentProbability inherentImpact residualProbability residualImpact targetProbability"
        " targetImpact",
        enums="status treatmentStrategy",
    ),
    "vendor-assessments": _shape(
        "VendorAssessment",
        "id title notes vendorId ownerId questionnaireId deadline sentAt submittedAt submittedById reopeningReason"
        " reviewedAt reviewedById inherentReason residualReason nextAssessmentAt createdAt updatedAt archivedAt"
        " organizationId",
        integers="shortId score inherentProbability inherentImpact residualProbability residualImpact",
        enums="status",
    ),
    "vulnerability-classes": _shape(
        "VulnerabilityClass", "id slug name description createdAt updatedAt archivedAt organizationId"
    ),
    "variables": _shape("Variable", "id slug name value createdAt updatedAt archivedAt organizationId"),
}

KINDS = [pytest.param(kind, id=kind.path) for kind in Restorable.kinds]
WITH_SLUG = [pytest.param(kind, id=kind.path) for kind in Restorable.kinds if "slug" in SHAPES[kind.path].fields]

_MEMBERS = (
    "acceptedById",
    "reviewedById",
    "submittedById",
    "assigneeMemberId",
    "collectedById",
    "reportedByMemberId",
    "ownerId",
    "coordinatorId",
    "approverId",
)
_REFERENCES = {
    **dict.fromkeys(_MEMBERS, "member-admin"),
    "controlCoverageId": "say-sun.A.1",
    "controlId": "own.A.1",
    "frameworkId": "fw-own",
    "parentId": f"assets-live-{ALPHA}",
    "policyId": f"policies-live-{ALPHA}",
    "assetId": f"assets-live-{ALPHA}",
    "vendorId": f"vendors-live-{ALPHA}",
    "questionnaireId": f"used-{ALPHA}",
    "auditId": f"audits-live-{ALPHA}",
    "incidentId": f"incidents-live-{ALPHA}",
    "riskReviewId": f"risk-reviews-live-{ALPHA}",
    "entitlementReviewId": f"entitlement-reviews-live-{ALPHA}",
    "recordId": f"records-live-{ALPHA}",
    "categoryId": f"record-categories-live-{ALPHA}",
}
_ADDRESSES = {
    # With what is easily damaged in addresses.
    "website": "https://www.example.org/Gr%C3%B6%C3%9Fe/?été='50%25'&a=_#😀",
    "url": "https://files.example.org/a%20b/?q='50%25'",
    "contactEmail": "Kim.O'Größe+50%_a@example.org",
}
RATINGS = {f"{of}{what}" for of in ("inherent", "residual", "target") for what in ("Probability", "Impact")}
_SCALES = {"inherentProbability", "inherentImpact", "residualProbability", "residualImpact"}
CONTENT: dict[str, Any] = {
    "z": [1, 1.5, -0.25, 12345678901234567890, True, None],
    "a": {"ü": 'Größe 50%_"\\/', "": [], "b": {}},
}


def full_record(kind: type[Restorable], record_id: str) -> dict[str, Any]:
    """An archived record of alpha, as a bundle has it, in which every field has a value that is easily damaged."""
    record: dict[str, Any] = {}
    for number, (name, sort) in enumerate(SHAPES[kind.path].fields.items()):
        match sort:
            case "time":
                record[name] = f"2025-{number % 12 + 1:02}-28T23:59:59.{number:03}Z"
            case "integer" if name in RATINGS or name == "score":  # from 1 to 5
                record[name] = 1 + number % 5
            case "integer":
                record[name] = 1_000 + number
            case "number" if name in _SCALES:  # from 1 to 5
                record[name] = 1 + number % 4 + 0.25
            case "number":
                record[name] = number if number % 2 else number + 0.25
            case "enum":
                record[name] = f"OUR_OWN_{number}"
            case "boolean":
                record[name] = True
            case "any":
                record[name] = CONTENT
            case "files":
                record[name] = [f"file-of-{ALPHA}"]
            case _:
                record[name] = (_REFERENCES | _ADDRESSES).get(name, f" {name} — Größe 50%_'\"\\ été \u2028 😀 ")
    return record | {"id": record_id, "organizationId": ALPHA} | ({"slug": "Größe-50%_\"'"} if "slug" in record else {})
