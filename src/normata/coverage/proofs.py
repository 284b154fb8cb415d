"""The shortest proof of a control's coverage, and the other assessments that would each be sufficient.

A fact is that a control is FULL, or that it is PARTIAL or better. It follows from others by one of the rules in
``engine.py``. Stored coverage shows which facts hold. One proof is always known: down the ranks, from each fact to
others of lower rank, down to assessments. Then a search looks for shorter ones. It goes backwards from the fact to
prove over facts that hold, in waves, up to a limit. Proofs are for people, so of a roll-up of many requirements the
first few are shown and followed, with the number of the others. That is done only down the ranks: there each
requirement that is not shown has a lower rank than the fact that depends on it, so that it depends on nothing that is
shown after it.

A fact that holds may still support itself in a circle. So a fact is proved only once it has been derived forwards
again, from assessments: the cheapest derivation of each fact first (Knuth's generalization of Dijkstra's algorithm),
which can use no fact before that has been derived itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from heapq import heappop, heappush
from typing import NamedTuple

from normata.coverage.engine import Level
from normata.coverage.graph import UNRANKED, GraphTooLarge, View

NONE, PARTIAL, FULL = Level


class Fact(NamedTuple):
    """That a control is FULL; with PARTIAL, that it is PARTIAL or better."""

    control: str
    level: Level


class Rule(StrEnum):
    """The rule of a step of a proof."""

    ASSESSMENT = "ASSESSMENT"
    MATCH = "MATCH"
    ROLL_UP = "ROLL_UP"


class Inference(NamedTuple):
    """The derivation of a fact: a rule, and other facts.

    ``back`` is true if a match gives PARTIAL because its source lies within its target, as the match back shows.
    ``hidden`` is the number of premises of a roll-up that are not shown. Without a rule, the fact that a control is
    PARTIAL or better follows from its being FULL, which is not a step.
    """

    rule: Rule | None
    premises: tuple[Fact, ...] = ()
    back: bool = False
    hidden: int = 0


class ProofStep(NamedTuple):
    """One step of a proof: a fact, and its derivation from facts of earlier steps."""

    fact: Fact
    inference: Inference


Proof = Sequence[ProofStep]


class ProofResult(NamedTuple):
    """The shortest proof of a fact, and proofs from one other assessment each, nearest first.

    ``proof`` is empty if none was found within the limits. ``is_complete`` is true if no other assessment would be
    sufficient by itself.
    """

    proof: Proof
    others: Sequence[Proof]
    is_complete: bool


_ENOUGH = 40  # facts; no further wave starts beyond
_DEEPEST = 100  # waves down the ranks
_WIDEST = 30  # facts in one wave down the ranks; each roll-up gets at least one premise


def prove(view: View, fact: Fact, most_others: int) -> ProofResult:
    """The proofs of a fact that holds according to stored coverage. The control has been read.

    It finds a proof with the least number of steps, unless that needs more than some dozen facts: then it is the
    shortest proof found so far. None is found if following the ranks fails or goes too far, and the search reaches its
    limit, too.
    """
    proof = _down_the_ranks(view, fact)
    inferences: dict[Fact, list[Inference]] = {}
    frontier = [fact]
    others: list[Proof] = []
    depth = 0
    while frontier and (len(inferences) + len(frontier) <= _ENOUGH or not inferences):
        try:
            frontier = _look_behind(view, frontier, inferences)
        except GraphTooLarge:
            break
        depth += 1
        shorter = _shortest(inferences, fact)
        if shorter is not None and (not proof or len(shorter) < _length(proof)):
            proof = shorter
        others = list(_alternatives(inferences, fact, proof))
        # Facts not read yet are `depth` steps away, so a proof that uses one has at least one more step.
        if proof and _length(proof) <= depth + 1 and len(others) > most_others:
            break
    left_out = frontier or len(others) > most_others or any(_leaves_out(view, looked_at) for looked_at in inferences)
    return ProofResult(proof, others[:most_others], is_complete=not left_out)


def _length(proof: Proof) -> int:
    """The minimum number of steps of a proof, including those of premises that it does not show."""
    return len(proof) + sum(step.inference.hidden for step in proof)


def _leaves_out(view: View, fact: Fact) -> bool:
    """Whether there may be more proofs by roll-up than those that have been searched.

    Requirements that were not read may give PARTIAL. And one assessment may make several requirements FULL at once.
    """
    node = view.node(fact.control)
    if node is None or not node.counts:
        return False
    if fact.level == FULL:
        return 1 < view.counts(fact.control).number == view.counts(fact.control).full
    shown = sum(_effective(view, one) >= PARTIAL for one in view.foremost(fact.control))
    return shown < view.counts(fact.control).partial


def _down_the_ranks(view: View, goal: Fact) -> Proof:
    """The proof in which each fact follows from facts of the lowest ranks; empty if there is none, or too deep."""
    chosen: dict[Fact, Inference] = {}
    wave = [goal]
    for _ in range(_DEEPEST):
        try:
            _read_around(view, {fact.control for fact in wave if not _is_assessed(view, fact)})
        except GraphTooLarge:
            return ()
        for fact in wave:
            inference = _lowest(view, fact)
            if inference is None:
                return ()
            chosen[fact] = inference
        _thin_out(chosen, wave)
        premises = dict.fromkeys(premise for fact in wave for premise in chosen[fact].premises)
        wave = [premise for premise in premises if premise not in chosen]
        if not wave:
            return _written_out(chosen, goal)
    return ()


def _lowest(view: View, fact: Fact) -> Inference | None:
    """The derivation of a fact from facts of the lowest ranks; null if it does not follow from lower ones."""
    if _is_assessed(view, fact):
        return Inference(Rule.ASSESSMENT)
    own = _place(view, fact.control)
    found = [(_highest_place(view, fact, inference), inference) for inference in _inferences(view, fact)]
    lower = [(place, inference) for place, inference in found if inference.rule is None or place < own]
    return min(lower, key=lambda one: one[0])[1] if lower else None


def _highest_place(view: View, fact: Fact, inference: Inference) -> tuple[int, int]:
    if inference.rule is Rule.ROLL_UP and fact.level == FULL:
        highest = view.counts(fact.control).highest  # including those that are not shown
        return (0, highest) if highest < UNRANKED else _NOWHERE
    return max(_place(view, premise.control) for premise in inference.premises)


def _thin_out(chosen: dict[Fact, Inference], wave: Sequence[Fact]) -> None:
    """Limit the premises of a wave's roll-ups, so that they share the number that may be followed."""
    wide = [fact for fact in wave if len(chosen[fact].premises) > 1]
    if wide:
        share = max(1, (_WIDEST - (len(wave) - len(wide))) // len(wide))
        for fact in wide:
            inference = chosen[fact]
            shown = inference.premises[:share]
            hidden = inference.hidden + len(inference.premises) - len(shown)
            chosen[fact] = inference._replace(premises=shown, hidden=hidden)


_NOWHERE = (2, 0)


def _place(view: View, control: str) -> tuple[int, int]:
    """The sort key of a control: FULL before PARTIAL, each by rank.

    Rank 0 without an assessment is from a version without ranks, and sorts after all others.
    """
    node = view.node(control)
    if node is None or not node.effective or (not node.rank and node.assessed < node.effective):
        return _NOWHERE
    return (0 if node.effective == FULL else 1), node.rank or 0


def _is_assessed(view: View, fact: Fact) -> bool:
    node = view.node(fact.control)
    return node is not None and node.counts and node.assessed >= fact.level


def _read_around(view: View, controls: Collection[str]) -> None:
    view.read_matches(controls)
    view.read_foremost(controls)


def _look_behind(view: View, frontier: Iterable[Fact], inferences: dict[Fact, list[Inference]]) -> list[Fact]:
    """Record the derivations of each fact. Returns the facts that were met for the first time. Raises GraphTooLarge."""
    pending = list(frontier)
    _read_around(view, {fact.control for fact in pending})
    met: dict[Fact, None] = {}
    for fact in pending:  # the list grows
        if fact in inferences:
            continue
        found = inferences[fact] = [one for one in _inferences(view, fact) if not one.hidden]
        for inference in found:
            for premise in inference.premises:
                if inference.rule is None:
                    pending.append(premise)  # the same control, so it has been read and is no further away
                else:
                    met[premise] = None
    return [fact for fact in met if fact not in inferences]


def _inferences(view: View, fact: Fact) -> Iterator[Inference]:
    """The derivations of a fact that holds, from facts that hold."""
    control, level = fact
    node = view.node(control)
    if node is None or not node.counts:
        return
    if _is_assessed(view, fact):
        yield Inference(Rule.ASSESSMENT)
    if level == PARTIAL and node.effective == FULL:
        yield Inference(None, (Fact(control, FULL),))
    for match in view.behind(control):
        source = _effective(view, match.source)
        if source == FULL and match.level >= level:
            yield Inference(Rule.MATCH, (Fact(match.source, FULL),))
        if source >= PARTIAL == level and match.within:
            yield Inference(Rule.MATCH, (Fact(match.source, PARTIAL),), back=True)
    foremost = view.foremost(control)
    if level == PARTIAL:
        for requirement in foremost:
            if _effective(view, requirement) >= PARTIAL:
                yield Inference(Rule.ROLL_UP, (Fact(requirement, PARTIAL),))
    else:
        number, full = view.counts(control).number, view.counts(control).full
        if number and full == number:
            premises = tuple(Fact(requirement, FULL) for requirement in foremost)
            yield Inference(Rule.ROLL_UP, premises, hidden=number - len(premises))


def _effective(view: View, control: str) -> Level:
    node = view.node(control)
    return node.effective or NONE if node and node.counts else NONE


def _shortest(inferences: Mapping[Fact, Sequence[Inference]], goal: Fact) -> Proof | None:
    """The proof with the fewest steps among known inferences. A step that is used twice is counted twice."""
    uses: dict[Fact, list[tuple[Fact, Inference]]] = {}
    lacking: dict[tuple[Fact, Inference], int] = {}
    costs: dict[Fact, int] = {}
    chosen: dict[Fact, Inference] = {}
    heap: list[tuple[int, int, Fact, Inference]] = []
    number = 0  # a number, so that only cost and order of discovery decide
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
    """The steps that lead to a fact, each after its premises, and each once."""
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
    return ProofStep(fact, inference._replace(premises=tuple(_with_chosen(one, chosen) for one in inference.premises)))


def _with_chosen(fact: Fact, chosen: Mapping[Fact, Inference]) -> Fact:
    """The fact itself, or the stronger one that represents it in the proof."""
    inference = chosen[fact]
    return fact if inference.rule is not None else inference.premises[0]


def _alternatives(inferences: Mapping[Fact, Sequence[Inference]], goal: Fact, proof: Proof) -> Iterator[Proof]:
    """Proofs from one assessment each, nearest first, without the one that ``proof`` depends on alone."""
    assessed = {step.fact.control for step in proof if step.inference.rule is Rule.ASSESSMENT}
    seen = assessed if len(assessed) == 1 else set()
    seen = set(seen)
    # From each fact, the inference with this fact as its only premise, on the shortest way to the goal.
    ahead: dict[Fact, tuple[Fact, Inference] | None] = {goal: None}
    pending = [goal]
    for fact in pending:  # the list grows
        for inference in inferences.get(fact, ()):
            if inference.rule is Rule.ASSESSMENT and fact.control not in seen:
                seen.add(fact.control)
                yield _chain(fact, ahead)
            elif len(inference.premises) == 1 and inference.premises[0] not in ahead:
                ahead[inference.premises[0]] = (fact, inference)
                pending.append(inference.premises[0])


def _chain(start: Fact, ahead: Mapping[Fact, tuple[Fact, Inference] | None]) -> Proof:
    chosen = {start: Inference(Rule.ASSESSMENT)}
    fact = start
    while (step := ahead[fact]) is not None:
        fact, inference = step
        chosen[fact] = inference
    return _written_out(chosen, fact)
