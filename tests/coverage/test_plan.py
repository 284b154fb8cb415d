"""Plans: each step is the best that one assessment can do, held against a brute force on graphs of any shape."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from normata.coverage import plan as planning
from normata.coverage.engine import Level
from normata.coverage.graph import View
from normata.coverage.plan import plan
from tests.coverage import definition
from tests.coverage.graphs import MemoryGraph
from tests.coverage.test_incremental import world

NONE, PARTIAL, FULL = Level

Found = tuple[str, dict[str, int], set[str]]  # what is assessed; what becomes FULL, from which level; what PARTIAL


def gaps_of(graph: MemoryGraph, framework: str) -> list[str]:
    """The applicable requirements of a framework below FULL."""
    return [
        control
        for control, found in graph.stored.items()
        if graph.frameworks[control] == framework and found.effective < FULL
        if control not in graph.groups and control not in graph.not_applicable
    ]


def in_order(controls: Collection[str]) -> Mapping[str, tuple[str]]:
    """By their names."""
    return {control: (control,) for control in controls}


def planned(graph: MemoryGraph, framework: str, most: int = 100) -> list[Found]:
    """The steps of a plan."""
    steps, is_complete = plan(View(graph, 1_000), gaps_of(graph, framework), most, in_order)
    assert is_complete
    return [(step.control, dict(step.closed), set(step.improved)) for step in steps]


def by_definition(
    controls: Mapping[str, definition.Control],
    matches: Collection[tuple[str, str, int]],
    frameworks: Mapping[str, str],
    framework: str,
    *,
    order: Callable[[str], object],
    most: int,
) -> list[Found]:
    """The steps that a plan is to have: every requirement is tried each time, and everything computed from scratch."""
    controls, steps = dict(controls), list[Found]()
    requirements = [name for name in definition.applicable(controls) if not controls[name].is_group]
    while len(steps) < most:
        before = definition.effective(controls, matches)
        if all(before[name] == 2 for name in requirements if frameworks[name] == framework):
            break
        choices = []
        for name in requirements:
            if before[name] == 2:
                continue
            after = definition.effective({**controls, name: replace(controls[name], assessed=2)}, matches)
            closed = {one: before[one] for one in requirements if before[one] < 2 == after[one]}
            improved = {one for one in requirements if before[one] == 0 and after[one] == 1}
            gain = (
                sum(frameworks[one] == framework for one in closed),
                len(closed),
                sum(frameworks[one] == framework for one in improved),
                len(improved),
                before[name] == 1,
            )
            choices.append((tuple(-one for one in gain), order(name), (name, closed, improved)))
        *_, best = min(choices, key=lambda choice: choice[:2])
        controls[best[0]] = replace(controls[best[0]], assessed=2)
        steps.append(best)
    return steps


def brute_force(graph: MemoryGraph, framework: str, most: int = 100) -> list[Found]:
    """The same for a world in memory."""
    controls = {
        name: definition.Control(
            graph.parents[name],
            is_category=name in graph.groups,
            assessed=graph.assessed.get(name),
            decision=name not in graph.not_applicable,
        )
        for name in graph.places
    }
    matches = [
        (source, target, int(level))
        for source, target, level in graph.relations.values()
        if source in controls and target in controls
    ]
    return by_definition(controls, matches, graph.frameworks, framework, order=lambda name: name, most=most)


@settings(deadline=None, max_examples=150)
@given(st.integers(0, 2**32))
def test_a_plan_is_what_a_brute_force_finds(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311
    graph = world(rng)
    for framework in sorted(graph.adopted):
        assert planned(graph, framework) == brute_force(graph, framework)


# --- What makes a plan more than the best single steps


def small(
    parents: Mapping[str, str | None], groups: Collection[str], matches: Collection[tuple[str, str, Level]]
) -> MemoryGraph:
    """Frameworks of controls that are named by their framework's letter and a number; nothing is assessed."""
    graph = MemoryGraph(
        frameworks={name: name[0] for name in parents},
        parents=dict(parents),
        groups={*groups},
        adopted={name[0] for name in parents},
        relations={str(number): match for number, match in enumerate(matches)},
    )
    graph.recompute()
    return graph


def test_a_step_may_gain_by_the_one_before() -> None:
    """Only the last requirement of a group makes it FULL, and with it what it leads to: no first step foresees that."""
    parents = {"A0": None, "A1": "A0", "A2": "A0", "B1": None, "B2": None, "B3": None}
    graph = small(parents, {"A0"}, [("A0", "B1", FULL), ("A0", "B2", FULL)])
    assert planned(graph, "B") == [
        ("B1", {"B1": NONE}, set()),
        ("B2", {"B2": NONE}, set()),
        ("B3", {"B3": NONE}, set()),
    ], "neither part of the group closes anything by itself"
    graph.assessed["A1"] = FULL
    graph.recompute()
    assert planned(graph, "B") == [
        ("A2", {"A2": NONE, "B1": NONE, "B2": NONE}, set()),
        ("B3", {"B3": NONE}, set()),
    ]


def test_a_plan_says_what_becomes_partial_once() -> None:
    parents = {"A1": None, "B1": None, "B2": None}
    graph = small(parents, (), [("A1", "B1", PARTIAL), ("A1", "B2", FULL)])
    assert planned(graph, "B") == [("A1", {"A1": NONE, "B2": NONE}, {"B1"}), ("B1", {"B1": PARTIAL}, set())]


def test_a_plan_has_no_more_steps_than_it_may() -> None:
    graph = small(dict.fromkeys(f"A{number}" for number in range(5)), (), ())
    assert [control for control, *_ in planned(graph, "A", 2)] == ["A0", "A1"]
    assert planned(graph, "A", 2) == brute_force(graph, "A", 2)


def test_a_plan_that_is_too_much_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has found by then is right."""
    graph = small(
        dict.fromkeys(f"A{number}" for number in range(50)), (), [(f"A{n}", f"A{n + 1}", FULL) for n in range(49)]
    )
    assert plan(View(graph, 20), gaps_of(graph, "A"), 3, in_order) == ([], False)
    monkeypatch.setattr(planning, "_MOST_WORK", 100)
    assert plan(View(graph, 1_000), gaps_of(graph, "A"), 3, in_order) == ([], False)


def test_what_a_trial_does_not_depend_on_does_not_repeat_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred pairs that have nothing to do with each other: after a step nothing else has to be tried again."""
    trials: list[str] = []
    tried = planning._Plan._tried

    def noted(self: planning._Plan, control: planning._Control) -> planning._Trial:
        trials.append(control.name)
        return tried(self, control)

    monkeypatch.setattr(planning._Plan, "_tried", noted)
    parents = dict.fromkeys(f"{framework}{number}" for number in range(100) for framework in "AB")
    graph = small(parents, (), [(f"A{number}", f"B{number}", FULL) for number in range(100)])
    steps, _ = plan(View(graph, 1_000), gaps_of(graph, "B"), 50, in_order)
    assert len(steps) == 50
    assert len(trials) == 200
