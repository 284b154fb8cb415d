"""What a run is judged by."""

from collections.abc import Iterator, Mapping, Sequence

from benchmarks.attack.honest import Served

LONGEST_WAIT = 1.0  # seconds of an honest request
GROWTH = 1.1  # of a worker's memory, from its second minute to the end

Memory = Mapping[int, Sequence[float]]  # MiB of each worker at the beginning, after each minute and at the end
Outcomes = Mapping[tuple[str, str], int]  # how often each attack had which outcome


def faults(served: Served, memory: Memory, outcomes: Outcomes, internal: float) -> Iterator[str]:
    """What is wrong with a run, a sentence each."""
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
    """How many times the memory after the second minute the last is; 1 in a run that is too short to tell."""
    return samples[-1] / samples[2] if len(samples) > 3 else 1.0
