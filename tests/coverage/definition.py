"""What coverage means, word by word and slowly, as the design of the product has it. It shares nothing with the engine.

Levels are 0 for NONE, 1 for PARTIAL and 2 for FULL.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias


@dataclass(frozen=True)
class Control:
    """A control of an adopted framework, with what its organization records of it.

    ``assessed`` is null where it is not assessed, ``decision`` where nothing is recorded of whether it applies.
    """

    parent: str | None = None
    is_category: bool = False
    is_decomposed: bool = False
    is_mandatory: bool = False
    in_baseline: bool = True
    assessed: int | None = None
    decision: bool | None = None

    @property
    def is_group(self) -> bool:
        """Whether it is rolled up: then it states no requirement of its own."""
        return self.is_category or self.is_decomposed


Controls = Mapping[str, Control]
Matches = Collection[tuple[str, str, int]]


def above(name: str, controls: Controls) -> list[str]:
    """What is above a control, the nearest first."""
    found: list[str] = []
    parent = controls[name].parent
    while parent is not None and parent in controls and parent not in found:
        found.append(parent)
        parent = controls[parent].parent
    return found


def applies(name: str, controls: Controls) -> bool:
    """Whether a control applies to the organization."""
    control = controls[name]
    if control.decision is not None:
        return control.decision
    if control.is_mandatory:
        return True
    for group in above(name, controls):
        if controls[group].is_group and controls[group].decision is not None:
            if not controls[group].decision:
                return False
            break
    return control.is_group or control.in_baseline


def applicable(controls: Controls) -> set[str]:
    """The controls that apply."""
    return {name for name in controls if applies(name, controls)}


def requirements_below(controls: Controls, counted: Collection[str]) -> dict[str, list[str]]:
    """The applicable requirements below each applicable group, however deep."""
    found: dict[str, list[str]] = {name: [] for name in counted if controls[name].is_group}
    for name in controls:
        if name in counted and not controls[name].is_group:
            for group in above(name, controls):
                if group in found:
                    found[group].append(name)
    return found


def effective(controls: Controls, matches: Matches) -> dict[str, int]:
    """How far each control is covered: from NONE everywhere, the rules again and again until nothing changes."""
    counted = applicable(controls)
    known = [(source, target, level) for source, target, level in matches if {source, target} <= counted]
    pairs = {(source, target) for source, target, _ in known}
    full_pairs = {(source, target) for source, target, level in known if level == 2}
    below = requirements_below(controls, counted)
    into: dict[str, list[str]] = {name: [] for name in counted}
    for source, target in pairs:
        into[target].append(source)
    found = dict.fromkeys(controls, 0)
    while True:
        following = dict(found)
        for name in counted:
            assessed = controls[name].assessed
            sources = into[name]
            requirements = below.get(name, [])
            if (
                assessed == 2
                or any(found[source] == 2 and (source, name) in full_pairs for source in sources)
                or (requirements != [] and all(found[one] == 2 for one in requirements))
            ):
                following[name] = 2
            elif (
                assessed == 1
                or any(found[source] == 2 for source in sources)
                or any(found[source] == 1 and (name, source) in full_pairs for source in sources)
                or any(found[one] > 0 for one in requirements)
            ):
                following[name] = 1
        if following == found:
            return found
        found = following


def own(controls: Controls) -> dict[str, int]:
    """How far assessments and roll-up alone cover each."""
    return effective(controls, ())


def conflicts(controls: Controls, matches: Matches) -> set[str]:
    """The controls whose assessment cannot be right beside what matches or assessments below them say."""
    counted = applicable(controls)
    found = effective(controls, matches)
    below = requirements_below(controls, counted)
    given = {target for source, target, level in matches if level == 2 and source in counted and found[source] == 2}
    against: set[str] = set()
    for name in counted:
        assessed = controls[name].assessed
        if assessed in {0, 1} and name in given:
            against.add(name)
        if assessed == 2 and any(controls[one].assessed in {0, 1} for one in below.get(name, ())):
            against.add(name)
    return against


# --- Wordings


@dataclass(frozen=True)
class Imported:
    """An import, and the text that a control then has."""

    text: str
    is_editorial: bool = False


ASSESSED: Literal["assessed"] = "assessed"  # or confirmed
Step: TypeAlias = Imported | Literal["assessed"]


def is_reworded(story: Sequence[Step]) -> bool:
    """Whether an assessment is stale because its control has another wording, after all that has happened."""
    if ASSESSED not in story:
        return False
    last = len(story) - 1 - list(reversed(story)).index(ASSESSED)
    before = [step for step in story[:last] if isinstance(step, Imported)]
    holds_for = {words_of(before[-1].text)}
    holds, current = True, words_of(before[-1].text)
    for step in story[last + 1 :]:
        assert isinstance(step, Imported)
        following = words_of(step.text)
        if following == current:
            continue  # no other wording
        if holds and step.is_editorial:
            holds_for.add(following)  # whoever imports it says that it means the same
        holds, current = following in holds_for, following
    return not holds


def words_of(text: str) -> str:
    """A text without white space and letter case."""
    return "".join(text.split()).casefold()
