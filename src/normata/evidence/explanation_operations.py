"""The operation that explains the coverage of a control, and shows the evidence for it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Literal

from pydantic import Field

from normata.core.db.transaction import Transaction
from normata.core.http.operation import Operation, ReadOperation
from normata.core.http.request import Request
from normata.core.schema.fields import CoverageStatus, MatchLevel, Timestamp
from normata.core.schema.paging import PastQuery
from normata.core.schema.wire import Wire
from normata.coverage.conflicts import CONFLICT_DESCRIPTION
from normata.coverage.exclusion import EXCLUDED_BY, ExcludingGroup
from normata.coverage.explain import explain
from normata.coverage.explained import MAX_SHOWN
from normata.coverage.graph import Conflict
from normata.coverage.staleness import ASSESSED_AT, LAPSED_AT, LAPSED_STATUS, STALE, Staleness
from normata.errors import NotFound
from normata.evidence.pieces import ExplainedEvidence, explained_evidence
from normata.frameworks.baselines import OUTSIDE_OF_BASELINE, BaselineReference
from normata.frameworks.control_wire import MatchMapping
from normata.frameworks.model import Control


class NamedFramework(Wire):
    """A framework, with its id and names."""

    id: str
    identifier: str
    name: str


class NamedControl(Wire):
    """A control, with its id and names."""

    id: str
    identifier: str
    name: str
    framework: NamedFramework = Field(description="The framework that the control belongs to.")


class ExplainedAssessment(Wire):
    """The assessment of a control."""

    id: str
    coverage_status: CoverageStatus | None
    coverage_gap: str | None
    is_applicable: bool | None
    justification: str | None
    reasons: list[str]
    owner_id: str | None
    note: str | None
    review_by: Timestamp | None
    assessed_at: Timestamp | None = Field(description=ASSESSED_AT)
    stale: list[Staleness] = Field(description=STALE)
    lapsed_status: CoverageStatus | None = Field(description=LAPSED_STATUS)
    lapsed_at: Timestamp | None = Field(description=LAPSED_AT)


class ExplainedMatch(Wire):
    """A match: the strongest from its source to its target."""

    id: str
    match_level: MatchLevel
    is_own: bool = Field(description="Whether the match is the organization's own.")
    justification: str | None


class OtherAssessment(Wire):
    """The assessment of another control, which does not go with that of this one."""

    control: NamedControl = Field(description="The other control.")
    coverage_status: CoverageStatus
    coverage_gap: str | None
    owner_id: str | None = Field(description="The member who answers for it.")


class ConflictMatch(ExplainedMatch):
    """A match that makes the control `FULL`, although it is assessed lower."""

    rationale: str | None = Field(description="How the publisher of the mapping compared the two controls.")
    strength: str | None = Field(description="How strong the publisher says that the relation is, on its own scale.")
    mapping: MatchMapping | None = Field(
        description="The document that gives the match; null where somebody has made it, or where it is not known."
    )
    source_control: NamedControl = Field(description="The control that the match leads from.")
    assessments: list[OtherAssessment] = Field(
        description=f"The assessments by which that control is `FULL`, the first {MAX_SHOWN}; empty if they are too far"
        " away, or if it is `FULL` by this control alone."
    )


class CoverageConflict(Wire):
    """What the assessment of a control cannot be right beside."""

    kind: Conflict = Field(description=CONFLICT_DESCRIPTION)
    matches: list[ConflictMatch] = Field(
        description="With `MATCHES`: the matches that make the control `FULL`. If all are set aside, the conflict ends."
    )
    matches_are_all: bool = Field(description="Whether these are all.")
    below: list[OtherAssessment] = Field(
        description=f"With `BELOW`: the requirements below the control that are assessed lower; the first {MAX_SHOWN}."
    )
    below_count: int = Field(description="The number of such requirements.")


class Premise(Wire):
    """A fact that an earlier step of a proof has shown."""

    control_id: str = Field(description="The control that the fact is about.")
    level: MatchLevel = Field(description="That the control is `FULL`, or that it is `PARTIAL` or better.")


class ProofStep(Wire):
    """A step of a proof."""

    control: NamedControl = Field(description="The control that the step is about.")
    level: MatchLevel = Field(description="That the control is `FULL`, or that it is `PARTIAL` or better.")
    rule: Literal["ASSESSMENT", "MATCH", "ROLL_UP"] = Field(
        description="Why: by assessment, by a match from the premise, or by roll-up from its children, the premises."
    )
    assessed: CoverageStatus | None = Field(description="The assessment, if that is the rule.")
    match: ExplainedMatch | None = Field(description="The match from the premise, if that is the rule.")
    match_back: ExplainedMatch | None = Field(
        description="The match of level `FULL` back to the premise, if the premise is part of the control."
    )
    premises: list[Premise] = Field(description="The premises: facts that earlier steps have shown.")
    premise_count: int = Field(
        description="The number of premises. Of the children of a roll-up only the first few are shown."
    )


class Effect(Wire):
    """Another control that depends on the assessment."""

    control: NamedControl = Field(description="The other control.")
    level: CoverageStatus = Field(description="Its effective status.")
    without: CoverageStatus = Field(description="Its effective status without the assessment.")


class Effects(Wire):
    """The controls that depend on an assessment."""

    count: int | None = Field(
        description="The number of controls that would be less covered without it; null if too many to count."
    )
    items: list[Effect] = Field(description=f"The first {MAX_SHOWN} of them.")


class Lift(Wire):
    """A control that would lift this one if its own coverage were higher."""

    control: NamedControl = Field(description="The other control.")
    level: CoverageStatus = Field(description="Its current effective status.")
    needs: MatchLevel = Field(description="The status it would need.")
    gives: MatchLevel = Field(description="The status that this control would then have.")
    path: list[NamedControl] = Field(description="The controls on the path, from the other control to this one.")
    matches: list[ExplainedMatch] = Field(description="The match from each control of the path to the next.")


class CoverageExplanation(Wire):
    """Why a control has its effective status."""

    control: NamedControl = Field(description="The control.")
    assessment: ExplainedAssessment | None = Field(description="The assessment of the control; null if there is none.")
    excluded_by: ExcludingGroup | None = Field(description=EXCLUDED_BY)
    outside_of_baseline: BaselineReference | None = Field(description=OUTSIDE_OF_BASELINE)
    evidence: ExplainedEvidence = Field(description="The evidence that supports the control.")
    conflict: CoverageConflict | None = Field(
        description="What the assessment cannot be right beside; null if nothing is against it."
    )
    effective_coverage_status: CoverageStatus = Field(
        description="The status that follows from assessments, matches and roll-up: the best of all paths."
    )
    is_indirectly_covered: bool = Field(
        description="Whether matches lift the control above the status that assessments and roll-up alone would give."
    )
    proof: list[ProofStep] = Field(
        description="The shortest proof: each step after its premises, the last about this control. Empty if the"
        " control is not covered or `isProved` is false."
    )
    is_proved: bool = Field(
        description="False if the control is covered but no proof is shown: it is too long, or the stored coverage is"
        " from before the latest upgrade."
    )
    others: list[list[ProofStep]] = Field(
        description="Sufficient proofs from one other assessment each, nearest first."
    )
    others_are_all: bool = Field(description="Whether these are all.")
    effects: Effects = Field(description="The effects of the control's own assessment on other controls.")
    lifts: list[Lift] = Field(description="The controls that would lift this one, nearest first.")
    lifts_are_all: bool = Field(
        description="Whether these are all that would do so through matches alone. False if the search was cut short."
    )
    lacking: list[NamedControl] = Field(
        description=f"Applicable children that are not covered fully; the first {MAX_SHOWN}."
    )
    lacking_count: int = Field(description="The number of such children.")


def _explain(transaction: Transaction, request: Request) -> dict[str, Any]:
    found = explain(transaction, request.organization_id, request.id)
    if found.effective_coverage_status is None:
        raise NotFound  # no adopted framework has the control
    evidence = explained_evidence(transaction, request.organization_id, request.id)
    return CoverageExplanation.model_validate(asdict(found) | {"evidence": evidence}).model_dump(by_alias=True)


_ISO = {"id": "iso-27001-2022", "identifier": "ISO-27001", "name": "ISO/IEC 27001:2022"}
_CSF = {"id": "nist-csf-2.0", "identifier": "NIST-CSF-2.0", "name": "NIST Cybersecurity Framework 2.0"}
_RETURN = {"id": "iso-27001-2022:A.5.11", "identifier": "A.5.11", "name": "Return of assets", "framework": _ISO}
_IDENTITIES = {
    "id": "nist-csf-2.0:PR.AA-01",
    "identifier": "PR.AA-01",
    "name": "Managed identities and credentials",
    "framework": _CSF,
}
_EVIDENCE: dict[str, Any] = {
    "pieces": 1,
    "isValid": True,
    "endsAt": "2027-06-01T00:00:00.000Z",
    "items": [
        {
            "id": "01a1f87c-691d-7204-a6da-d46c39e191fc",
            "shortId": 4,
            "name": "Checklist of the last day",
            "type": "FILE",
            "url": None,
            "collectedAt": "2026-11-12T00:00:00.000Z",
            "validUntil": "2027-05-31T00:00:00.000Z",
            "isValid": True,
            "linkedAt": "2026-11-12T08:31:11.500Z",
            "files": [
                {
                    "id": "01a1f87c-691d-7204-a6da-d46c39e191fd",
                    "name": "checklist.pdf",
                    "mediaType": "application/pdf",
                    "size": 48_211,
                    "sha256": "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
                }
            ],
        }
    ],
    "recordedLater": [],
}
_MATCH = {"id": "match:PR.AA-01--A.5.11", "matchLevel": "PARTIAL", "isOwn": False, "justification": None}

OPERATIONS: tuple[Operation, ...] = (
    ReadOperation(
        path="/controls/{id}/coverage/",
        operation_id="explainCoverage",
        tag="Coverage",
        summary="Explain the coverage of a control",
        description="""\
Why a control has its effective status, and what would lift it.

The proof has a step for everything that it depends on: which assessment, through which match or roll-up, of which
framework, with which level. Each step comes after its premises, so the proof is never circular. Of a roll-up of
many children it shows and follows the first few, and gives their number. After the proof come the other assessments
that would be sufficient, the effects of the control's own assessment on others, and the controls that would lift this
one. The search has a maximum distance, and the response says if it was cut short.

If the assessment is in conflict, `conflict` says with what: the matches that make the control `FULL`, each with the
assessments that it rests on, or the requirements below it that are assessed lower.

`evidence` has the pieces of evidence that support the control, each with its files and their hashes. With `asOf` it has
what was recorded at that moment; what was recorded later about then is listed apart.""",
        about=Control,
        id_description="The id of a control of a framework that the organization has adopted.",
        query=PastQuery,
        build=_explain,
        answer=CoverageExplanation,
        answer_description="The explanation.",
        example={
            "control": _RETURN,
            "assessment": None,
            "excludedBy": None,
            "outsideOfBaseline": None,
            "evidence": _EVIDENCE,
            "conflict": None,
            "effectiveCoverageStatus": "PARTIAL",
            "isIndirectlyCovered": True,
            "proof": [
                {
                    "control": _IDENTITIES,
                    "level": "FULL",
                    "rule": "ASSESSMENT",
                    "assessed": "FULL",
                    "match": None,
                    "matchBack": None,
                    "premises": [],
                    "premiseCount": 0,
                },
                {
                    "control": _RETURN,
                    "level": "PARTIAL",
                    "rule": "MATCH",
                    "assessed": None,
                    "match": _MATCH,
                    "matchBack": None,
                    "premises": [{"controlId": "nist-csf-2.0:PR.AA-01", "level": "FULL"}],
                    "premiseCount": 1,
                },
            ],
            "isProved": True,
            "others": [],
            "othersAreAll": True,
            "effects": {"count": 0, "items": []},
            "lifts": [],
            "liftsAreAll": True,
            "lacking": [],
            "lackingCount": 0,
        },
    ),
)
