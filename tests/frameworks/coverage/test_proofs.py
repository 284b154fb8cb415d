"""Proofs, effects and lifts on graphs of any shape: steps are checked by the rules alone, claims by computing."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from normata.frameworks.coverage.engine import Level, compute
from normata.frameworks.coverage.graph import View
from normata.frameworks.coverage.influence import effects, lifts
from normata.frameworks.coverage.proofs import Fact, Found, Proof, ProofStep, Rule, prove
from tests.frameworks.coverage.graphs import MemoryGraph
from tests.frameworks.coverage.test_incremental import world

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
    (control, level), (rule, premises, back) = step
    levels = {one.level for one in premises}
    if rule is Rule.STATEMENT:
        return not premises and graph.statements.get(control, NONE) >= level > NONE
    if rule is Rule.MATCH:
        [source] = premises
        ahead = [how for first, last, how in graph.relations.values() if (first, last) == (source.control, control)]
        behind = [how for first, last, how in graph.relations.values() if (first, last) == (control, source.control)]
        if level == FULL:
            return source.level == FULL and FULL in ahead and not back
        return ahead != [] and (source.level == FULL or (back and FULL in behind))
    children = {
        child for child, above in graph.parents.items() if above == control and child not in graph.not_applicable
    }
    if level == FULL:
        return (
            rule is Rule.ROLL_UP
            and children != set()
            and {one.control for one in premises} == children
            and levels == {FULL}
        )
    return rule is Rule.ROLL_UP and len(premises) == 1 and premises[0].control in children


def proofs_of(graph: MemoryGraph, control: str) -> Found:
    view = View(graph, 1_000)
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
            children = [child for child in applicable if graph.parents[child] == control]
            for level in (FULL, PARTIAL):
                found = [costs[Fact(control, level)]] if Fact(control, level) in costs else []
                if graph.statements.get(control, NONE) >= level:
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
    return {step.fact.control for step in proof if step.inference.rule is Rule.STATEMENT}


@settings(deadline=None, max_examples=200)
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


@settings(deadline=None, max_examples=150)
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
            for name, level in graph.statements.items()
            if compute(parents_of(graph), graph.relations.values(), {name: level}, graph.not_applicable)[
                control
            ].effective
            >= computed.effective
        }
        assert named <= alone
        # Of a control that is FULL two children of one statement may make the parent FULL: no chain, and not named.
        assert not found.is_complete or computed.effective == FULL or named == alone


def parents_of(graph: MemoryGraph) -> dict[str, str | None]:
    return {control: graph.parents[control] for control, name in graph.frameworks.items() if name in graph.adopted}


@settings(deadline=None, max_examples=150)
@given(st.randoms(use_true_random=False))
def test_effects_are_what_is_lost_without_the_statement(rng: random.Random) -> None:
    graph = world(rng)
    for control in graph.stored:
        others = {name: level for name, level in graph.statements.items() if name != control}
        without = compute(parents_of(graph), graph.relations.values(), others, graph.not_applicable)
        assert {(one.control, one.level, one.without) for one in effects(graph, control) or ()} == {
            (name, computed.effective, without[name].effective)
            for name, computed in graph.stored.items()
            if name != control and computed.effective != without[name].effective
        }


@settings(deadline=None, max_examples=150)
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
            stated = graph.statements | {source: lift.needs}
            after = compute(parents_of(graph), graph.relations.values(), stated, graph.not_applicable)
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


def chain(length: int) -> MemoryGraph:
    names = [f"c{number}" for number in range(length)]
    graph = MemoryGraph(dict.fromkeys(names, "F"), dict.fromkeys(names), {"F"})
    for number in range(1, length):
        graph.relations[str(number)] = (f"c{number - 1}", f"c{number}", FULL)
    graph.statements["c0"] = FULL
    graph.recompute()
    return graph


def test_a_proof_may_be_long() -> None:
    graph = chain(900)
    found = proofs_of(graph, "c899")
    verify(graph, found.proof, Fact("c899", FULL))
    assert len(found.proof) == 900


def test_a_circle_proves_nothing() -> None:
    """What is stored does not follow from any statement: that is told, and nothing is made up."""
    graph = chain(3)
    graph.relations["back"] = ("c2", "c0", FULL)
    graph.statements.clear()
    with pytest.raises(LookupError, match="does not follow"):
        proofs_of(graph, "c2")


def test_effects_that_hang_too_far_together_are_not_followed() -> None:
    assert len(effects(chain(250), "c0") or ()) == 249
    assert effects(chain(400), "c0") is None
