"""Those who write to SQLite, or read from it, wait for each other: threads, processes, and those who give up."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Integer, String, cast, select, update

from normata.core.db.database import Database
from normata.core.db.transaction import Transaction
from normata.errors import Unavailable
from tests.core.db.example import ALPHA, adding, label, open_url, organization

COUNT = (
    update(organization)
    .values(name=cast(cast(organization.c.name, Integer) + 1, String))
    .where(organization.c.id == ALPHA)
)
NAME = select(organization.c.name).where(organization.c.id == ALPHA)


def count(transaction: Transaction) -> None:
    transaction.rows(COUNT)


def start(transaction: Transaction) -> None:
    transaction.rows(update(organization).values(name="0").where(organization.c.id == ALPHA))


def counted(transaction: Transaction) -> str:
    return str(transaction.scalar(NAME))


@pytest.fixture
def impatient(sqlite_url: str) -> Iterator[Database]:
    """The database for those who wait for almost nothing."""
    opened = open_url(sqlite_url, database_timeout=0.05)
    yield opened
    opened.close()


def test_a_write_is_seen_elsewhere_as_soon_as_it_is_acknowledged(sqlite: Database, sqlite_url: str) -> None:
    with closing(open_url(sqlite_url)) as other:
        assert "new" not in other.read_now(lambda transaction: transaction.scalars(select(label.c.id)))
        sqlite.write_now(adding("new"))
        assert "new" in other.read_now(lambda transaction: transaction.scalars(select(label.c.id)))


def test_a_read_sees_one_moment_and_keeps_nobody_waiting(sqlite: Database) -> None:
    sqlite.write_now(start)

    def work(transaction: Transaction) -> tuple[str, str]:
        first = counted(transaction)
        sqlite.write_now(count)
        return first, counted(transaction)

    assert sqlite.read_now(work) == ("0", "0")
    assert sqlite.read_now(counted) == "1"


def test_writers_queue_and_none_is_lost(sqlite: Database) -> None:
    sqlite.write_now(start)

    async def all_at_once() -> None:
        await asyncio.gather(*(sqlite.write(count) for _ in range(40)))

    asyncio.run(all_at_once())
    assert sqlite.read_now(counted) == "40"


PROCESS = """
import sys
from tests.core.db.example import open_url
from tests.core.db.test_sqlite_queues import count
database = open_url(sys.argv[1], database_timeout=30)
print("ready", flush=True)
for _ in range(40):
    database.write_now(count)
database.close()
"""


def test_writers_of_two_processes_and_several_threads_wait_for_each_other(sqlite_url: str) -> None:
    with closing(open_url(sqlite_url, database_timeout=30)) as database:
        database.write_now(start)
        process = subprocess.Popen(
            [sys.executable, "-c", PROCESS, sqlite_url],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[3],
        )
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "ready\n"
            with ThreadPoolExecutor(2) as threads:
                list(threads.map(lambda _: database.write_now(count), range(40)))
            assert process.wait(timeout=60) == 0
        finally:
            process.kill()
            process.wait(timeout=10)
            process.stdout.close()
        assert database.read_now(counted) == "80"


def test_a_lock_that_is_not_let_go_is_unavailable_for_writers_only(impatient: Database, path: Path) -> None:
    impatient.write_now(start)
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(Unavailable, match="locked"):
            impatient.write_now(count)
        assert impatient.read_now(counted) == "0"
        holder.execute("ROLLBACK")
    impatient.write_now(count)
    assert impatient.read_now(counted) == "1"


def test_reads_in_a_read_have_connections_of_their_own(sqlite: Database) -> None:
    def nested(depth: int) -> int:
        def work(transaction: Transaction) -> int:
            transaction.scalar(NAME)
            return nested(depth + 1) if depth < 5 else depth

        return sqlite.read_now(work)

    assert nested(0) == 5


def test_a_read_whose_turn_does_not_come_in_time_is_unavailable_and_is_not_run(impatient: Database) -> None:
    go_on = threading.Event()
    ran: list[str] = []

    async def run() -> None:
        first = asyncio.create_task(impatient.read(lambda _: go_on.wait(30)))
        await asyncio.sleep(0)
        with pytest.raises(Unavailable, match="waiting"):
            await impatient.read(lambda _: ran.append("late"))
        cancelled = asyncio.create_task(impatient.read(lambda _: ran.append("cancelled")))
        await asyncio.sleep(0.01)
        cancelled.cancel()
        await asyncio.wait({cancelled})
        go_on.set()
        assert await first
        assert await impatient.read(counted) == "Alpha"
        assert ran == []

    asyncio.run(run())
