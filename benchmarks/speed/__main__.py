"""How fast Normata answers, restores, loads and starts, and how much memory it takes.

    python -m benchmarks.speed [--write] [--quick] [--parts pages restores memory starting]

It exits with 1 where a target is missed, and says which. Normata must be importable: installed, or with
`PYTHONPATH=src`; so must be what the tests need.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from benchmarks.speed import machine, report
from benchmarks.speed.data import World, make_tokens
from benchmarks.speed.figures import Figures
from benchmarks.speed.generators import LoadFailed, choose
from benchmarks.speed.memory import measure_memory
from benchmarks.speed.pages import DifferentAnswers, measure_pages
from benchmarks.speed.restores import NotRestored, measure_restores
from benchmarks.speed.rounds import Effort
from benchmarks.speed.starting import measure_starting
from benchmarks.speed.stores import SQLite, Store, postgresql
from benchmarks.speed.targets import missed

PARTS = ("pages", "restores", "memory", "starting")
CONTROLS = 1_500

console = Console(stderr=True, highlight=False, log_path=False)


def main() -> None:
    """Measure, or read what was measured; report; judge."""
    options = arguments()
    try:
        figures = run(options) if options.render is None else Figures.model_validate_json(options.render.read_bytes())
    except (LoadFailed, DifferentAnswers, NotRestored) as error:
        sys.exit(f"{type(error).__name__}: {error}")
    if options.json is not None:
        options.json.write_text(figures.model_dump_json(indent=1) + "\n", encoding="utf-8")
    if options.write:
        report.write(figures)
    print(report.page(figures))
    for outcome in missed(figures):
        console.print(f"missed: {outcome.name}: {outcome.measured.value:.2f}{outcome.unit}, target {outcome.target}")
    sys.exit(1 if missed(figures) else 0)


def arguments() -> argparse.Namespace:
    """The command line, with defaults at the size that Normata promises to be fast at."""
    parser = argparse.ArgumentParser(prog="benchmarks.speed", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="what to measure")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=3, help="of one contender in one round")
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--threads", type=int, default=2, help="of wrk")
    parser.add_argument("--generator", choices=("auto", "wrk", "python"), default="auto")
    parser.add_argument("--large", type=int, metavar="CONTROLS", default=50_000, help="of the large organization")
    parser.add_argument("--policies", type=int, help="archived ones; so many can be restored in one round")
    parser.add_argument("--requests", type=int, default=200_000, help="for memory")
    parser.add_argument("--postgresql", metavar="URL", help="a server, as a superuser; else one from the wheel")
    parser.add_argument("--without-postgresql", action="store_true")
    parser.add_argument("--quick", action="store_true", help="a look whether it all works; its figures mean little")
    parser.add_argument("--write", action="store_true", help="write docs/performance.*, too")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file, too")
    parser.add_argument("--render", type=Path, metavar="FILE", help="measure nothing, read figures from this file")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.seconds, options.large, options.requests = 2, 1, 5_000, 4_000
    if options.policies is None:
        options.policies = max(8_000 * (options.seconds + 1), options.requests // 20)
    if min(options.rounds, options.seconds, options.connections, options.threads) < 1 or options.requests < 100:
        parser.error("rounds, seconds, connections and threads must be at least 1, requests at least 100")
    if options.large < CONTROLS or options.large % 5:
        parser.error(f"the large organization takes a multiple of 5 controls, at least {CONTROLS:,}")
    return options


def run(options: argparse.Namespace) -> Figures:
    """Measure all that is asked for."""
    generator = choose(options.generator, options.connections, options.threads)
    tokens = make_tokens()
    small = World(CONTROLS, options.policies, tokens)
    large = World(options.large, 0, tokens)
    with (
        tempfile.TemporaryDirectory(prefix="normata-speed-") as name,
        stores(options, name) as all_,
    ):
        folder = Path(name)
        figures = Figures(
            date=datetime.now(UTC).date().isoformat(),
            machine=machine.describe(folder, generator, all_["sqlite"], all_.get("postgresql")),
            rounds=options.rounds,
            seconds=options.seconds,
            connections=options.connections,
            controls=small.controls,
            large_controls=large.controls,
        )
        for label, world in (("small", small), ("large", large)):
            if label == "large" and "pages" not in options.parts:
                continue
            bundle = folder / f"{label}.json"
            world.write(bundle)
            for store in all_.values():
                console.log(f"loading {world.controls:,} controls into {store.name}")
                figures.loaded.append(store.fill(label, bundle, world))
            bundle.unlink()
        effort = Effort(generator, options.rounds, options.seconds, console.log)
        if "starting" in options.parts:
            figures.starting = measure_starting(all_["sqlite"], options.rounds, console.log)
        if "pages" in options.parts:
            figures.page_bytes, figures.pages = measure_pages(all_, folder, tokens.reader, effort)
        if "restores" in options.parts:
            figures.restores = measure_restores(all_, small.policies, tokens.writer, effort)
        if "memory" in options.parts:
            figures.memory = measure_memory(all_["sqlite"], small.policies, tokens, options.requests, console.log)
        return figures


@contextmanager
def stores(options: argparse.Namespace, folder: str) -> Iterator[dict[str, Store]]:
    """The databases that are measured."""
    sqlite = SQLite(Path(folder))
    if options.without_postgresql:
        yield {"sqlite": sqlite}
        return
    with postgresql(options.postgresql) as server:
        yield {"sqlite": sqlite, "postgresql": server}


if __name__ == "__main__":
    main()
