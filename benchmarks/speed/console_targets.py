"""The targets for the console."""

import statistics
from collections.abc import Callable, Iterator, Sequence

from benchmarks.speed.figures import Browsed, Figures, Spread
from benchmarks.speed.outcome import Outcome
from tests.browser.watching import FIRST_PAINT, FIRST_VIEW, LONGEST_TASK, REACTION

_STORES = (("sqlite", "SQLite"), ("postgresql", "PostgreSQL"))
_PAGE, _LARGE_PAGE = 20, 40  # milliseconds


def of_console(figures: Figures) -> Iterator[Outcome]:
    """The targets of the server, for the slowest page, and those of the browser."""
    controls = f"{figures.large_controls:,} controls"
    for prefix, name in _STORES:
        is_promised = prefix == "sqlite"
        for label, size, is_meant, bound in (
            ("Console, slowest page of the demo", "demo", lambda _: True, _PAGE),
            (f"Console, {controls}, first page", "large", lambda asked: not asked, _LARGE_PAGE),
            (f"Console, {controls}, slowest filter", "large", _is_filter, _LARGE_PAGE),
            (f"Console, {controls}, slowest search", "large", lambda asked: "search=" in asked, None),
        ):
            if slowest := _slowest(figures, f"{size} {prefix} ", is_meant):
                yield Outcome(f"{label}, {name}", slowest, bound if is_promised else None, False, " ms")
    if figures.browsed is not None and figures.browsed.browser:
        yield from _of_browser(figures.browsed)


def _is_filter(asked: str) -> bool:
    return bool(asked) and "search=" not in asked


def _slowest(figures: Figures, prefix: str, is_meant: Callable[[str], bool]) -> Spread | None:
    found = [
        _spread([sample.p50 for sample in one.samples if sample.p50 is not None])
        for key, one in figures.console.items()
        if key.startswith(prefix) and is_meant(key.removeprefix(prefix))
    ]
    return max(found, default=None)


def _of_browser(browsed: Browsed) -> Iterator[Outcome]:
    size = browsed.first_view / 1000
    yield Outcome(
        "Console, first view with style and script", Spread(size, size, size), FIRST_VIEW / 1000, False, " kB"
    )
    pages = browsed.pages.values()
    for label, slowest, bound, unit in (
        ("first contentful paint", max(_spread(one.paint) for one in pages), FIRST_PAINT, " ms"),
        ("layout shift", max(_spread(one.shift) for one in pages), 0, ""),
        ("longest task", max(_spread(one.task) for one in pages), LONGEST_TASK, " ms"),
        ("reaction to a key", _spread(browsed.reactions), REACTION, " ms"),
    ):
        yield Outcome(f"Console, {label}, slowest page" if unit else f"Console, {label}", slowest, bound, False, unit)


def _spread(values: Sequence[float]) -> Spread:
    return Spread(statistics.median(values), min(values), max(values))
