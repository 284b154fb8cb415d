"""The coverage engine against its definition, on graphs of any shape."""

import random
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from normata.coverage.engine import Computed, Level, Place, compute
from tests.coverage import definition

NONE, PARTIAL, FULL = Level

Match = tuple[str, str, Level]


class Graph(NamedTuple):
    """What `compute` takes."""

    places: dict[str, Place]
    matches: list[Match]
    assessed: dict[str, Level]
    not_applicable: frozenset[str]


def effective(graph: Graph) -> dict[str, Level]:
    """How far each control is covered."""
    return {control: found.effective for control, found in compute(*graph).items()}


def by_definition(graph: Graph) -> dict[str, Computed]:
    """What the definition gives. A control that does not apply is excluded, and takes nothing with it here."""
    controls = {
        name: definition.Control(
            place.parent,
            is_category=place.is_group,
            assessed=graph.assessed.get(name),
            decision=name not in graph.not_applicable,
        )
        for name, place in graph.places.items()
    }
    matches = [(source, target, int(level)) for source, target, level in graph.matches]
    reached, alone = definition.effective(controls, matches), definition.own(controls)
    return {name: Computed.of(Level(reached[name]), own=Level(alone[name])) for name in controls}


CONTROLS = [f"c{number}" for number in range(12)]
OUTSIDE = ["outside", "elsewhere"]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Small graphs, in which cycles, diamonds, duplicates and strangers are common. Half of them are proper forests."""
    controls = CONTROLS[: draw(st.integers(1, len(CONTROLS)))]
    forest = draw(st.booleans())
    places = {
        control: Place(
            draw(st.sampled_from([None, *(controls[:position] if forest else [*controls, *OUTSIDE])])),
            draw(st.booleans()),
        )
        for position, control in enumerate(controls)
    }
    anyone = st.sampled_from([*controls, *controls, *OUTSIDE])
    matches = st.lists(st.tuples(anyone, anyone, st.sampled_from([PARTIAL, FULL])), max_size=3 * len(controls))
    assessed = st.dictionaries(anyone, st.sampled_from(Level), max_size=len(controls))
    return Graph(
        dict(draw(st.permutations(list(places.items())))),
        draw(matches),
        draw(assessed),
        draw(st.frozensets(anyone, max_size=3)),
    )


@settings(deadline=None, max_examples=120)
@given(graphs())
def test_equals_the_definition(graph: Graph) -> None:
    assert compute(*graph) == by_definition(graph)


@settings(deadline=None, max_examples=50)
@given(graphs(), st.randoms(use_true_random=False))
def test_order_does_not_matter(graph: Graph, rng: random.Random) -> None:
    places, matches, assessed = list(graph.places.items()), list(graph.matches), list(graph.assessed.items())
    for part in (places, matches, assessed):
        rng.shuffle(part)
    assert compute(dict(places), matches, dict(assessed), graph.not_applicable) == compute(*graph)


@settings(deadline=None, max_examples=50)
@given(graphs(), st.sampled_from(CONTROLS), st.sampled_from(Level))
def test_raising_a_statement_lowers_nothing(graph: Graph, control: str, level: Level) -> None:
    raised = {**graph.assessed, control: max(level, graph.assessed.get(control, NONE))}
    before, after = effective(graph), effective(graph._replace(assessed=raised))
    assert all(after[control] >= before[control] for control in graph.places)


@settings(deadline=None, max_examples=50)
@given(graphs(), st.sampled_from(CONTROLS), st.sampled_from(CONTROLS), st.sampled_from([PARTIAL, FULL]))
def test_adding_a_match_lowers_nothing(graph: Graph, source: str, target: str, level: Level) -> None:
    before, after = compute(*graph), compute(*graph._replace(matches=[*graph.matches, (source, target, level)]))
    assert all(after[control] >= before[control] for control in graph.places)


@settings(deadline=None, max_examples=50)
@given(graphs())
def test_stating_what_follows_changes_nothing(graph: Graph) -> None:
    """Idempotent; and with everything stated, nothing is left for a match to add."""
    settled = effective(graph)
    assert compute(*graph._replace(assessed=settled)) == {
        control: Computed.of(level, own=level) for control, level in settled.items()
    }


@settings(deadline=None, max_examples=50)
@given(graphs())
def test_nothing_comes_from_nothing(graph: Graph) -> None:
    assert set(effective(graph._replace(assessed={})).values()) == {NONE}


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
        places = {c: Place(rng.choice([None, *controls[:n][-9:]]), rng.random() < 0.4) for n, c in enumerate(controls)}
        matches = [(rng.choice(controls), rng.choice(controls), rng.choice([PARTIAL, FULL])) for _ in range(90)]
        assessed = {c: rng.choice([PARTIAL, FULL]) for c in rng.sample(controls, 12)}
        left_out = frozenset(rng.sample(controls, 6))
        graph = Graph(places, both_ways(rng, matches), assessed, left_out)
        computed = compute(*graph)
        assert computed == by_definition(graph)
        seen.update(computed.values())
    assert seen == {Computed.of(level, own) for level in Level for own in Level if own <= level}
