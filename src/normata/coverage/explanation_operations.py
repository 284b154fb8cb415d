"""The operation that explains the coverage of a control."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Literal

from pydantic import Field

from normata.core.db.transaction import Transaction
from normata.core.http.operation import Operation, ReadOperation
from normata.core.http.request import Request
from normata.core.schema.fields import CoverageStatus, MatchLevel
from normata.core.schema.paging import OrganizationQuery
from normata.core.schema.wire import Wire
from normata.coverage.explain import MAX_SHOWN, explain
from normata.errors import NotFound
from normata.frameworks.model import Control


class NamedFramework(Wire):
    """A framework, by its names."""

    id: str
    identifier: str
    name: str


class NamedControl(Wire):
    """A control, by its names."""

    id: str
    identifier: str
    name: str
    framework: NamedFramework = Field(description="The framework that the control belongs to.")


class ExplainedAssessment(Wire):
    """What the organization says of a control."""

    id: str
    coverage_status: CoverageStatus
    coverage_gap: str | None
    is_applicable: bool
    justification: str | None
    reasons: list[str]


class ExplainedMatch(Wire):
    """A match: the strongest from its source to its target."""

    id: str
    match_level: MatchLevel
    is_own: bool = Field(description="Whether the match is the organization's own.")
    justification: str | None


class Premise(Wire):
    """What an earlier step of a proof has shown."""

    control_id: str = Field(description="The control that it was shown of.")
    level: MatchLevel = Field(description="That the control is `FULL`, or that it is `PARTIAL` or better.")


class ProofStep(Wire):
    """A step of a proof."""

    control: NamedControl = Field(description="The control that the step shows something of.")
    level: MatchLevel = Field(description="That the control is `FULL`, or that it is `PARTIAL` or better.")
    rule: Literal["ASSESSMENT", "MATCH", "ROLL_UP"] = Field(
        description="Why: it is stated, a match leads there from the premise, or the premises are its children."
    )
    assessed: CoverageStatus | None = Field(description="What is stated, where that is the rule.")
    match: ExplainedMatch | None = Field(description="The match from the premise, where that is the rule.")
    match_back: ExplainedMatch | None = Field(
        description="The match of level `FULL` back to the premise, where that lies within the control."
    )
    premises: list[Premise] = Field(description="What it rests on: facts that earlier steps have shown.")
    premise_count: int = Field(
        description="How many such facts there are. Of the children of a roll-up only the first few are shown."
    )


class Effect(Wire):
    """Another control that rests on the statement."""

    control: NamedControl = Field(description="The other control.")
    level: CoverageStatus = Field(description="How far it is covered.")
    without: CoverageStatus = Field(description="How far it would be covered without the statement.")


class Effects(Wire):
    """The controls that rest on a statement."""

    count: int | None = Field(
        description="How many controls would be less covered without it; null where too many hang together to tell."
    )
    items: list[Effect] = Field(description=f"The first {MAX_SHOWN} of them.")


class Lift(Wire):
    """A control that is not covered enough, and would lift this one."""

    control: NamedControl = Field(description="The other control.")
    level: CoverageStatus = Field(description="How far it is covered now.")
    needs: MatchLevel = Field(description="How far it would have to be covered.")
    gives: MatchLevel = Field(description="How far this control would be covered then.")
    path: list[NamedControl] = Field(description="The controls on the way, from the other one to this one.")
    matches: list[ExplainedMatch] = Field(description="The match from each control of the path to the next.")


class CoverageExplanation(Wire):
    """Why a control is covered as far as it is."""

    control: NamedControl = Field(description="The control.")
    assessment: ExplainedAssessment | None = Field(description="What the organization says of it; null where nothing.")
    effective_coverage_status: CoverageStatus = Field(
        description="What follows from statements, matches and roll-up: the best of all paths."
    )
    is_indirectly_covered: bool = Field(
        description="Whether matches lift the control above what statements and roll-up alone would give."
    )
    proof: list[ProofStep] = Field(
        description="The shortest proof: each step after those that it rests on, the last about this control. Empty"
        " where the control is not covered, and where `isProved` is false."
    )
    is_proved: bool = Field(
        description="False where the control is covered and no proof is shown: it is too long, or the stored coverage"
        " is from before the newest upgrade."
    )
    others: list[list[ProofStep]] = Field(
        description="Proofs from one other statement each, which would do as well, nearest first."
    )
    others_are_all: bool = Field(description="Whether there are no more of them.")
    effects: Effects = Field(description="What the control's own statement does for others.")
    lifts: list[Lift] = Field(description="What would lift the control, nearest first.")
    lifts_are_all: bool = Field(
        description="Whether no other control would, through matches alone. False where not everything was looked at."
    )
    lacking: list[NamedControl] = Field(
        description=f"Applicable children that are not covered fully; the first {MAX_SHOWN}."
    )
    lacking_count: int = Field(description="How many such children there are.")


def _explain(transaction: Transaction, request: Request) -> dict[str, Any]:
    found = explain(transaction, request.organization_id, request.id)
    if found.effective_coverage_status is None:
        raise NotFound  # no adopted framework has the control, so there is nothing to explain
    return CoverageExplanation.model_validate(asdict(found)).model_dump(by_alias=True)


_ISO = {"id": "iso-27001-2022", "identifier": "ISO-27001", "name": "ISO/IEC 27001:2022"}
_CSF = {"id": "nist-csf-2.0", "identifier": "NIST-CSF-2.0", "name": "NIST Cybersecurity Framework 2.0"}
_RETURN = {"id": "iso-27001-2022:A.5.11", "identifier": "A.5.11", "name": "Return of assets", "framework": _ISO}
_IDENTITIES = {
    "id": "nist-csf-2.0:PR.AA-01",
    "identifier": "PR.AA-01",
    "name": "Managed identities and credentials",
    "framework": _CSF,
}
_MATCH = {"id": "match:PR.AA-01--A.5.11", "matchLevel": "PARTIAL", "isOwn": False, "justification": None}

OPERATIONS: tuple[Operation, ...] = (
    ReadOperation(
        path="/controls/{id}/coverage/",
        operation_id="explainCoverage",
        tag="Coverage",
        summary="Explain the coverage of a control",
        description="""\
Why a control is covered as far as it is, and what would lift it.

The proof has a step for everything that it rests on: which statement, through which match or roll-up, of which
framework, with which level. Each step comes after its premises, so the proof never runs in a circle. Of a roll-up of
many children it shows and follows the first few, and says how many there are. Then come the
other statements that would do, what the control's own statement does for others, and what would lift the control. What
is very far away is left out, and the answer says so.""",
        about=Control,
        id_description="The id of a control of a framework that the organization has adopted.",
        query=OrganizationQuery,
        build=_explain,
        answer=CoverageExplanation,
        answer_description="The explanation.",
        example={
            "control": _RETURN,
            "assessment": None,
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
