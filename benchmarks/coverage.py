"""Time and memory that coverage takes on a large, seeded random graph.

    python benchmarks/coverage.py [--controls 50000 --matches 200000 --rounds 5]

Normata must be importable: installed, or with `PYTHONPATH=src`.
"""

import argparse
import random
import statistics
import time
import tracemalloc
from collections import Counter
from typing import NamedTuple

from normata.frameworks.coverage import Level, compute


class Graph(NamedTuple):
    """What `compute` takes."""

    parents: dict[str, str | None]
    matches: list[tuple[str, str, Level]]
    statements: dict[str, Level]


def make_graph(controls: int, matches: int, frameworks: int, stated: float, seed: int) -> Graph:
    """A graph of that size: one forest a framework, matches between frameworks, a share of the controls stated."""
    rng = random.Random(seed)
    members = [
        [f"{framework:02}-{number:08x}" for number in range(framework, controls, frameworks)]
        for framework in range(frameworks)
    ]
    parents: dict[str, str | None] = {}
    for framework in members:
        parents.update(make_forest(framework))
    return Graph(
        parents=parents,
        matches=[make_match(rng, members) for _ in range(matches)],
        statements={control: rng.choice([Level.PARTIAL, Level.FULL]) for control in parents if rng.random() < stated},
    )


def make_forest(controls: list[str], roots: int = 6, fanout: int = 6) -> dict[str, str | None]:
    """Controls in catalog order under a few roots, about as wide as published catalogs are."""
    return {
        control: None if position < roots else controls[(position - roots) // fanout]
        for position, control in enumerate(controls)
    }


def make_match(rng: random.Random, members: list[list[str]]) -> tuple[str, str, Level]:
    """A match between two frameworks, in either direction, so that cycles abound."""
    source, target = rng.sample(members, 2)
    return rng.choice(source), rng.choice(target), rng.choice([Level.PARTIAL, Level.FULL])


def time_round(graph: Graph) -> float:
    """Seconds of one computation."""
    start = time.perf_counter()
    compute(*graph)
    return time.perf_counter() - start


def peak_memory(graph: Graph) -> int:
    """Bytes that one computation holds at most, result included, input not. Tracing slows, hence a round of its own."""
    tracemalloc.start()
    compute(*graph)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def arguments() -> argparse.Namespace:
    """The command line, with defaults at the size that Normata promises to be fast at."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--controls", type=int, default=50_000)
    parser.add_argument("--matches", type=int, default=200_000)
    parser.add_argument("--frameworks", type=int, default=8)
    parser.add_argument("--stated", type=float, default=0.1, help="share of controls with a statement")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if not 2 <= options.frameworks <= options.controls or options.rounds < 1:
        parser.error("it takes at least 2 frameworks, a control in each, and 1 round")
    return options


def main() -> None:
    """Make the graph, measure, print."""
    options = arguments()
    graph = make_graph(options.controls, options.matches, options.frameworks, options.stated, options.seed)
    seconds = [time_round(graph) for _ in range(options.rounds)]
    outcome = Counter(computed.effective.name for computed in compute(*graph).values())

    print(f"{options.controls:,} controls, {options.matches:,} matches, {options.frameworks} frameworks")
    print("outcome  " + ", ".join(f"{outcome[level.name]:,} {level.name}" for level in Level))
    print(f"median   {statistics.median(seconds):.3f} s")
    print(f"worst    {max(seconds):.3f} s of {options.rounds} rounds")
    print(f"memory   {peak_memory(graph) / 2**20:.1f} MiB at the peak")


if __name__ == "__main__":
    main()
