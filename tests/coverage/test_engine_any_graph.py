"""The coverage engine against its definition, on graphs of any shape."""

import random
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from normata.coverage.engine import Computed, Level, compute

NONE, PARTIAL, FULL = Level

Parents = Mapping[str, str | None]
Match = tuple[str, str, Level]
Statements = Mapping[str, Level]


def effective(
    parents: Parents, matches: Iterable[Match], assessed: Statements, not_applicable: Collection[str]
) -> dict[str, Level]:
    """How far each control is covered."""
    computed = compute(parents, matches, assessed, not_applicable)
    return {control: found.effective for control, found in computed.items()}


class Graph(NamedTuple):
    """What `compute` takes."""

    parents: dict[str, str | None]
    matches: list[Match]
    assessed: dict[str, Level]
    not_applicable: frozenset[str]


def fixpoint(
    parents: Parents, matches: Iterable[Match], assessed: Statements, not_applicable: Collection[str] = ()
) -> dict[str, Level]:
    """The definition, word by word: from NONE everywhere, apply the rules to all controls until nothing changes."""
    graph = Graph(dict(parents), list(matches), dict(assessed), frozenset(not_applicable))
    levels = dict.fromkeys(parents, NONE)
    while True:
        following = {
            control: NONE if control in not_applicable else apply_rules(control, graph, levels) for control in parents
        }
        if following == levels:
            return levels
        levels = following


def apply_rules(control: str, graph: Graph, levels: Mapping[str, Level]) -> Level:
    """How far an applicable control is covered, given how far all others are."""
    assessed = graph.assessed.get(control, NONE)
    into = [(source, level) for source, target, level in graph.matches if target == control and source in levels]
    back = {target for source, target, level in graph.matches if source == control and level == FULL}
    children = [
        levels[child]
        for child, parent in graph.parents.items()
        if parent == control and child not in graph.not_applicable
    ]
    full = (
        assessed == FULL
        or any(level == FULL and levels[source] == FULL for source, level in into)
        or (children != [] and all(child == FULL for child in children))
    )
    partial = (
        assessed == PARTIAL
        or any(levels[source] == FULL for source, _ in into)
        or any(levels[source] == PARTIAL and source in back for source, _ in into)
        or any(child >= PARTIAL for child in children)
    )
    return FULL if full else PARTIAL if partial else NONE


CONTROLS = [f"c{number}" for number in range(12)]
OUTSIDE = ["outside", "elsewhere"]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Small graphs, in which cycles, diamonds, duplicates and strangers are common. Half of them are proper forests."""
    controls = CONTROLS[: draw(st.integers(1, len(CONTROLS)))]
    forest = draw(st.booleans())
    parents = {
        control: draw(st.sampled_from([None, *(controls[:position] if forest else [*controls, *OUTSIDE])]))
        for position, control in enumerate(controls)
    }
    anyone = st.sampled_from([*controls, *controls, *OUTSIDE])
    matches = st.lists(st.tuples(anyone, anyone, st.sampled_from([PARTIAL, FULL])), max_size=3 * len(controls))
    assessed = st.dictionaries(anyone, st.sampled_from(Level), max_size=len(controls))
    return Graph(
        dict(draw(st.permutations(list(parents.items())))),
        draw(matches),
        draw(assessed),
        draw(st.frozensets(anyone, max_size=3)),
    )


@settings(deadline=None, max_examples=120)
@given(graphs())
def test_equals_the_definition(graph: Graph) -> None:
    reached, alone = fixpoint(*graph), fixpoint(*graph._replace(matches=[]))
    assert compute(*graph) == {control: Computed.of(reached[control], own=alone[control]) for control in graph.parents}


@settings(deadline=None, max_examples=50)
@given(graphs(), st.randoms(use_true_random=False))
def test_order_does_not_matter(graph: Graph, rng: random.Random) -> None:
    parents, matches, assessed = list(graph.parents.items()), list(graph.matches), list(graph.assessed.items())
    for part in (parents, matches, assessed):
        rng.shuffle(part)
    assert compute(dict(parents), matches, dict(assessed), graph.not_applicable) == compute(*graph)


@settings(deadline=None, max_examples=50)
@given(graphs(), st.sampled_from(CONTROLS), st.sampled_from(Level))
def test_raising_a_statement_lowers_nothing(graph: Graph, control: str, level: Level) -> None:
    raised = {**graph.assessed, control: max(level, graph.assessed.get(control, NONE))}
    before, after = effective(*graph), effective(*graph._replace(assessed=raised))
    assert all(after[control] >= before[control] for control in graph.parents)


@settings(deadline=None, max_examples=50)
@given(graphs(), st.sampled_from(CONTROLS), st.sampled_from(CONTROLS), st.sampled_from([PARTIAL, FULL]))
def test_adding_a_match_lowers_nothing(graph: Graph, source: str, target: str, level: Level) -> None:
    before, after = compute(*graph), compute(*graph._replace(matches=[*graph.matches, (source, target, level)]))
    assert all(after[control] >= before[control] for control in graph.parents)


@settings(deadline=None, max_examples=50)
@given(graphs())
def test_stating_what_follows_changes_nothing(graph: Graph) -> None:
    """Idempotent; and with everything stated, nothing is left for a match to add."""
    settled = effective(*graph)
    assert compute(*graph._replace(assessed=settled)) == {
        control: Computed.of(level, own=level) for control, level in settled.items()
    }


@settings(deadline=None, max_examples=50)
@given(graphs())
def test_nothing_comes_from_nothing(graph: Graph) -> None:
    assert set(effective(*graph._replace(assessed={})).values()) == {NONE}


def both_ways(rng: random.Random, matches: list[Match]) -> list[Match]:
    """These matches, half of them with a match back, as mappings have it."""
    back = [(target, source, rng.choice([PARTIAL, FULL])) for source, target, _ in matches if rng.random() < 0.5]
    return [*matches, *back]


def test_larger_graphs_equal_the_definition() -> None:
    """Longer paths and wider roll-ups than the small graphs have room for; sparse, so that all levels occur."""
    rng = random.Random(20)  # noqa: S311  the same graphs every time
    controls = [f"c{number}" for number in range(120)]
    seen: set[Computed] = set()
    for _ in range(15):
        parents = {c: rng.choice([None, *controls[:n][-9:]]) for n, c in enumerate(controls)}
        matches = [(rng.choice(controls), rng.choice(controls), rng.choice([PARTIAL, FULL])) for _ in range(90)]
        assessed = {c: rng.choice([PARTIAL, FULL]) for c in rng.sample(controls, 12)}
        left_out = frozenset(rng.sample(controls, 6))
        graph = Graph(parents, both_ways(rng, matches), assessed, left_out)
        computed = compute(*graph)
        assert {c: found.effective for c, found in computed.items()} == fixpoint(*graph)
        seen.update(computed.values())
    assert seen == {Computed.of(level, own) for level in Level for own in Level if own <= level}
