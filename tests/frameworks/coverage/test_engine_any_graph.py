"""The coverage engine against its definition, on graphs of any shape."""

import random
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from normata.frameworks.coverage.engine import Computed, Level, compute

NONE, PARTIAL, FULL = Level

Parents = Mapping[str, str | None]
Match = tuple[str, str, Level]
Statements = Mapping[str, Level]


def effective(parents: Parents, matches: Iterable[Match], statements: Statements | None = None) -> dict[str, Level]:
    """How far each control is covered."""
    return {control: computed.effective for control, computed in compute(parents, matches, statements or {}).items()}


class Graph(NamedTuple):
    """What `compute` takes."""

    parents: dict[str, str | None]
    matches: list[Match]
    statements: dict[str, Level]


def fixpoint(parents: Parents, matches: Iterable[Match], statements: Statements) -> dict[str, Level]:
    """The definition, word by word: from NONE everywhere, apply the rules to all controls until nothing changes."""
    matches = list(matches)
    levels = dict.fromkeys(parents, NONE)
    while True:
        following = {control: apply_rules(control, parents, matches, statements, levels) for control in parents}
        if following == levels:
            return levels
        levels = following


def apply_rules(
    control: str, parents: Parents, matches: list[Match], statements: Statements, levels: Mapping[str, Level]
) -> Level:
    stated = statements.get(control, NONE)
    matched = [
        min(level, levels[source]) for source, target, level in matches if target == control and source in levels
    ]
    children = [levels[child] for child, parent in parents.items() if parent == control]
    if children and all(child == FULL for child in children):
        rolled_up = FULL
    elif any(child > NONE for child in children):
        rolled_up = PARTIAL
    else:
        rolled_up = NONE
    return max(stated, rolled_up, *matched)


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
    statements = st.dictionaries(anyone, st.sampled_from(Level), max_size=len(controls))
    return Graph(
        dict(draw(st.permutations(list(parents.items())))),
        draw(matches),
        draw(statements),
    )


@settings(deadline=None, max_examples=800)
@given(graphs())
def test_equals_the_definition(graph: Graph) -> None:
    reached, alone = fixpoint(*graph), fixpoint(graph.parents, [], graph.statements)
    assert compute(*graph) == {control: Computed.of(reached[control], own=alone[control]) for control in graph.parents}


@settings(deadline=None, max_examples=200)
@given(graphs(), st.randoms(use_true_random=False))
def test_order_does_not_matter(graph: Graph, rng: random.Random) -> None:
    parents, matches, statements = list(graph.parents.items()), list(graph.matches), list(graph.statements.items())
    for part in (parents, matches, statements):
        rng.shuffle(part)
    assert compute(dict(parents), matches, dict(statements)) == compute(*graph)


@settings(deadline=None, max_examples=200)
@given(graphs(), st.sampled_from(CONTROLS), st.sampled_from(Level))
def test_raising_a_statement_lowers_nothing(graph: Graph, control: str, level: Level) -> None:
    raised = {**graph.statements, control: max(level, graph.statements.get(control, NONE))}
    before, after = effective(*graph), effective(graph.parents, graph.matches, raised)
    assert all(after[control] >= before[control] for control in graph.parents)


@settings(deadline=None, max_examples=200)
@given(graphs(), st.sampled_from(CONTROLS), st.sampled_from(CONTROLS), st.sampled_from([PARTIAL, FULL]))
def test_adding_a_match_lowers_nothing(graph: Graph, source: str, target: str, level: Level) -> None:
    before, after = compute(*graph), compute(graph.parents, [*graph.matches, (source, target, level)], graph.statements)
    assert all(after[control] >= before[control] for control in graph.parents)


@settings(deadline=None, max_examples=200)
@given(graphs())
def test_stating_what_follows_changes_nothing(graph: Graph) -> None:
    """Idempotent; and with everything stated, nothing is left for a match to add."""
    settled = effective(*graph)
    assert compute(graph.parents, graph.matches, settled) == {
        control: Computed.of(level, own=level) for control, level in settled.items()
    }


@settings(deadline=None, max_examples=200)
@given(graphs())
def test_nothing_comes_from_nothing(graph: Graph) -> None:
    assert set(effective(graph.parents, graph.matches).values()) == {NONE}


def test_larger_graphs_equal_the_definition() -> None:
    """Longer paths and wider roll-ups than the small graphs have room for; sparse, so that all levels occur."""
    rng = random.Random(20)  # noqa: S311  the same graphs every time
    controls = [f"c{number}" for number in range(120)]
    seen: set[Computed] = set()
    for _ in range(15):
        parents = {c: rng.choice([None, *controls[:n][-9:]]) for n, c in enumerate(controls)}
        matches = [(rng.choice(controls), rng.choice(controls), rng.choice([PARTIAL, FULL])) for _ in range(90)]
        statements = {c: rng.choice([PARTIAL, FULL]) for c in rng.sample(controls, 12)}
        computed = compute(parents, matches, statements)
        assert {c: found.effective for c, found in computed.items()} == fixpoint(parents, matches, statements)
        seen.update(computed.values())
    assert seen == {Computed.of(level, own) for level in Level for own in Level if own <= level}
