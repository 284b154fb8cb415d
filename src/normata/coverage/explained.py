"""An explanation of one control's coverage, in plain values that a request or a command can show."""

from __future__ import annotations

from dataclasses import dataclass

MAX_SHOWN = 10  # in each list: other proofs, effects, lifts, missing controls, conflicts


@dataclass(frozen=True, slots=True)
class FrameworkName:
    """A framework, with its names for people."""

    id: str
    identifier: str
    name: str


@dataclass(frozen=True, slots=True)
class ControlName:
    """A control, with its names for people."""

    id: str
    identifier: str
    name: str
    framework: FrameworkName


@dataclass(frozen=True, slots=True)
class Assessment:
    """The organization's assessment of a control."""

    id: str
    coverage_status: str | None
    coverage_gap: str | None
    is_applicable: bool | None
    justification: str | None
    reasons: list[str]
    owner_id: str | None
    note: str | None
    review_by: str | None
    assessed_at: str | None
    lapsed_status: str | None
    lapsed_at: str | None
    stale: list[dict[str, str]]


@dataclass(frozen=True, slots=True)
class Match:
    """A match, the strongest from its source to its target. ``is_own`` is true if the organization alone sees it."""

    id: str
    match_level: str
    is_own: bool
    justification: str | None


@dataclass(frozen=True, slots=True)
class Premise:
    """A fact that an earlier step of a proof has shown: that a control is FULL, or is PARTIAL or better."""

    control_id: str
    level: str


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a proof: that ``control`` is FULL, or is PARTIAL or better (``level``), and why.

    ``rule`` is ASSESSMENT (``assessed`` has its status), MATCH (``match`` leads here from the only premise) or ROLL_UP
    (the premises are requirements below it; ``premise_count`` is how many it rests on, and the first of them are shown
    and followed). ``match_back`` is set if the match gives PARTIAL because its source lies within the control: it is
    the FULL match back.
    """

    control: ControlName
    level: str
    rule: str
    assessed: str | None
    match: Match | None
    match_back: Match | None
    premises: list[Premise]
    premise_count: int


@dataclass(frozen=True, slots=True)
class Effect:
    """Another control that depends on the assessment: its level, and its level without the assessment."""

    control: ControlName
    level: str
    without: str


@dataclass(frozen=True, slots=True)
class Effects:
    """The effects of the control's own assessment on others.

    ``count`` is the number of controls that would be less covered without it, ``items`` has the first of them. Null if
    there were too many to follow.
    """

    count: int | None
    items: list[Effect]


@dataclass(frozen=True, slots=True)
class Lift:
    """A control that is not covered and would lift this one: if it became ``needs``, this one would become ``gives``.

    ``level`` is its current level. ``path`` has the controls on the path of matches, from it to this one, both
    included; ``matches`` has the match from each of them to the next.
    """

    control: ControlName
    level: str
    needs: str
    gives: str
    path: list[ControlName]
    matches: list[Match]


@dataclass(frozen=True, slots=True)
class OtherAssessment:
    """The assessment of another control, which does not go with that of the control that is explained."""

    control: ControlName
    coverage_status: str
    coverage_gap: str | None
    owner_id: str | None


@dataclass(frozen=True, slots=True)
class MappingName:
    """The document that gives a match."""

    id: str
    document: str
    name: str
    version: str | None


@dataclass(frozen=True, slots=True)
class ConflictMatch:
    """A match that makes a control FULL which is assessed lower.

    ``assessments`` are those by which its source is FULL, without any help of the control itself: the first of them,
    none where that takes too long to follow, or where it is FULL by a group that is explained, alone.
    """

    id: str
    match_level: str
    is_own: bool
    justification: str | None
    rationale: str | None
    strength: str | None
    mapping: MappingName | None
    source_control: ControlName
    assessments: list[OtherAssessment]


@dataclass(frozen=True, slots=True)
class ExplainedConflict:
    """What an assessment cannot be right beside.

    ``kind`` is MATCHES or BELOW. With MATCHES, ``matches`` are those that make the control FULL: set aside, all of them
    together, they end the conflict; ``matches_are_all`` is true where there are no more. With BELOW, ``below`` are the
    requirements below the control that are assessed lower, the first of ``below_count``.
    """

    kind: str
    matches: list[ConflictMatch]
    matches_are_all: bool
    below: list[OtherAssessment]
    below_count: int


@dataclass(frozen=True, slots=True)
class ExcludingGroup:
    """The group above a control that does not apply, and takes the control with it."""

    id: str
    identifier: str
    name: str
    justification: str | None
    reasons: list[str]


@dataclass(frozen=True, slots=True)
class BaselineName:
    """A baseline, with its names for people."""

    id: str
    identifier: str
    name: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of a control's coverage. ``dataclasses.asdict`` makes JSON's own types of it.

    ``excluded_by`` is the group that excludes it, null if none does or its own assessment decides.
    ``outside_of_baseline`` is the baseline of the adoption, if it does not select the control. ``conflict`` is what its
    assessment is in conflict with, null for nothing.
    ``effective_coverage_status`` is null if no adopted framework has the control. ``proof`` is the shortest one, each
    step after its premises, the control itself last; it is empty if the status is NONE. ``is_proved`` is false if a
    proof is needed but missing, because it is too long, or because the stored coverage is from a version without ranks.
    ``others`` are proofs from one other assessment each, nearest first, and ``others_are_all`` is true if there are no
    more. ``lifts`` would lift the control, nearest first. ``lacking`` are applicable requirements below a group that
    are not FULL, if the group is not FULL itself, and ``lacking_count`` is their number.
    """

    control: ControlName
    assessment: Assessment | None
    excluded_by: ExcludingGroup | None
    outside_of_baseline: BaselineName | None
    conflict: ExplainedConflict | None
    effective_coverage_status: str | None
    is_indirectly_covered: bool
    proof: list[Step]
    is_proved: bool
    others: list[list[Step]]
    others_are_all: bool
    effects: Effects
    lifts: list[Lift]
    lifts_are_all: bool
    lacking: list[ControlName]
    lacking_count: int
