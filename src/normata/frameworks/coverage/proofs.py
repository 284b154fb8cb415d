"""Why a control is covered as far as it is: the shortest proof, and the other statements that would each do.

A fact is that a control is FULL, or that it is PARTIAL or better. It follows from others by one of the rules in
``engine.py``. What is stored tells which facts hold.

One proof is always at hand: down the ranks, from each fact to others of lower rank, until statements are reached. Then
a search looks for shorter ones. It goes backwards from what is to be proved over facts that hold, in waves, until it
has seen enough. A fact that holds may still support itself in a circle. So nothing counts as proved until it has been
derived forwards again, from statements: the cheapest derivation of each fact first (Knuth's generalization of
Dijkstra's algorithm), which can use no fact before that has been derived itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from heapq import heappop, heappush
from typing import NamedTuple

from normata.frameworks.coverage.engine import Level
from normata.frameworks.coverage.graph import View

NONE, PARTIAL, FULL = Level


class Fact(NamedTuple):
    """That a control is FULL; with PARTIAL, that it is PARTIAL or better."""

    control: str
    level: Level


class Rule(StrEnum):
    """What a step of a proof rests on."""

    STATEMENT = "STATEMENT"
    MATCH = "MATCH"
    ROLL_UP = "ROLL_UP"


class Inference(NamedTuple):
    """How a fact follows: by which rule, from which others.

    ``back`` tells that a match gives PARTIAL because its source lies within its target, which the match back says.
    Without a rule, that a control is PARTIAL or better follows from its being FULL, which is no step.
    """

    rule: Rule | None
    premises: tuple[Fact, ...] = ()
    back: bool = False


class ProofStep(NamedTuple):
    """One step of a proof: a fact, and how it follows from facts of earlier steps."""

    fact: Fact
    inference: Inference


Proof = Sequence[ProofStep]


class Found(NamedTuple):
    """The shortest proof of a fact, and proofs from one other statement each, nearest first.

    ``is_complete`` tells that there is no other statement that would do by itself.
    """

    proof: Proof
    others: Sequence[Proof]
    is_complete: bool


_ENOUGH = 40  # facts; no wave is begun that goes beyond


def prove(view: View, fact: Fact, most_others: int) -> Found:
    """The proofs of a fact that holds, by what is stored. The control has been read.

    A proof with the least number of steps is found, unless that takes a look at more than some dozen facts: then it is
    the shortest that has been seen. Raises TooMuch, and LookupError where the stored coverage does not follow.
    """
    proof = _down_the_ranks(view, fact)
    inferences: dict[Fact, list[Inference]] = {}
    frontier = [fact]
    others: list[Proof] = []
    depth = 0
    while frontier and (len(inferences) + len(frontier) <= _ENOUGH or not inferences):
        frontier = _look_behind(view, frontier, inferences)
        depth += 1
        shorter = _shortest(inferences, fact)
        if shorter is not None and len(shorter) < len(proof):
            proof = shorter
        others = list(_alternatives(inferences, fact, proof))
        # What has not been looked at is `depth` steps away, so a proof by it has one step more than that.
        if len(proof) <= depth + 1 and len(others) > most_others:
            break
    return Found(proof, others[:most_others], is_complete=not frontier and len(others) <= most_others)


def _down_the_ranks(view: View, goal: Fact) -> Proof:
    """The proof in which each fact follows from facts of the lowest ranks. Raises LookupError where there is none."""
    chosen: dict[Fact, Inference] = {}
    wave = {goal}
    while wave:
        controls = {fact.control for fact in wave}
        view.read_matches(controls)
        view.read_below(controls)
        for fact in wave:
            own = _place(view, fact.control)
            found = [
                (max((_place(view, premise.control) for premise in inference.premises), default=(0, -1)), inference)
                for inference in _inferences(view, fact)
            ]
            lower = [one for one in found if one[1].rule is None or one[0] < own or not one[1].premises]
            if not lower:
                raise LookupError(f"the coverage of {fact.control} does not follow from what is stated")
            chosen[fact] = min(lower, key=lambda one: one[0])[1]
        wave = {premise for fact in wave for premise in chosen[fact].premises} - chosen.keys()
    return _written_out(chosen, goal)


def _place(view: View, control: str) -> tuple[int, int]:
    """Where a control is among all: those that are FULL are before those that are PARTIAL, each by their ranks."""
    node = view.node(control)
    if node is None:
        return 2, 0
    return (0 if node.effective == FULL else 1), node.rank or 0


def _look_behind(view: View, frontier: Iterable[Fact], inferences: dict[Fact, list[Inference]]) -> list[Fact]:
    """Note how each fact may follow. Returns those that were met for the first time."""
    pending = list(frontier)
    controls = {fact.control for fact in pending}
    view.read_matches(controls)
    view.read_below(controls)
    met: dict[Fact, None] = {}
    for fact in pending:  # grows
        if fact in inferences:
            continue
        found = inferences[fact] = list(_inferences(view, fact))
        for inference in found:
            for premise in inference.premises:
                if inference.rule is None:
                    pending.append(premise)  # the same control: it has been read, and is no further away
                else:
                    met[premise] = None
    return [fact for fact in met if fact not in inferences]


def _inferences(view: View, fact: Fact) -> Iterator[Inference]:
    """How a fact that holds may follow, from facts that hold."""
    control, level = fact
    node = view.node(control)
    if node is None or not node.counts:
        return
    if node.stated >= level:
        yield Inference(Rule.STATEMENT)
    if level == PARTIAL and node.effective == FULL:
        yield Inference(None, (Fact(control, FULL),))
    for match in view.behind(control):
        source = _effective(view, match.source)
        if source == FULL and match.level >= level:
            yield Inference(Rule.MATCH, (Fact(match.source, FULL),))
        if source >= PARTIAL == level and match.within:
            yield Inference(Rule.MATCH, (Fact(match.source, PARTIAL),), back=True)
    children = view.below(control)
    if level == PARTIAL:
        for child in children:
            if _effective(view, child) >= PARTIAL:
                yield Inference(Rule.ROLL_UP, (Fact(child, PARTIAL),))
    elif children and all(_effective(view, child) == FULL for child in children):
        yield Inference(Rule.ROLL_UP, tuple(Fact(child, FULL) for child in children))


def _effective(view: View, control: str) -> Level:
    node = view.node(control)
    return node.effective or NONE if node and node.counts else NONE


def _shortest(inferences: Mapping[Fact, Sequence[Inference]], goal: Fact) -> Proof | None:
    """The proof with the fewest steps, as far as inferences are known. A step that serves twice is counted twice."""
    uses: dict[Fact, list[tuple[Fact, Inference]]] = {}
    lacking: dict[tuple[Fact, Inference], int] = {}
    costs: dict[Fact, int] = {}
    chosen: dict[Fact, Inference] = {}
    heap: list[tuple[int, int, Fact, Inference]] = []
    number = 0  # so that nothing but the cost and the order of discovery decides
    for fact, found in inferences.items():
        for inference in found:
            lacking[fact, inference] = len(set(inference.premises))
            for premise in set(inference.premises):
                uses.setdefault(premise, []).append((fact, inference))
            if not inference.premises:
                number += 1
                heappush(heap, (1, number, fact, inference))
    while heap:
        cost, _, fact, inference = heappop(heap)
        if fact in costs:
            continue
        costs[fact], chosen[fact] = cost, inference
        if fact == goal:
            return _written_out(chosen, goal)
        for conclusion, using in uses.get(fact, ()):
            lacking[conclusion, using] -= 1
            if not lacking[conclusion, using] and conclusion not in costs:
                number += 1
                total = sum(costs[premise] for premise in using.premises) + (using.rule is not None)
                heappush(heap, (total, number, conclusion, using))
    return None


def _written_out(chosen: Mapping[Fact, Inference], goal: Fact) -> Proof:
    """The steps that lead to a fact, each after those that it rests on, and each once."""
    steps: dict[Fact, ProofStep | None] = {}
    pending = [goal]
    while pending:
        fact = pending[-1]
        missing = [premise for premise in chosen[fact].premises if premise not in steps]
        if fact in steps or not missing:
            pending.pop()
            steps.setdefault(fact, _step(fact, chosen))
        else:
            pending += reversed(missing)
    return [step for step in steps.values() if step is not None]


def _step(fact: Fact, chosen: Mapping[Fact, Inference]) -> ProofStep | None:
    inference = chosen[fact]
    if inference.rule is None:
        return None
    return ProofStep(fact, inference._replace(premises=tuple(_said(one, chosen) for one in inference.premises)))


def _said(fact: Fact, chosen: Mapping[Fact, Inference]) -> Fact:
    """The fact itself, or the stronger one that stands for it in the proof."""
    inference = chosen[fact]
    return fact if inference.rule is not None else inference.premises[0]


def _alternatives(inferences: Mapping[Fact, Sequence[Inference]], goal: Fact, proof: Proof) -> Iterator[Proof]:
    """Proofs from one statement each, nearest first, but for the statement that is all that ``proof`` rests on."""
    stated = {step.fact.control for step in proof if step.inference.rule is Rule.STATEMENT}
    seen = stated if len(stated) == 1 else set()
    seen = set(seen)
    # From each fact the inference of which it is the only premise, on the shortest way to the goal.
    ahead: dict[Fact, tuple[Fact, Inference] | None] = {goal: None}
    pending = [goal]
    for fact in pending:  # grows
        for inference in inferences.get(fact, ()):
            if inference.rule is Rule.STATEMENT and fact.control not in seen:
                seen.add(fact.control)
                yield _chain(fact, ahead)
            elif len(inference.premises) == 1 and inference.premises[0] not in ahead:
                ahead[inference.premises[0]] = (fact, inference)
                pending.append(inference.premises[0])


def _chain(start: Fact, ahead: Mapping[Fact, tuple[Fact, Inference] | None]) -> Proof:
    chosen = {start: Inference(Rule.STATEMENT)}
    fact = start
    while (step := ahead[fact]) is not None:
        fact, inference = step
        chosen[fact] = inference
    return _written_out(chosen, fact)
