"""Normata's targets, and whether they are met."""

import statistics
from collections.abc import Iterator, Sequence

from benchmarks.speed.console_targets import of_console
from benchmarks.speed.data import SHORT
from benchmarks.speed.figures import Figures, Memory, Spread, ratio
from benchmarks.speed.history_targets import of_history
from benchmarks.speed.mixed import of_mixed
from benchmarks.speed.neighbours_targets import of_neighbours
from benchmarks.speed.outcome import Outcome
from benchmarks.speed.records import of_records


def missed(figures: Figures) -> list[Outcome]:
    return [outcome for outcome in outcomes(figures) if not outcome.met]


def outcomes(figures: Figures) -> Iterator[Outcome]:
    """All targets for which the figures have values."""
    large = f"{figures.large_controls:,} / {figures.controls:,} controls"
    # A load of cached pages takes as much processor as the workers, so both together need more than two cores.
    spare = 1.7 if figures.machine.cores >= 4 else None
    measured = figures.pages | figures.restores
    for upper, lower, name, bound in (
        ("sqlite", "bare", "Page, SQLite / bare application", 0.5),
        ("postgresql", "bare", "Page, PostgreSQL / bare application", 0.35),
        ("sqlite-cold", "plain", "Page, nothing cached, SQLite / FastAPI and ORM", 8),
        ("postgresql-cold", "plain", "Page, nothing cached, PostgreSQL / FastAPI and ORM on SQLite", None),
        ("sqlite-large", "sqlite", f"Page, SQLite, {large}", 0.9),
        ("postgresql-large", "postgresql", f"Page, PostgreSQL, {large}", 0.9),
        ("sqlite-cold-large", "sqlite-cold", f"Page, nothing cached, SQLite, {large}", 0.7),
        ("postgresql-cold-large", "postgresql-cold", f"Page, nothing cached, PostgreSQL, {large}", 0.7),
        ("sqlite-cold-2", "sqlite-cold", "Page, nothing cached, SQLite, two workers / one", 1.7),
        ("sqlite-2", "sqlite", "Page, SQLite, two workers / one", spare),
        ("postgresql-cold-2", "postgresql-cold", "Page, nothing cached, PostgreSQL, two workers / one", None),
        ("postgresql-2", "postgresql", "Page, PostgreSQL, two workers / one", None),
        ("sqlite-restore", "sqlite-restore-statements", "Restore, SQLite / the same statements", 0.5),
        ("postgresql-restore", "postgresql-restore-statements", "Restore, PostgreSQL / the same statements", 0.35),
        ("sqlite-restore", "sqlite-restore-unsealed", "Restore, SQLite, events sealed / not sealed", 0.9),
        ("postgresql-restore", "postgresql-restore-unsealed", "Restore, PostgreSQL, events sealed / not sealed", 0.9),
        ("sqlite-create", "sqlite-create-statements", "Create, SQLite / the same statements", 0.5),
        ("postgresql-create", "postgresql-create-statements", "Create, PostgreSQL / the same statements", 0.35),
    ):
        if found := ratio(measured, upper, lower):
            yield Outcome(name, found, bound)
    yield from of_records(figures)
    yield from of_mixed(figures)
    yield from _of_coverage(figures)
    yield from of_history(figures)
    yield from of_neighbours(figures)
    yield from of_console(figures)
    for key, contender in measured.items():  # another checkout, if any
        if found := ratio(measured, key.replace("-against", ""), key) if "-against" in key else None:
            yield Outcome(f"This / {contender.label}", found)
    if figures.memory is not None:
        yield from _of_memory(figures.memory)
    if figures.starting is not None:
        yield Outcome("`normata serve`, start to first answer", _spread(figures.starting.serve), 1, False, " s")
        if figures.starting.token:
            yield Outcome("`normata token create`", _spread(figures.starting.token), 0.5, False, " s")
        yield Outcome("`normata --help`", _spread(figures.starting.help), 0.3, False, " s")


def _of_coverage(figures: Figures) -> Iterator[Outcome]:
    """Times: a request that takes three times as long counts as a third as fast."""
    measured = figures.coverage
    large, many = f"{figures.large_controls:,} controls", f"{figures.adopted_controls:,} adopted controls"
    for upper, lower, name, bound in (
        ("restore", "assess", "One assessment / one restore, SQLite, time", 3),
        ("postgresql-restore", "postgresql-assess", "One assessment / one restore, PostgreSQL, time", 3),
        ("assess", "assess-many", f"One assessment, {many} / {figures.controls:,}, SQLite, time", 2),
        (
            *("postgresql-assess", "postgresql-assess-many"),
            *(f"One assessment, {many} / {figures.controls:,}, PostgreSQL, time", 2),
        ),
        ("assess", "postgresql-assess", "One assessment, PostgreSQL / SQLite, time", 3),
        ("assess-many", "postgresql-assess-many", f"One assessment, {many}, PostgreSQL / SQLite, time", 3),
    ):
        if found := ratio(measured, upper, lower):
            yield Outcome(name, found, bound, False)
    for key, name in (("gaps", "SQLite"), ("postgresql-gaps", "PostgreSQL")):
        if key in measured:
            taken = [(one.processor or 0) + (one.database or 0) for one in measured[key].samples]
            yield Outcome(f"Gaps of {SHORT} controls, {many}, {name}, processor", _spread(taken), 100, False, " ms")
    for sort, name in (("sort-", "sorted"), ("search-", "searched")):
        slower = [found for key in measured if key.startswith(sort) and (found := ratio(measured, "first", key))]
        if slower:
            slowest = max(slower, key=lambda found: found.value)
            yield Outcome(f"Page {name}, slowest / first page, {large}, SQLite, time", slowest, 10, False)
    if "explain" in measured:
        processor = [one.processor for one in measured["explain"].samples if one.processor is not None]
        yield Outcome(f"Explanation, {large}, SQLite, processor", _spread(processor), 20, False, " ms")


_PROCESSES = {
    "main": "main process",
    "worker": "worker",
    "waiting": "process that forks others",
    "reading": "processes of long reads",
}


def _of_memory(memory: Memory) -> Iterator[Outcome]:
    requests, mib, warm = memory.requests, memory.mib, warm_sample(memory)
    name = f"Memory of a worker after {requests[-1]:,} requests"
    yield Outcome(name, _spread(mib, mib[-1]), 200, False, " MiB")
    for moment, taken, bounds in (
        ("before any request", memory.before, {"main": 40, "worker": 100}),
        ("after big reports", memory.after_reports, {"worker": 150}),
    ):
        for process, share in taken.items():
            name = f"Memory of the {_PROCESSES[process]} {moment}"
            yield Outcome(name, Spread(share, share, share), bounds.get(process), False, " MiB")
    growth = [each / mib[warm] for each in mib[warm:]]
    yield Outcome(f"Memory, last / after {requests[warm]:,} requests", _spread(growth, growth[-1]), 1.1, False)


def warm_sample(memory: Memory) -> int:
    """The sample from which on memory must not grow: after a fifth of the requests, when the cache is full."""
    return len(memory.mib) // 5


def _spread(values: Sequence[float], value: float | None = None) -> Spread:
    return Spread(statistics.median(values) if value is None else value, min(values), max(values))
