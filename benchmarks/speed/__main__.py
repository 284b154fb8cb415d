"""How fast Normata answers, restores, loads and starts, and how much memory it takes.

    python -m benchmarks.speed [--write] [--quick] [--parts pages restores records coverage history console …]

It exits with 1 if a target is missed, and reports which. Normata and the test dependencies must be installed.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.installations import PostgreSQL, SQLite, Store, normata, tell
from benchmarks.speed import console, contenders, history, mixed, neighbours, records, report
from benchmarks.speed.browsing import browse
from benchmarks.speed.contenders import CONNECTIONS, THREADS, measure
from benchmarks.speed.coverage import Sizes, coverage
from benchmarks.speed.data import IMPORTER, MATCHES, READER, WRITER, arrays
from benchmarks.speed.figures import Figures, Loaded, Starting, this_machine
from benchmarks.speed.memory import measure_after_reports, measure_memory
from benchmarks.speed.targets import missed
from benchmarks.world import Tokens
from normata.identity.tokens.tokens import generate
from tests.postgres import running_server

PARTS = ("pages", "restores", "records", "mixed", "coverage", "history", "neighbours", "console", "memory", "starting")
_OF_ADOPTED = {"coverage", "history", "neighbours", "memory"}  # the parts with the size of the largest organization


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.speed", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="what to measure")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=3, help="of one contender in one round")
    parser.add_argument("--against", type=Path, metavar="DIR", help="measure this other checkout in the same rounds")
    parser.add_argument("--quick", action="store_true", help="see whether it all works; the figures mean little")
    parser.add_argument("--write", action="store_true", help="write docs/performance.*, too")
    parser.add_argument("--render", type=Path, metavar="FILE", help="measure nothing, read figures from this file")
    parser.set_defaults(
        controls=1_500, large_controls=50_000, adopted_controls=70_000, requests=200_000, tasks=records.MANY
    )
    parser.set_defaults(neighbour_tasks=neighbours.TASKS)
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.seconds, options.large_controls, options.requests = 2, 1, 5_000, 4_000
        options.tasks, options.adopted_controls = 10 * records.FEW, 7_000
        options.neighbour_tasks = 10 * records.FEW
    figures = Figures.model_validate_json(options.render.read_bytes()) if options.render else run(options)
    if options.write:
        report.write(report.completed(figures))
    print(report.page(figures))
    for outcome in missed(figures):
        tell(f"missed: {outcome.name}: {outcome.measured.value:.2f}{outcome.unit}, target {outcome.target}")
    sys.exit(1 if missed(figures) else 0)


def run(options: argparse.Namespace) -> Figures:
    tokens = {READER: generate(), WRITER: generate(), IMPORTER: generate()}
    policies = max(8_000 * (options.seconds + 1), options.requests // 20)  # more than one round restores
    effort = options.rounds, options.seconds
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="normata-speed-")))
        sqlite, postgresql = SQLite(folder), PostgreSQL(stack.enter_context(running_server(durable=True)))
        stores: dict[str, Store] = {"sqlite": sqlite, "postgresql": postgresql}
        if options.against is not None:
            stores["sqlite-against"] = SQLite(folder, options.against)
            # A second server, because the pools of all contenders have more connections than one server accepts.
            second = stack.enter_context(running_server(durable=True))
            stores["postgresql-against"] = PostgreSQL(second, options.against)
        told = subprocess.run(["wrk", "--version"], capture_output=True, text=True, check=False).stdout  # noqa: S607
        generator = f"{' '.join(told.split()[:2])}, {THREADS} threads"
        figures = Figures(
            date=datetime.now(UTC).date().isoformat(),
            machine=this_machine(folder, sqlite=sqlite.version, postgresql=postgresql.version, generator=generator),
            connections=CONNECTIONS,
            **{name: getattr(options, name) for name in ("rounds", "seconds", "controls", "large_controls")},
            adopted_controls=options.adopted_controls if _OF_ADOPTED & set(options.parts) else 0,
        )
        figures.loaded += load(stores, "small", tokens, controls=options.controls, policies=policies)
        if "starting" in options.parts:
            figures.starting = measure_starting(sqlite, options.rounds)
        if {"pages", "coverage", "console"} & set(options.parts):
            figures.loaded += load(stores, "large", tokens, controls=options.large_controls, policies=0)
        if "pages" in options.parts:
            with contenders.pages(stores, folder, tokens[READER]) as (figures.page_bytes, asked):
                figures.pages = measure(asked, *effort)
        if "restores" in options.parts:
            with contenders.changes(stores, policies, tokens[WRITER]) as asked:
                figures.restores = measure(asked, *effort)
        if "records" in options.parts:
            records.load(stores, tokens, options.tasks)
            with records.lists(stores, tokens[READER]) as asked:
                figures.records = measure(asked, *effort)
        ours = {key: store for key, store in stores.items() if store.is_ours}
        if "mixed" in options.parts:
            figures.mixed = mixed.measured(ours, tokens, *effort)
        measure_adopted(figures, ours, tokens, policies, options)
        if "console" in options.parts:
            secrets = {key: console.demonstrate(store) for key, store in ours.items()}
            with console.pages(stores, secrets) as asked:
                figures.console = measure(asked, *effort)
            figures.browsed = browse(sqlite, secrets["sqlite"], options.rounds)
        if "memory" in options.parts:
            figures.memory = measure_memory(sqlite, policies, tokens, options.requests)
            figures.loaded += load({"sqlite": sqlite}, "reports", tokens, controls=options.adopted_controls, policies=0)
            figures.memory.before, figures.memory.after_reports = measure_after_reports(sqlite, "reports", tokens)
        return figures


def measure_adopted(
    figures: Figures, stores: Mapping[str, Store], tokens: Tokens, policies: int, options: argparse.Namespace
) -> None:
    """The parts with an organization that has adopted large frameworks."""
    adopted, effort = options.adopted_controls, (options.rounds, options.seconds)
    if {"coverage", "history"} & set(options.parts):
        figures.loaded += load(stores, "adopted", tokens, controls=adopted, policies=0, with_short=True)
    if "coverage" in options.parts:
        with coverage(
            stores, policies, Sizes(options.controls, options.large_controls, adopted), tokens[WRITER]
        ) as asked:
            figures.coverage = measure(asked, *effort)
    if "history" in options.parts:
        of_history = {"small": options.controls, "adopted": adopted}
        with history.measured(stores, of_history, tokens[WRITER]) as (changed, asked):
            figures.history = measure(changed, *effort) | measure(asked, options.rounds, 1)
    if "neighbours" in options.parts:
        for store in stores.values():
            tell(f"loading {options.neighbour_tasks:,} tasks into {store.name}")
            store.create(neighbours.LABEL)
            content = arrays(tokens, controls=adopted, policies=0, tasks=options.neighbour_tasks)
            store.load(neighbours.LABEL, content)
            store.ask(neighbours.LABEL, *store.settling)
        with neighbours.beside(stores, tokens, options.neighbour_tasks) as asked:
            figures.neighbours = measure(asked, *effort)


def load(
    stores: Mapping[str, Store], label: str, tokens: Tokens, *, with_short: bool = False, **sizes: int
) -> Iterator[Loaded]:
    """Create and fill databases, and return the cost."""
    for store in stores.values():
        tell(f"loading {sizes['controls']:,} controls into {store.name}")
        store.create(label)
        seconds, mib = store.load(label, arrays(tokens, **sizes, with_short=with_short))
        store.ask(label, *store.settling)
        matches = sizes["controls"] * MATCHES
        yield Loaded(database=store.name, **sizes, matches=matches, seconds=seconds, peak_mib=mib)


def measure_starting(store: Store, rounds: int) -> Starting:
    """The time of `normata serve` over an existing database until the first answer, and of two commands."""
    starting = Starting()
    for _ in range(rounds):
        begun = time.perf_counter()
        with normata(store, "small", ready="/livez"):
            starting.serve.append(time.perf_counter() - begun)
        starting.help.append(store.run("--help")[0])
        url, user = store.url("small"), "user0@benchmark.example"
        starting.token.append(store.run("token", "create", "--user", user, "--database", url)[0])
        tell(
            f"serve: {starting.serve[-1]:.2f} s, --help: {starting.help[-1]:.2f} s,"
            f" token create: {starting.token[-1]:.2f} s"
        )
    return starting


if __name__ == "__main__":
    main()
