"""Proofs, effects and lifts on graphs of any shape: steps are checked by the rules alone, claims by computing."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from normata.coverage.engine import Level, compute
from normata.coverage.graph import View
from normata.coverage.influence import effects, lifts
from normata.coverage.proofs import Fact, Proof, ProofResult, ProofStep, Rule, prove
from tests.coverage.graphs import MemoryGraph
from tests.coverage.test_incremental import world

NONE, PARTIAL, FULL = Level


def verify(graph: MemoryGraph, proof: Proof, goal: Fact) -> None:
    """Check a proof step by step. It knows the rules and the graph, and nothing of what was computed."""
    shown: set[Fact] = set()
    for step in proof:
        assert set(step.inference.premises) <= shown, "it rests on earlier steps"
        assert graph.frameworks[step.fact.control] in graph.adopted
        assert step.fact.control not in graph.not_applicable
        assert follows(graph, step), step
        shown.add(step.fact)
    assert proof[-1].fact == goal


def follows(graph: MemoryGraph, step: ProofStep) -> bool:
    """Whether a step is one of the rules."""
    (control, level), (rule, premises, back, hidden) = step
    assert not hidden or (rule is Rule.ROLL_UP and level == FULL)
    levels = {one.level for one in premises}
    if rule is Rule.ASSESSMENT:
        return not premises and graph.assessed.get(control, NONE) >= level > NONE
    if rule is Rule.MATCH:
        [source] = premises
        ahead = [how for first, last, how in graph.relations.values() if (first, last) == (source.control, control)]
        behind = [how for first, last, how in graph.relations.values() if (first, last) == (control, source.control)]
        if level == FULL:
            return source.level == FULL and FULL in ahead and not back
        return ahead != [] and (source.level == FULL or (back and FULL in behind))
    children = set(graph.below([control]).get(control, ()))
    if level == FULL:
        return (
            rule is Rule.ROLL_UP
            and children != set()
            and {one.control for one in premises} <= children
            and len(set(premises)) + hidden == len(children)
            and levels == {FULL}
        )
    return rule is Rule.ROLL_UP and len(premises) == 1 and premises[0].control in children


def proofs_of(graph: MemoryGraph, control: str, foremost: int = 10) -> ProofResult:
    view = View(graph, 1_000, foremost)
    view.read([control])
    return prove(view, Fact(control, graph.stored[control].effective), 10)


def least_steps(graph: MemoryGraph) -> dict[Fact, int]:
    """By brute force: with how few steps each fact can be proved, a step that serves twice counted twice."""
    costs: dict[Fact, int] = {}
    applicable = [
        control
        for control, name in graph.frameworks.items()
        if name in graph.adopted and control not in graph.not_applicable
    ]
    while True:
        before = dict(costs)
        for control in applicable:
            children = graph.below([control]).get(control, [])
            for level in (FULL, PARTIAL):
                found = [costs[Fact(control, level)]] if Fact(control, level) in costs else []
                if graph.assessed.get(control, NONE) >= level:
                    found.append(1)
                if level == PARTIAL and Fact(control, FULL) in costs:
                    found.append(costs[Fact(control, FULL)])
                for source, target, how in graph.relations.values():
                    back = any(
                        (first, last, much) == (control, source, FULL) for first, last, much in graph.relations.values()
                    )
                    if target == control and Fact(source, FULL) in costs and how >= level:
                        found.append(1 + costs[Fact(source, FULL)])
                    if target == control and Fact(source, PARTIAL) in costs and level == PARTIAL and back:
                        found.append(1 + costs[Fact(source, PARTIAL)])
                facts = [Fact(child, level) for child in children]
                if level == PARTIAL:
                    found += [1 + costs[fact] for fact in facts if fact in costs]
                elif facts and all(fact in costs for fact in facts):
                    found.append(1 + sum(costs[fact] for fact in facts))
                if found:
                    costs[Fact(control, level)] = min(found)
        if costs == before:
            return costs


def statements_of(proof: Sequence[ProofStep]) -> set[str]:
    return {step.fact.control for step in proof if step.inference.rule is Rule.ASSESSMENT}


@settings(deadline=None, max_examples=40)
@given(st.randoms(use_true_random=False))
def test_every_claim_has_a_proof_and_no_shorter_one(rng: random.Random) -> None:
    graph = world(rng)
    least = least_steps(graph)
    for control, computed in graph.stored.items():
        goal = Fact(control, computed.effective)
        if computed.effective == NONE:
            assert Fact(control, PARTIAL) not in least
            continue
        found = proofs_of(graph, control)
        verify(graph, found.proof, goal)
        assert len(found.proof) <= least[goal]
        reasons = [statements_of(proof) for proof in found.others]
        for proof, reason in zip(found.others, reasons, strict=True):
            verify(graph, proof, goal)
            assert len(reason) == 1
        assert len({frozenset(reason) for reason in reasons}) == len(reasons), "each names another statement"
        assert [len(proof) for proof in found.others] == sorted(len(proof) for proof in found.others)


@settings(deadline=None, max_examples=40)
@given(st.randoms(use_true_random=False))
def test_the_other_statements_are_all_that_would_do_alone(rng: random.Random) -> None:
    graph = world(rng)
    for control, computed in graph.stored.items():
        if computed.effective == NONE:
            continue
        found = proofs_of(graph, control)
        named = {name for proof in found.others for name in statements_of(proof)}
        if len(statements_of(found.proof)) == 1:
            named |= statements_of(found.proof)
        alone = {
            name
            for name, level in graph.assessed.items()
            if compute(graph.places, graph.relations.values(), {name: level}, graph.not_applicable)[control].effective
            >= computed.effective
        }
        assert named <= alone
        assert not found.is_complete or named == alone


@settings(deadline=None, max_examples=40)
@given(st.randoms(use_true_random=False))
def test_effects_are_what_is_lost_without_the_statement(rng: random.Random) -> None:
    graph = world(rng)
    for control in graph.stored:
        others = {name: level for name, level in graph.assessed.items() if name != control}
        applies = [name for name in graph.not_applicable if name != control]  # where nothing is said of it, it applies
        begins = {control: True} if control in graph.not_applicable else {}
        without = compute(graph.places, graph.relations.values(), others, applies)
        assert {(one.control, one.level, one.without) for one in effects(graph, control, begins) or ()} == {
            (name, computed.effective, without[name].effective)
            for name, computed in graph.stored.items()
            if name != control and computed.effective != without[name].effective
        }


@settings(deadline=None, max_examples=40)
@given(st.randoms(use_true_random=False))
def test_lifts_lift(rng: random.Random) -> None:
    graph = world(rng)
    for control, computed in graph.stored.items():
        view = View(graph, 1_000)
        view.read([control])
        found, _ = lifts(view, control, 10)
        assert found == [] or (computed.effective < FULL and control not in graph.not_applicable)
        assert [len(lift.path) for lift in found] == sorted(len(lift.path) for lift in found)
        for lift in found:
            source = lift.path[0]
            assert graph.stored[source].effective < lift.needs
            assessed = graph.assessed | {source: lift.needs}
            after = compute(graph.places, graph.relations.values(), assessed, graph.not_applicable)
            assert after[control].effective >= lift.gives > computed.effective
        near = {
            source
            for source, target, level in graph.relations.values()
            if target == control
            and source != control
            and source in graph.stored
            and source not in graph.not_applicable
            and graph.stored[source].effective < FULL
            and (level == FULL or computed.effective == NONE)
        }
        if computed.effective < FULL and control not in graph.not_applicable and len(found) < 10:
            assert {lift.path[0] for lift in found if len(lift.path) == 2} == near


@settings(deadline=None, max_examples=120)
@given(st.randoms(use_true_random=False))
def test_what_a_roll_up_does_not_show_rests_on_nothing_that_follows_from_it(rng: random.Random) -> None:
    """With one child shown of each, and ranks as a version without ranks leaves them. No claim stands on itself."""
    graph = world(rng)
    if rng.random() < 0.3:
        graph.ranks = {control: rng.choice([0, rank]) for control, rank in graph.ranks.items()}
    for control, computed in graph.stored.items():
        if computed.effective == NONE:
            continue
        found = proofs_of(graph, control, foremost=1)
        for proof in (found.proof, *found.others):
            if not proof:
                assert 0 in graph.ranks.values()
                continue
            verify(graph, proof, Fact(control, computed.effective))
            for first in (step for step in proof if step.inference.hidden):
                after = {first.fact}
                for step in proof:
                    if after & set(step.inference.premises):
                        after.add(step.fact)
                gone = {fact.control for fact in after if fact.level == FULL}
                rest = {name: above for name, above in graph.places.items() if name not in gone}
                assessed = {name: level for name, level in graph.assessed.items() if name not in gone}
                without = compute(rest, graph.relations.values(), assessed, graph.not_applicable)
                for child in graph.below([first.fact.control])[first.fact.control]:
                    assert without[child].effective == FULL


@pytest.mark.parametrize("by_match", [False, True])
def test_of_many_children_the_first_are_shown(*, by_match: bool) -> None:
    """A category with thousands of children costs what a category with ten does, whatever they rest on."""
    graph = MemoryGraph({"P": "F"}, {"P": None}, {"P"}, {"F"})
    for number in range(5_000):
        graph.frameworks[f"c{number}"], graph.parents[f"c{number}"] = "F", "P"
        source = f"c{number}"
        if by_match:
            source = f"s{number}"
            graph.frameworks[source], graph.parents[source] = "F", None
            graph.relations[source] = (source, f"c{number}", FULL)
        graph.assessed[source] = FULL
    graph.recompute()
    found = proofs_of(graph, "P")
    verify(graph, found.proof, Fact("P", FULL))
    last = found.proof[-1].inference
    assert (len(found.proof), len(last.premises), last.hidden) == (21 if by_match else 11, 10, 4_990)
    assert len(graph.read) < 100


def test_of_a_deep_hierarchy_little_is_shown() -> None:
    graph = MemoryGraph({}, {}, set(), {"F"})
    for name in ["P", *(f"P{a}" for a in range(10)), *(f"P{a}{b}" for a in range(10) for b in range(10))]:
        graph.parents[name] = name[:-1] or None
    for name in [name for name in graph.parents if len(name) == 3]:
        for number in range(10):
            graph.parents[f"{name}{number}"] = name
            graph.assessed[f"{name}{number}"] = FULL
    graph.frameworks = dict.fromkeys(graph.parents, "F")
    graph.groups = {name for name in graph.parents if len(name) < 4}
    graph.recompute()
    found = proofs_of(graph, "P")
    verify(graph, found.proof, Fact("P", FULL))
    assert len(found.proof) <= 1 + 10
    assert len(graph.read) < 1_000


def chain(length: int) -> MemoryGraph:
    names = [f"c{number}" for number in range(length)]
    graph = MemoryGraph(dict.fromkeys(names, "F"), dict.fromkeys(names), set(), {"F"})
    for number in range(1, length):
        graph.relations[str(number)] = (f"c{number - 1}", f"c{number}", FULL)
    graph.assessed["c0"] = FULL
    graph.recompute()
    return graph


def test_a_proof_may_be_long() -> None:
    graph = chain(90)
    found = proofs_of(graph, "c89")
    verify(graph, found.proof, Fact("c89", FULL))
    assert len(found.proof) == 90


def test_a_proof_that_is_too_long_is_not_followed() -> None:
    graph = chain(900)
    found = proofs_of(graph, "c899")
    assert (found.proof, found.others, found.is_complete) == ((), [], False)
    assert len(graph.read) < 200


def test_where_ranks_are_missing_a_proof_is_looked_for_around() -> None:
    graph = chain(900)
    graph.ranks = dict.fromkeys(graph.ranks, 0)
    verify(graph, proofs_of(graph, "c9").proof, Fact("c9", FULL))
    assert not proofs_of(graph, "c99").proof


def test_too_many_matches_to_read() -> None:
    graph = MemoryGraph({"hub": "F"}, {"hub": None}, set(), {"F"}, assessed={"hub": FULL})
    for number in range(2_000):
        graph.frameworks[f"c{number}"], graph.parents[f"c{number}"] = "F", None
        graph.relations[str(number)] = (f"c{number}", "hub", FULL)
    graph.recompute()
    found = proofs_of(graph, "hub")
    assert (len(found.proof), found.is_complete) == (1, False)
    graph.assessed["hub"] = PARTIAL
    graph.recompute()
    view = View(graph, 1_000)
    view.read(["hub"])
    assert lifts(view, "hub", 10) == ([], False)


def test_where_everything_hangs_together_a_proof_reads_little() -> None:
    rng = random.Random(9)  # noqa: S311 - the same graph every time
    names = [f"c{number}" for number in range(2_000)]
    graph = MemoryGraph(dict.fromkeys(names, "F"), dict.fromkeys(names), set(), {"F"})
    for number in range(8_000):
        graph.relations[str(number)] = (rng.choice(names), rng.choice(names), rng.choice([PARTIAL, FULL]))
    graph.assessed = dict.fromkeys(rng.sample(names, 20), FULL)
    graph.recompute()
    for control in rng.sample(sorted(graph.stored), 25):
        level = graph.stored[control].effective
        if level > NONE:
            graph.read.clear()
            verify(graph, proofs_of(graph, control).proof, Fact(control, level))
            assert len(graph.read) < 400


def test_a_circle_proves_nothing() -> None:
    """What is stored does not follow from any statement: nothing is made up."""
    graph = chain(3)
    graph.relations["back"] = ("c2", "c0", FULL)
    graph.assessed.clear()
    assert proofs_of(graph, "c2").proof == ()


@settings(deadline=None, max_examples=40)
@given(st.randoms(use_true_random=False))
def test_lifts_that_are_all_are_all_that_matches_allow(rng: random.Random) -> None:
    graph = world(rng)
    graph.parents = dict.fromkeys(graph.parents)
    graph.recompute()
    for control, computed in graph.stored.items():
        if control in graph.not_applicable:
            continue
        view = View(graph, 1_000)
        view.read([control])
        found, are_all = lifts(view, control, 10)
        lifting = {
            name
            for name in graph.stored
            if name != control
            and compute(graph.places, graph.relations.values(), graph.assessed | {name: FULL}, graph.not_applicable)[
                control
            ].effective
            > computed.effective
        }
        assert {lift.path[0] for lift in found} <= lifting
        assert not are_all or {lift.path[0] for lift in found} == lifting


def test_lifts_beyond_what_was_looked_at_are_not_denied() -> None:
    graph = chain(8)
    graph.assessed.clear()
    graph.recompute()
    view = View(graph, 1_000)
    view.read(["c7", "c3", "c2"])
    names = {control: [lift.path[0] for lift in lifts(view, control, 10)[0]] for control in ("c7", "c3", "c2")}
    assert names == {"c7": ["c6", "c5", "c4"], "c3": ["c2", "c1", "c0"], "c2": ["c1", "c0"]}
    assert not lifts(view, "c7", 10)[1], "c3 would, too"
    assert lifts(view, "c2", 10)[1]


def test_effects_that_hang_too_far_together_are_not_followed() -> None:
    assert len(effects(chain(250), "c0", {}) or ()) == 249
    assert effects(chain(400), "c0", {}) is None
