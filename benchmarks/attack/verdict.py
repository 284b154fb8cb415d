"""The criteria of a run."""

from collections.abc import Iterator, Mapping, Sequence

from benchmarks.attack.honest import Served

LONGEST_WAIT = 1.0  # seconds that an honest request may take
GROWTH = 1.1  # factor by which a worker's memory may grow, from its second minute to the end

Memory = Mapping[int, Sequence[float]]  # MiB of each worker at the start, after each minute and at the end
Outcomes = Mapping[tuple[str, str], int]  # the number of each outcome, by attack


def faults(served: Served, memory: Memory, outcomes: Outcomes, internal: float) -> Iterator[str]:
    """What is wrong with a run, one sentence each."""
    if served.failures:
        yield f"{sum(served.failures.values())} honest requests failed: {served.failures}"
    if not served.seconds:
        yield "no honest request was made"
    elif max(served.seconds) > LONGEST_WAIT:
        yield f"an honest request waited {max(served.seconds):.2f} s"
    for worker, samples in memory.items():
        if grown(samples) >= GROWTH:
            yield f"the memory of worker {worker} grew from {samples[2]:.0f} to {samples[-1]:.0f} MiB"
    for (attack, outcome), count in outcomes.items():
        if outcome.startswith("5") or outcome == "left waiting":
            yield f"the attack {attack} had the outcome {outcome} {count} times"
    if internal:
        yield f"the service counts {internal:.0f} internal errors"


def grown(samples: Sequence[float]) -> float:
    """The last sample divided by that after the second minute; 1 for a run that is too short."""
    return samples[-1] / samples[2] if len(samples) > 3 else 1.0
