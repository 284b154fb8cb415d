"""Time and memory of computing coverage in a large generated graph: python benchmarks/coverage.py."""

import random
import statistics
import time
import tracemalloc
from collections import Counter

from normata.coverage.engine import Level, Place, compute

CONTROLS, MATCHES, FRAMEWORKS, ROUNDS = 50_000, 200_000, 8, 5
WIDTH = 6  # roots of a framework, and children of a control; about as many as in published catalogs
ASSESSED = 0.1  # share of controls that are assessed


def main() -> None:
    """Generate a forest for each framework and matches in both directions, with many cycles; measure and print."""
    rng = random.Random(1)
    levels = [Level.PARTIAL, Level.FULL]
    members = [[f"{one:02}-{number:08x}" for number in range(one, CONTROLS, FRAMEWORKS)] for one in range(FRAMEWORKS)]
    parents = {
        control: None if position < WIDTH else framework[(position - WIDTH) // WIDTH]
        for framework in members
        for position, control in enumerate(framework)
    }
    groups = set(parents.values())
    places = {control: Place(parent, control in groups) for control, parent in parents.items()}
    matches = []
    for _ in range(MATCHES):
        source, target = rng.sample(members, 2)
        matches.append((rng.choice(source), rng.choice(target), rng.choice(levels)))
    assessed = {control: rng.choice(levels) for control in parents if rng.random() < ASSESSED}
    seconds = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        computed = compute(places, matches, assessed)
        seconds.append(time.perf_counter() - started)
    tracemalloc.start()  # tracing slows it down, so it is a round of its own
    compute(places, matches, assessed)
    _, peak = tracemalloc.get_traced_memory()
    outcome = Counter(each.effective.name for each in computed.values())
    print(f"{CONTROLS:,} controls, {MATCHES:,} matches, {FRAMEWORKS} frameworks")
    print("outcome ", ", ".join(f"{outcome[level.name]:,} {level.name}" for level in Level))
    print(f"median   {statistics.median(seconds):.3f} s")
    print(f"worst    {max(seconds):.3f} s of {ROUNDS} rounds")
    print(f"memory   {peak / 2**20:.1f} MiB at the peak")


if __name__ == "__main__":
    main()
