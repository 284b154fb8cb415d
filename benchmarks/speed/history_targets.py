"""The targets of the history in time."""

import statistics
from collections.abc import Iterator

from benchmarks.speed.data import SHORT
from benchmarks.speed.figures import Figures, Spread, ratio
from benchmarks.speed.history import EARLIER, PAGES, REPORTS, STEPS, WITHOUT
from benchmarks.speed.outcome import Outcome


def of_history(figures: Figures) -> Iterator[Outcome]:
    """Times, so a ratio of 2 is twice as slow. Of several answers the slowest counts."""
    for prefix, name in (("sqlite", "SQLite"), ("postgresql", "PostgreSQL")):
        if found := ratio(figures.history, f"{prefix}-{WITHOUT}-assess", f"{prefix}-small-assess"):
            yield Outcome(f"One assessment, with history / without, {name}, time", found, 1.15, False)
        for label, controls in (("small", figures.controls), ("adopted", figures.adopted_controls)):
            yield from _of_size(figures, f"{prefix}-{label}", f"{controls:,} controls, {name}", label)


def _of_size(figures: Figures, key: str, words: str, label: str) -> Iterator[Outcome]:
    for names, title, bound in ((PAGES, "First page", 2), (REPORTS, "Report", 3)):
        ratios = (
            ratio(figures.history, f"{key}-{name}-now", f"{key}-{name}-{when}") for name in names for when in EARLIER
        )
        if slowest := max((one for one in ratios if one is not None), key=lambda one: one.value, default=None):
            yield Outcome(f"{title} as of a day / today, slowest, {words}, time", slowest, bound, False)
    is_short = label == "adopted"
    rows = f"{SHORT if is_short else figures.controls // 5} rows"
    for when, title in (("now", "Statement"), ("then", "Statement as of a day")):
        if measured := figures.history.get(f"{key}-statement-{when}"):
            taken = _spread([(one.processor or 0) + (one.database or 0) for one in measured.samples])
            most = 100 if is_short and when == "now" else None
            yield Outcome(f"{title}, {rows}, {words}, processor", taken, most, False, " ms")
    for step in STEPS:
        if measured := figures.history.get(f"{key}-over-time-{step}"):
            taken = _spread([one.p50 or 0 for one in measured.samples])
            most = 50 if is_short else None
            yield Outcome(f"Two years of daily changes by the {step}, {rows}, {words}", taken, most, False, " ms")


def _spread(values: list[float]) -> Spread:
    return Spread(statistics.median(values), min(values), max(values))
