"""A year of an organization's work, and the resulting rows and bytes of each table.

    python -m benchmarks.growth [--days 250] [--people 50] [--changes 20 200] [--only sqlite postgresql]

Everything is done as in the service: each change is a unit of work of a member, with its event and consequences, and is
sealed before the next one, as if people worked one after the other. On each working day each person signs in and reads
their notifications. At the end everything is removed that settings allow to remove, to measure it. It prints tables in
Markdown.
"""

import argparse
import asyncio
import random
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.installations import PostgreSQL, SQLite, Store, tell
from benchmarks.world import sentence
from normata.core.changes.job_runner import JobRunner
from normata.core.changes.source import Row
from normata.core.changes.unit_of_work import Actor, Changes, UnitOfWork
from normata.core.changes.writing import BODY
from normata.core.db.database import Database
from normata.core.db.opening import open_database
from normata.core.schema.table import new_id
from normata.coverage.assessments import AssessmentInput, assess
from normata.events.sealing import seal_all_now
from normata.identity.invitations import invitations
from normata.identity.organization_lookup import NEXT_ORGANIZATIONS
from normata.identity.sessions import sessions
from normata.identity.tokens import tokens
from normata.notifications import read_marks
from normata.records import archiving
from normata.records.kinds import Task
from normata.records.writing import change, create
from normata.retention.forgetting import retention
from normata.settings import Settings
from normata.wiring import changes_of
from tests.postgres import running_server

_ORGANIZATION = "growing"
_CONTROLS = 300
_LATER = "2100-01-01T00:00:00.000Z"  # when everything has been over for long enough
_FORGET_ALL = Settings(forget_notifications=1, forget_sessions=1, forget_tokens=1)
_BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"


class Size(NamedTuple):
    rows: int
    size: int  # bytes of the table and its indexes


Sizes = dict[str, Size]


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.growth", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--days", type=int, default=250, help="working days of the year")
    parser.add_argument("--people", type=int, default=50)
    parser.add_argument("--changes", type=int, nargs="+", default=[20, 200], help="changes a day")
    parser.add_argument("--only", nargs="+", choices=("sqlite", "postgresql"), default=["sqlite", "postgresql"])
    options = parser.parse_args()
    for name in options.only:
        with _store(postgresql=name == "postgresql") as store:
            for changes in options.changes:
                label = f"growth_{changes}"
                store.create(label)
                store.load(label, _world(options.people).items())
                with closing(open_database(Settings(database_url=store.url(label)))) as database:
                    year = _Year(database, options.people)
                    before = _sizes(store, label)
                    began = time.monotonic()
                    for day in range(options.days):
                        year.work(day, changes)
                    tell(f"{store.name}, {changes} changes a day: {time.monotonic() - began:.0f} s")
                    after = _sizes(store, label)
                    asyncio.run(_forget(store.url(label)))
                    _print(f"{store.name}, {changes} changes a day", before, after, _sizes(store, label), year.changes)


class _Year:
    """An organization's people and their work: the same in each run, except for ids and times."""

    def __init__(self, database: Database, people: int) -> None:
        self._database = database
        self._make: Changes = changes_of(database)
        self._people = range(people)
        self._rng = random.Random(1)
        self._tasks: list[str] = []
        self.changes = 0

    def work(self, day: int, changes: int) -> None:
        """Work for one day: sign in, read and make changes; sometimes create a token, a link or an invitation."""
        for person in self._people:
            self._do(person, partial(self._sign_in, person))
            self._do(person, lambda unit: read_marks.mark_all(unit, _ORGANIZATION, _LATER))
        if day % 5 == 0:
            self._do(0, lambda unit: invitations.invite(unit, _ORGANIZATION, f"guest{day}@example.org", "viewer"))
        if day % 20 == 0:
            self._do(0, self._renew_token)
        for _ in range(changes):
            self._do(self._rng.choice(self._people), self._change)
            self.changes += 1

    def _do(self, person: int, work: Any) -> None:
        actor = Actor(_user(person), f"Person {person}", None, new_id(), "192.0.2.7")
        self._make.make_now(work, actor=actor)
        seal_all_now(self._database)

    def _sign_in(self, person: int, unit: UnitOfWork) -> None:
        sessions.end_others(unit, _user(person))
        sessions.begin(unit, _user(person), "password", address="192.0.2.7", user_agent=_BROWSER)

    def _renew_token(self, unit: UnitOfWork) -> None:
        for row in tokens.open_tokens(unit, _user(0), unit.moment):
            tokens.end(unit, row, _ORGANIZATION)
        tokens.issue(
            unit,
            _user(0),
            scope="write",
            name="Robot",
            organization_id=_ORGANIZATION,
            expires_at=None,
            log_of=_ORGANIZATION,
        )

    def _change(self, unit: UnitOfWork) -> None:
        """Make a change. Of ten, four change a task, three assess a control, two add a task, and one archives one."""
        rng, sort = self._rng, self._rng.randrange(10)
        if sort < 3:
            values = {
                "coverage_status": rng.choice(["NONE", "PARTIAL", "FULL"]),
                "coverage_gap": sentence(rng, 12),
                "note": sentence(rng, 20),
            }
            control = f"control-{rng.randrange(_CONTROLS):03}"
            assess(unit, _ORGANIZATION, [AssessmentInput(Row("", BODY, "", {}), values, control_id=control)])
        elif sort < 5 or len(self._tasks) < 20:
            row = create(unit, Task, _ORGANIZATION, self._task())
            self._tasks.append(row.id)
        elif sort < 9:
            changed = self._task()
            del changed["title"]
            change(unit, Task, rng.choice(self._tasks), changed)
        else:
            task = self._tasks.pop(rng.randrange(len(self._tasks)))
            archiving.archive(unit, Task, task, archive_id=new_id(), reason=sentence(rng, 6))

    def _task(self) -> dict[str, Any]:
        rng = self._rng
        return {
            "title": sentence(rng, 6),
            "description": sentence(rng, 40),
            "assigneeMemberId": f"member-{rng.choice(self._people):03}",
        }


def _user(person: int) -> str:
    return f"user-{person:03}"


def _world(people: int) -> dict[str, list[dict[str, str]]]:
    """A new organization: its people and a framework."""
    rng = random.Random(2)
    return {
        "organizations": [{"id": _ORGANIZATION, "name": "Growing", "slug": _ORGANIZATION}],
        "users": [
            {"id": _user(one), "name": f"Person {one}", "email": f"person{one}@example.org"} for one in range(people)
        ],
        "memberships": [
            {"id": f"member-{one:03}", "organizationId": _ORGANIZATION, "userId": _user(one)}
            | {"role": "editor" if one else "owner"}
            for one in range(people)
        ],
        "frameworks": [{"id": "framework", "organizationId": _ORGANIZATION, "name": "Rules", "slug": "rules"}],
        "controls": [
            {"id": f"control-{one:03}", "frameworkId": "framework", "identifier": f"A.{one}", "name": sentence(rng, 8)}
            for one in range(_CONTROLS)
        ],
        "frameworkAdoptions": [{"id": "adoption", "organizationId": _ORGANIZATION, "frameworkId": "framework"}],
    }


async def _forget(url: str) -> None:
    """Remove everything that settings allow to remove."""
    database = open_database(Settings(database_url=url), serving=True)
    try:
        runner = JobRunner(
            database, changes_of(database), [retention(_FORGET_ALL)], NEXT_ORGANIZATIONS, clock=lambda: _LATER
        )
        await runner.find()
        await runner.do_due()
    finally:
        await database.aclose()


@contextmanager
def _store(*, postgresql: bool) -> Iterator[Store]:
    if postgresql:
        with running_server(durable=False) as running:
            yield PostgreSQL(running)
        return
    with tempfile.TemporaryDirectory(prefix="normata-growth-") as folder:
        yield SQLite(Path(folder))


def _sizes(store: Store, label: str) -> Sizes:
    """The rows of each table, and its bytes including indexes."""
    store.ask(label, *store.settling)
    if isinstance(store, SQLite):
        with closing(sqlite3.connect(store.path(label))) as connection:
            found = dict(
                connection.execute(
                    "SELECT schema.tbl_name, sum(stat.pgsize) FROM dbstat AS stat"
                    " JOIN sqlite_schema AS schema ON schema.name = stat.name GROUP BY schema.tbl_name"
                )
            )
    else:
        [text] = store.ask(
            label,
            "SELECT string_agg(relname || '=' || pg_total_relation_size(oid), ',') FROM pg_class"
            " WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'",
        )
        found = {name: int(size) for name, _, size in (one.partition("=") for one in text.split(","))}
    counts = store.ask(label, *(f'SELECT count(*) FROM "{name}"' for name in found))  # noqa: S608 - names of tables
    return {name: Size(rows, found[name]) for name, rows in zip(found, counts, strict=True)}


def _print(title: str, before: Sizes, after: Sizes, rest: Sizes, changes: int) -> None:
    print(f"\n### {title}\n")
    print("| Table | Rows | MB | Bytes a row | Rows that may be forgotten |")
    print("|---|---|---|---|---|")
    grown = {
        name: Size(size.rows - before[name].rows, size.size - before[name].size)
        for name, size in after.items()
        if size.rows > before[name].rows
    }
    for name, size in sorted(grown.items(), key=lambda item: -item[1].size):
        forgotten = after[name].rows - rest[name].rows
        print(
            f"| `{name}` | {size.rows:,} | {size.size / 1e6:.1f} | {size.size / size.rows:,.0f} | {forgotten or '':,} |"
            if forgotten
            else f"| `{name}` | {size.rows:,} | {size.size / 1e6:.1f} | {size.size / size.rows:,.0f} | |"
        )
    whole = sum(size.size for size in grown.values())
    events = sum(grown[name].size for name in ("audit_event", "event_leaf", "event_checkpoint"))
    print(
        f"\n{changes:,} changes: {whole / 1e6:.0f} MB, of which {events / 1e6:.0f} MB are events and their seals,"
        f" {events / grown['audit_event'].rows:,.0f} bytes an event.",
        flush=True,
    )


if __name__ == "__main__":
    tell("Times depend on the machine, and on what else it does.")
    main()
