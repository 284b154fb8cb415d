"""What carries a control, held against the coverage engine on graphs of any shape."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import given, settings

from normata.coverage.engine import Computed, Level, compute, upwards
from normata.reports.supporting_matches import SupportingMatches
from tests.coverage.test_engine_any_graph import Graph, graphs
from tests.reports.test_support import Child, Match

NONE, PARTIAL, FULL = Level


class Rows(NamedTuple):
    """What the database has for a graph."""

    matches: list[Match]
    children: list[Child]


def rows(graph: Graph, computed: dict[str, Computed]) -> Rows:
    """The rows that the statements of the module would find."""
    within = {(target, source) for source, target, level in graph.matches if level == FULL}
    matches = [
        Match(
            str(number),
            source,
            target,
            level.name,
            computed[source].own.name,
            computed[target].own.name,
            (source, target) in within,
        )
        for number, (source, target, level) in enumerate(graph.matches)
        if source in computed and target in computed
        if computed[target].indirect and computed[source].effective > NONE
    ]
    children = [
        Child(control, group, computed[control].own.name, computed[group].own.name)
        for control, place in graph.places.items()
        if not place.is_group and control not in graph.not_applicable
        for group in upwards(place.parent, graph.places)
        if graph.places[group].is_group and computed[group].indirect
    ]
    return Rows(matches, children)


@settings(deadline=None, max_examples=80)
@given(graphs())
def test_what_carries_a_control_does_so_without_it(graph: Graph) -> None:
    """Whatever is lifted has support, from a match or from children; and no source of it needs what is lifted."""
    computed = compute(*graph)
    found = rows(graph, computed)
    supporting_matches = SupportingMatches(*found)
    by_id = {match.id: match for match in found.matches}
    for control, result in computed.items():
        if not result.indirect:
            continue
        carrying = [by_id[match_id] for match_id in supporting_matches.of(control, result.effective.name)]
        assert carrying or control in {child.parent_id for child in found.children}
        unlifted = graph._replace(matches=[match for match in graph.matches if match[1] != control])
        alone = compute(*unlifted)
        for match in carrying:
            source = alone[match.source_id].effective
            if result.effective == FULL:
                assert (match.match_level, source) == ("FULL", FULL)
            else:
                assert source == FULL or (source == PARTIAL and match.is_within)
