"""An explanation of one control's coverage, in plain values that a request or a command can show."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FrameworkName:
    """A framework, by the names that people know it by."""

    id: str
    identifier: str
    name: str


@dataclass(frozen=True, slots=True)
class ControlName:
    """A control, by the names that people know it by."""

    id: str
    identifier: str
    name: str
    framework: FrameworkName


@dataclass(frozen=True, slots=True)
class Assessment:
    """What the organization itself says of a control."""

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
    """A match, the strongest from its source to its target. ``is_own`` is true where the organization alone sees it."""

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

    ``rule`` is ASSESSMENT (``assessed`` has its status), MATCH (``match`` leads here from the only premise) or
    ROLL_UP (the premises are requirements below it; ``premise_count`` is how many it rests on, and the first of them
    are shown and followed). ``match_back`` is there where the match gives PARTIAL because its source lies
    within the control: it is FULL, and leads back.
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
    """Another control that rests on the statement: how far it is covered, and how far it would be without it."""

    control: ControlName
    level: str
    without: str


@dataclass(frozen=True, slots=True)
class Effects:
    """What the control's own assessment does for others.

    ``count`` is how many would be less covered without it, ``items`` has the first of them. Null where so many hang
    together that it was not followed to the end.
    """

    count: int | None
    items: list[Effect]


@dataclass(frozen=True, slots=True)
class Lift:
    """A control that is not covered and would lift this one: were it ``needs``, this one would be ``gives``.

    ``level`` is how far it is covered now. ``path`` has the controls that the matches lead through, from it to this
    one, both included; ``matches`` has the match from each of them to the next.
    """

    control: ControlName
    level: str
    needs: str
    gives: str
    path: list[ControlName]
    matches: list[Match]


@dataclass(frozen=True, slots=True)
class ExcludingGroup:
    """The group above a control that does not apply, and takes the control with it."""

    id: str
    identifier: str
    name: str
    justification: str | None
    reasons: list[str]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a control is covered as far as it is. ``dataclasses.asdict`` makes JSON's own types of it.

    ``excluded_by`` is the group that excludes it, null where none does or its own assessment decides.
    ``effective_coverage_status`` is null where no adopted framework has the control. ``proof`` is the shortest one,
    each step after those that it rests on, the control itself last; it is empty where the status is NONE. ``is_proved``
    tells that there is a proof wherever one is needed: it is false where the proof is too long to be followed, or the
    stored coverage comes from a version that does not rank it. ``others`` are proofs from one other assessment each,
    nearest first, and ``others_are_all`` is true where there are no more. ``lifts`` would lift the control, nearest
    first. ``lacking`` are applicable requirements below a group that are not FULL, where the group is not FULL itself,
    and ``lacking_count`` is how many there are.
    """

    control: ControlName
    assessment: Assessment | None
    excluded_by: ExcludingGroup | None
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
