"""What the attack is judged by. Nothing is attacked here."""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.attack.honest import Served
from benchmarks.attack.verdict import Outcomes, faults, grown


def good() -> Served:
    return Served(Counter({"200": 3}), [0.1, 0.2, 0.3])


FLAT = {17: [80.0, 120.0, 130.0, 131.0, 130.0]}
CALM: Outcomes = {("bad chunk", "400"): 5, ("stalled body", "ended by the clock"): 1}


def test_a_good_run_has_no_faults() -> None:
    assert list(faults(good(), FLAT, CALM, 0)) == []


@pytest.mark.parametrize(
    ("served", "memory", "outcomes", "internal", "told"),
    [
        (Served(Counter({"200": 3, "503": 1}), [0.1]), FLAT, CALM, 0, "1 honest requests failed: {'503': 1}"),
        (Served(Counter({"200": 3}), [0.1, 1.5]), FLAT, CALM, 0, "an honest request waited 1.50 s"),
        (Served(), FLAT, CALM, 0, "no honest request was made"),
        (good(), {17: [80.0, 100.0, 100.0, 110.0]}, CALM, 0, "the memory of worker 17 grew from 100 to 110 MiB"),
        (good(), FLAT, {("bad chunk", "500"): 2}, 0, "the attack bad chunk had the outcome 500 2 times"),
        (good(), FLAT, {("stalled body", "left waiting"): 2}, 0, "had the outcome left waiting 2 times"),
        (good(), FLAT, CALM, 1, "the service counts 1 internal errors"),
    ],
)
def test_each_fault_is_told(
    served: Served, memory: dict[int, list[float]], outcomes: Outcomes, internal: float, told: str
) -> None:
    (fault,) = faults(served, memory, outcomes, internal)
    assert told in fault


def test_a_short_run_says_nothing_of_memory() -> None:
    assert grown([80.0, 120.0, 200.0]) == 1.0
    assert grown([80.0, 120.0, 100.0, 200.0]) == 2.0


def test_percentiles() -> None:
    served = Served(seconds=[number / 100 for number in range(100, 0, -1)])
    assert (served.percentile(0.5), served.percentile(0.99)) == (0.51, 1.0)
    assert Served().percentile(0.99) == 0.0
