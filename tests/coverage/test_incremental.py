"""Incremental coverage: after any change it is what would be computed from scratch, at the cost of what it touches."""

from __future__ import annotations

import random
import statistics
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from normata.coverage.engine import Computed, Level
from normata.coverage.graph import GraphTooLarge, View
from normata.coverage.incremental import Ranked, update
from tests.coverage.graphs import MemoryGraph

NONE, PARTIAL, FULL = Level


@dataclass
class Touched:
    """What a step has changed, as `update` takes it."""

    reassessed: set[str] = field(default_factory=set)
    moved: set[str] = field(default_factory=set)
    rematched: set[str] = field(default_factory=set)


def follow(graph: MemoryGraph, touched: Touched) -> dict[str, Ranked | None]:
    """Bring what is stored up to date, and hold it against a computation from scratch; ranks against what they mean."""
    view = View(graph, 1_000_000)
    changes = update(view, reassessed=touched.reassessed, moved=touched.moved, rematched=touched.rematched)
    graph.store(changes)
    assert graph.stored == graph.afresh()
    assert all(graph.rests_on_lower_ranks(control) for control, found in graph.stored.items() if found.effective > NONE)
    return changes


# --- Any sequence of changes


def world(rng: random.Random) -> MemoryGraph:
    """Two to four frameworks of a few controls, most of them adopted, with matches and statements."""
    frameworks: dict[str, str] = {}
    parents: dict[str, str | None] = {}
    for name in "ABCD"[: rng.randint(2, 4)]:
        for number in range(rng.randint(1, 7)):
            control = f"{name}{number}"
            parents[control] = rng.choice([None, *(f"{name}{above}" for above in range(number))])
            frameworks[control] = name
    groups = {control for control in parents if rng.random() < 0.5}
    graph = MemoryGraph(frameworks, parents, groups, {name for name in frameworks.values() if rng.random() < 0.8})
    for _ in range(rng.randint(0, 3 * len(parents))):
        rematch(graph, rng, Touched())
    for _ in range(rng.randint(0, len(parents))):
        restate(graph, rng, Touched())
    graph.recompute()
    return graph


def unused(prefix: str, names: Collection[str]) -> str:
    """A name that is not taken. A random one might be: Hypothesis likes to repeat numbers."""
    return next(name for number in count() if (name := f"{prefix}{number}") not in names)


def restate(graph: MemoryGraph, rng: random.Random, touched: Touched) -> None:
    control = rng.choice(list(graph.parents))
    graph.assessed[control] = rng.choice(list(Level))
    if (rng.random() < 0.2) != (control in graph.not_applicable):
        graph.not_applicable ^= {control}
        touched.moved.add(control)
    if rng.random() < 0.2:
        del graph.assessed[control]
    touched.reassessed.add(control)


def rematch(graph: MemoryGraph, rng: random.Random, touched: Touched) -> None:
    """Make a match, mostly with one back; change one; or remove one."""
    if graph.relations and rng.random() < 0.4:
        name = rng.choice(list(graph.relations))
        touched.rematched.update(graph.relations[name][:2])
        if rng.random() < 0.5:
            del graph.relations[name]
            return
    else:
        name = unused("m", graph.relations)
    source, target = rng.choice(list(graph.parents)), rng.choice(list(graph.parents))
    graph.relations[name] = (source, target, rng.choice([PARTIAL, FULL]))
    if rng.random() < 0.6:
        back = f"{name}-back"
        touched.rematched.update(graph.relations.get(back, ())[:2])  # it may have joined others
        graph.relations[back] = (target, source, rng.choice([PARTIAL, FULL]))
    touched.rematched.update((source, target))


def move(graph: MemoryGraph, rng: random.Random, touched: Touched) -> None:
    control = rng.choice(list(graph.parents))
    former = graph.parents[control]
    others = [other for other, name in graph.frameworks.items() if name == graph.frameworks[control]]
    graph.parents[control] = rng.choice([None, *others])  # circles, too: they must do no harm
    touched.moved.update({control} if former is None else {control, former})


def add(graph: MemoryGraph, rng: random.Random, touched: Touched) -> None:
    name = rng.choice(list(graph.frameworks.values()))
    others = [other for other, owner in graph.frameworks.items() if owner == name]
    control = unused(f"{name}-", graph.frameworks)
    graph.frameworks[control], graph.parents[control] = name, rng.choice([None, *others])
    if rng.random() < 0.5:
        graph.groups.add(control)
    touched.moved.add(control)


def remove(graph: MemoryGraph, rng: random.Random, touched: Touched) -> None:
    if len(graph.parents) < 3:
        return
    control = rng.choice(list(graph.parents))
    del graph.frameworks[control]
    former = graph.parents.pop(control)
    touched.moved.update({control} if former is None else {control, former})
    for child, parent in graph.parents.items():
        if parent == control:
            graph.parents[child] = None
            touched.moved.add(child)
    for name, (source, target, _) in list(graph.relations.items()):
        if control in {source, target}:
            del graph.relations[name]
            touched.rematched.update((source, target))
    graph.assessed.pop(control, None)
    graph.not_applicable.discard(control)
    graph.groups.discard(control)


def regroup(graph: MemoryGraph, rng: random.Random, touched: Touched) -> None:
    """Make a group a requirement, or the other way round."""
    control = rng.choice(list(graph.parents))
    graph.groups ^= {control}
    touched.moved.add(control)


def adopt(graph: MemoryGraph, rng: random.Random, touched: Touched) -> None:
    name = rng.choice(sorted(graph.frameworks.values()))
    graph.adopted ^= {name}
    touched.moved.update(control for control, owner in graph.frameworks.items() if owner == name)


STEPS = (restate, restate, restate, rematch, rematch, move, add, remove, regroup, adopt)


@settings(deadline=None, max_examples=100)
@given(st.randoms(use_true_random=False))
def test_after_any_sequence_it_is_what_follows(rng: random.Random) -> None:
    graph = world(rng)
    for _ in range(8):
        touched = Touched()
        for _ in range(rng.choice([1, 1, 1, 2, 5])):
            rng.choice(STEPS)(graph, rng, touched)
        follow(graph, touched)


def test_larger_graphs_with_many_circles() -> None:
    """Frameworks that map onto one another both ways, as published ones do."""
    rng = random.Random(5)  # noqa: S311 - the same graphs every time
    for _ in range(20):
        frameworks = {f"{name}{number}": name for name in "ABC" for number in range(40)}
        parents = {
            control: None if number < 4 else f"{control[0]}{(number - 4) // 4}"
            for control in frameworks
            for number in [int(control[1:])]
        }
        groups = {parent for parent in parents.values() if parent is not None and rng.random() < 0.7}
        graph = MemoryGraph(frameworks, parents, groups, set("ABC"))
        for _ in range(150):
            rematch(graph, rng, Touched())
        graph.recompute()
        for _ in range(15):
            touched = Touched()
            rng.choice([restate, restate, rematch])(graph, rng, touched)
            follow(graph, touched)


# --- By example


def ring(length: int) -> MemoryGraph:
    """Controls that are equal to the next, in a circle, and beside it a crowd that has nothing to do with it."""
    names = [f"c{number}" for number in range(length)] + [f"x{number}" for number in range(100)]
    graph = MemoryGraph(dict.fromkeys(names, "F"), dict.fromkeys(names), set(), {"F"})
    for number in range(length):
        source, target = f"c{number}", f"c{(number + 1) % length}"
        graph.relations[f"m{number}"] = (source, target, FULL)
        graph.relations[f"x{number}"] = (f"x{2 * number}", f"x{2 * number + 1}", FULL)
    graph.recompute()
    return graph


def test_a_circle_that_loses_its_reason_falls_as_a_whole_and_the_rest_is_not_read() -> None:
    graph = ring(5)
    graph.assessed["c2"] = FULL
    assert follow(graph, Touched({"c2"})).keys() == {f"c{number}" for number in range(5)}
    graph.read.clear()
    del graph.assessed["c2"]
    assert follow(graph, Touched({"c2"})).keys() == {f"c{number}" for number in range(5)}
    assert graph.read == {f"c{number}" for number in range(5)}


def test_what_has_another_reason_stays() -> None:
    graph = ring(5)
    graph.assessed |= {"c2": FULL, "c4": FULL}
    follow(graph, Touched({"c2", "c4"}))
    del graph.assessed["c2"]
    changed = follow(graph, Touched({"c2"}))
    # It is indirect now, three steps from the other statement, and c3 one more. All are as far covered as they were.
    assert changed == {"c2": (Computed.of(FULL, NONE), 3, True), "c3": (Computed.of(FULL, NONE), 4, True)}


@pytest.mark.parametrize("then", [NONE, FULL])
def test_groups_and_what_is_below_them_may_change_at_once(then: Level) -> None:
    """In whatever order they are looked at: with twenty, some group comes after what is below it."""
    groups = {f"G{number}" for number in range(20)}
    parents: dict[str, str | None] = dict.fromkeys(groups)
    for group in sorted(groups):
        parents |= {f"{group}.1": group, f"{group}.2": group}
    graph = MemoryGraph(dict.fromkeys(parents, "F"), parents, groups, {"F"})
    graph.assessed = {f"{group}.1": PARTIAL for group in groups}
    graph.recompute()
    assert {graph.stored[group].effective for group in groups} == {PARTIAL}
    graph.assessed = {f"{group}.1": then for group in groups}
    follow(graph, Touched(reassessed={*parents}))
    assert {graph.stored[group].effective for group in groups} == {NONE if then == NONE else PARTIAL}


def test_a_change_that_makes_no_difference_reads_the_neighbours_alone() -> None:
    graph = ring(50)
    graph.assessed["c0"] = FULL
    follow(graph, Touched({"c0"}))
    graph.assessed["c25"] = FULL
    graph.read.clear()
    assert follow(graph, Touched({"c25"})) == {"c25": (Computed.of(FULL, FULL), 0, True)}
    assert graph.read == {"c24", "c25", "c26"}


@pytest.mark.long
def test_where_everything_hangs_together_a_change_still_reads_little() -> None:
    """Hundreds of controls that are nearly all FULL by one another, in circles without number."""
    rng = random.Random(9)  # noqa: S311 - the same graph every time
    names = [f"c{number}" for number in range(500)]
    graph = MemoryGraph(dict.fromkeys(names, "F"), dict.fromkeys(names), set(), {"F"})
    for number in range(2_000):
        graph.relations[str(number)] = (rng.choice(names), rng.choice(names), rng.choice([PARTIAL, FULL]))
    graph.assessed = dict.fromkeys(rng.sample(names, 50), FULL)
    graph.recompute()
    assert sum(found.effective == FULL for found in graph.stored.values()) > 350
    read = []
    for control in rng.sample(sorted(graph.assessed), 12):
        del graph.assessed[control]
        graph.read.clear()
        follow(graph, Touched({control}))
        read.append(len(graph.read))
    assert statistics.median(read) < 100


def test_too_much_is_told() -> None:
    graph = ring(50)
    graph.assessed["c0"] = FULL
    with pytest.raises(GraphTooLarge):
        update(View(graph, 49), reassessed={"c0"})
    assert len(update(View(graph, 50), reassessed={"c0"})) == 50
