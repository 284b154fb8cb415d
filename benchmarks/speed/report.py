"""The page that tells of the figures: the same figures always give the same page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import fill

from benchmarks.speed.chart import chart
from benchmarks.speed.figures import Figures, Measured
from benchmarks.speed.pages import ANSWERS, LONGEST
from benchmarks.speed.targets import outcomes, warm_sample

_DOCS = Path(__file__).parents[2] / "docs"
PAGE, PICTURE, RAW = (_DOCS / f"performance.{suffix}" for suffix in ("md", "svg", "json"))


def write(figures: Figures) -> None:
    """Write the page, its picture, and the figures that both are made from."""
    RAW.write_text(figures.model_dump_json(indent=1) + "\n", encoding="utf-8")
    PICTURE.write_text(picture(figures), encoding="utf-8")
    PAGE.write_text(page(figures), encoding="utf-8")


def picture(figures: Figures) -> str:
    """The bars."""
    return chart([("Pages of 100 controls a second", figures.pages), ("Restores a second", figures.restores)])


def page(figures: Figures) -> str:
    """The page, in Markdown."""
    sections = (
        _introduction(figures),
        _targets(figures),
        _pages(figures),
        _restores(figures),
        _memory(figures),
        _loading(figures),
        _limits(figures),
    )
    return "\n".join(line for section in sections for line in section).rstrip() + "\n"


def _introduction(figures: Figures) -> Iterator[str]:
    yield f"""\
# Performance

How fast Normata answers, held against two other programs on the same machine at the same time: the least that an
application can do, and what most people would write. `make bench` measures all this anew and writes this page, its
picture, and [the figures](performance.json) that both are made from; it ends with an error where a target is missed.
[benchmarks/README.md](../benchmarks/README.md) says how to measure a part, or on a PostgreSQL server of your own.

![Bars: pages and restores a second](performance.svg)

What was compared, all of it served by Granian in the configuration of `normata serve`, with one worker unless said
otherwise:

- **Bare application**: an ASGI function that sends the bytes and headers of Normata's own answer from memory, whatever
  it is asked. No Python application can answer faster on this server.
- **FastAPI, Pydantic and the ORM**: the same list as the tutorials of these libraries have it: classes for the tables,
  relationships loaded eagerly, a response model, a look-up of the bearer token. It reads the very file that Normata
  serves, and its answer is checked to be equal, value for value. An endpoint as an ordinary function, in FastAPI's
  thread pool, over the synchronous SQLAlchemy. As a coroutine it is no faster: the driver for that hands every
  statement over SQLite to another thread.
- **Normata** over SQLite and over PostgreSQL, asked for the same page again and again; and the same with
  `NORMATA_PAGE_CACHE_MIB=0`, so that nothing is kept and every page is read and encoded anew.
- **Restores**: each takes another archived policy, whose approver is notified. Beside it, the statements that Normata
  sends for one, taken from Normata itself when the run begins, without HTTP and without Normata: over one connection of
  `sqlite3`, one transaction after the other, with `synchronous = FULL` and WAL; and over
  {figures.connections} connections of `asyncpg`.

The organization has adopted five frameworks of {figures.controls // 5:,} controls ({figures.controls:,} in all), the
large one {figures.large_controls:,}; four matches lead into each control, one from each of the other frameworks, and
three controls of ten have a statement. A page is 100 controls{_page_size(figures)}.

{figures.connections} connections ask for {figures.seconds} s at a time, in {figures.rounds} rounds, each of which goes
through all contenders, every other one backwards. Slow contenders are asked for longer, up to {LONGEST} s, so that each
connection has some {ANSWERS} answers. A figure is the median of the rounds, a ratio that of two medians; beside it
stand the least and the greatest of single rounds.
"""
    machine = figures.machine
    packages = ", ".join(f"{name} {version}" for name, version in machine.packages.items())
    yield f"""\
| | |
|---|---|
| Processor | {machine.processor}, {machine.cores} cores |
| Memory | {machine.memory_gib} GiB |
| System | {machine.system} |
| Disk | a write of 4 KiB is safe after {machine.fsync_ms:.2f} ms |
| Python | {machine.python}; {packages} |
| Databases | SQLite {machine.sqlite}; {f"PostgreSQL {machine.postgresql}" if machine.postgresql else "no PostgreSQL"} |
| Load | {machine.generator} |
| Date | {figures.date} |
"""


def _page_size(figures: Figures) -> str:
    return f", {figures.page_bytes / 1000:,.0f} kB of JSON" if figures.page_bytes else ""


def _targets(figures: Figures) -> Iterator[str]:
    rows = [
        (
            outcome.name,
            f"{_number(outcome.measured.value)}{outcome.unit}",
            f"{_number(outcome.measured.low)} to {_number(outcome.measured.high)}",
            outcome.target or "none",
            "" if outcome.bound is None else "yes" if outcome.met else "**no**",
        )
        for outcome in outcomes(figures)
    ]
    yield "## Targets\n"
    yield from _table(("What", "Measured", "Least to greatest", "Target", "Met"), rows)
    if "sqlite-2" in figures.pages:
        yield "\n" + fill(_two_workers(figures), 120)
    yield ""


def _two_workers(figures: Figures) -> str:
    cores = figures.machine.cores
    if cores >= 4:
        return (
            f"Two workers can be twice as fast only where each has a core, and the load another. Here are {cores}, so"
            " both figures over SQLite have to show it. PostgreSQL's own processes want cores besides, so there is no"
            " target for them."
        )
    return (
        f"Two workers can be twice as fast only where each has a core for itself. Here are {cores} for the workers"
        " and the load together. While nothing is kept, the load takes little of them, so the target is set there. Of"
        " pages that are kept, the load needs as much as the workers, and PostgreSQL's processes want cores of their"
        " own: those figures show what this machine has to give, not what a second worker adds, and have no target."
    )


def _pages(figures: Figures) -> Iterator[str]:
    if figures.pages:
        yield "## Pages of controls\n"
        yield from _measured(figures.pages)
        yield _PROCESSOR_TIME


_PROCESSOR_TIME = """
"Processor" is the time that the processors spent for one answer in the server's processes, "database" that in
PostgreSQL's. It tells what an answer costs even where the load competes for the cores.
"""


def _restores(figures: Figures) -> Iterator[str]:
    if figures.restores:
        yield "## Restores\n"
        yield from _measured(figures.restores)
        yield "\n" + fill(
            "Normata does more for a restore than these statements: HTTP, the look-up of the token, the record as"
            " JSON, a line in the log. Both wait until the disk has what they wrote. On SQLite the bare statements of"
            " each restore have a commit of their own, while Normata commits together what waits together.",
            120,
        )
        yield ""


def _memory(figures: Figures) -> Iterator[str]:
    memory = figures.memory
    if memory is None:
        return
    yield "## Memory\n"
    rows = [
        (f"{requests:,}", f"{mib:.1f}", "flat from here on" if number == warm_sample(memory) else "")
        for number, (requests, mib) in enumerate(zip(memory.requests, memory.mib, strict=True))
    ]
    yield from _table(("Requests", "Resident, MiB", ""), rows, left=(2,))
    answered = ", ".join(f"{count:,} of {status}" for status, count in memory.statuses.items())
    yield f"""
One worker over SQLite, shared libraries included. The requests are mixed: lists with queries that hardly ever recur and
with some that do, restores, questions whether a page has changed, and requests that are refused. Answers: {answered}.
"""


def _loading(figures: Figures) -> Iterator[str]:
    if figures.loaded:
        yield "## Loading\n"
        yield "`normata load` of a bundle into an empty database, from its start to its end.\n"
        rows = [
            (
                each.database,
                f"{each.controls:,}",
                f"{each.matches:,}",
                f"{each.policies:,}",
                f"{each.seconds:.1f}",
                f"{each.peak_mib:,.0f}",
            )
            for each in figures.loaded
        ]
        yield from _table(("Database", "Controls", "Matches", "Policies", "Seconds", "Peak, MiB"), rows)
        yield ""


def _limits(figures: Figures) -> Iterator[str]:
    named = "wrk" in figures.machine.generator
    weaker = "" if named else " It is a fallback in Python that takes more than the fastest servers do."
    yield f"""\
## Limits of these figures

- One machine, and the load on it: what asks and what answers share {figures.machine.cores} cores, so no figure is the
  most that the server could do.{weaker} Ratios suffer less than figures, since all contenders are struck alike; the
  fastest are struck most.
- The loopback interface: no network, no TLS, no proxy, no client that reads slowly.
- One page, asked for again and again, is what a cache likes best. "Nothing kept" is what it costs to ask for what
  nobody has asked for before, or after every change. What an installation sees lies between.
- All data fits into memory. The disk matters to restores and to loading only.
- The plain application is ours. Somebody else's may be slower, or faster.
- Time differs from machine to machine, and on one machine from hour to hour. Compare figures of one run only.
"""


def _measured(measured: Mapping[str, Measured]) -> Iterator[str]:
    rows = []
    for each in sorted(measured.values(), key=lambda each: -each.per_second):
        speeds = [sample.per_second for sample in each.samples]
        times = (each.median(name) for name in ("p50", "p99", "processor", "database"))
        rows.append(
            (
                each.label,
                f"{each.per_second:,.0f}",
                f"{min(speeds):,.0f} to {max(speeds):,.0f}",
                *("" if time is None else f"{time:,.2f}" for time in times),
            )
        )
    yield from _table(
        ("", "A second", "Least to greatest", "p50, ms", "p99, ms", "Processor, ms", "Database, ms"), rows
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[int] = (0,)) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'|'.join('---' if number in left else '--:' for number in range(len(head)))}|"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _number(value: float) -> str:
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"
