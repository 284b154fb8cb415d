"""The targets of cheap reads beside dear ones."""

from collections.abc import Iterator

from benchmarks.speed.figures import Figures, Spread
from benchmarks.speed.neighbours import ALONE, cheap, dear
from benchmarks.speed.outcome import Outcome

_MOST = 5  # times as long as alone


def of_neighbours(figures: Figures) -> Iterator[Outcome]:
    """How much longer cheap reads take beside a dear one, by the slowest hundredth of each; the worst of dear ones."""
    for prefix, name in (("sqlite", "SQLite"), ("postgresql", "PostgreSQL")):
        for kind, words in zip(cheap(0), ("Page of tasks", "Task"), strict=True):
            ratios = [found for one in dear() if (found := _ratio(figures, f"{prefix}-{kind}", one))]
            if slowest := max(ratios, key=lambda found: found.value, default=None):
                yield Outcome(f"{words} beside a dear read / alone, worst, {name}, p99", slowest, _MOST, False)


def _ratio(figures: Figures, cheap_read: str, dear_read: str) -> Spread | None:
    """The ratio of the medians, and the extremes of single rounds; null if one was not measured."""
    beside = figures.neighbours.get(f"{cheap_read}-{dear_read}")
    alone = figures.neighbours.get(f"{cheap_read}-{ALONE}")
    if beside is None or alone is None:
        return None
    rounds = [(a.p99 or 0) / (b.p99 or 1) for a, b in zip(beside.samples, alone.samples, strict=True)]
    return Spread((beside.median("p99") or 0) / (alone.median("p99") or 1), min(rounds), max(rounds))
