"""Reads of SQLite have two lanes, so that short ones never wait for long ones."""

from __future__ import annotations

import asyncio
import threading
from contextlib import closing

import pytest
from sqlalchemy import Select, func, literal, select

from normata.core.db.database import Database
from normata.core.db.sqlite import database as lanes
from normata.core.db.transaction import Transaction
from tests.core.db.example import ALPHA, open_url, organization

NAME = select(organization.c.name).where(organization.c.id == ALPHA)


def counting(last: int | None) -> Select[int]:
    """A statement that counts in SQLite, step by step; null to count for ever."""
    numbers = select(literal(1).label("number")).cte("numbers", recursive=True)
    following = select(numbers.c.number + 1)
    counted = numbers.union_all(following if last is None else following.where(numbers.c.number < last))
    return select(func.count()).select_from(counted)


def test_a_short_read_does_not_wait_for_long_ones(sqlite: Database) -> None:
    ends = threading.Event()

    def lasting(transaction: Transaction) -> str:
        assert ends.wait(60)
        return str(transaction.scalar(NAME))

    async def walk() -> None:
        long_reads = [asyncio.create_task(sqlite.read(lasting, is_long=True)) for _ in range(5)]
        assert await sqlite.read(lambda transaction: transaction.scalar(NAME)) == "Alpha"
        assert not any(one.done() for one in long_reads)
        ends.set()
        assert await asyncio.gather(*long_reads) == ["Alpha"] * 5

    asyncio.run(walk())


def test_a_read_that_turns_out_to_be_long_begins_again_in_the_other_lane(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "_SHORT", 0.0)
    threads: list[str] = []

    def work(transaction: Transaction) -> int:
        threads.append(threading.current_thread().name)
        return int(transaction.scalar(counting(100_000)) or 0)

    async def walk(database: Database) -> None:
        assert await database.read(work) == 100_000
        assert await database.read(lambda transaction: transaction.scalar(NAME)) == "Alpha", "it is short enough"

    with closing(open_url(sqlite_url)) as database:
        asyncio.run(walk(database))
    assert threads == ["normata-read_0", "normata-long-read_0"]


def test_a_read_that_is_given_up_ends(sqlite_url: str) -> None:
    begun = threading.Event()

    def work(transaction: Transaction) -> object:
        begun.set()
        return transaction.scalar(counting(None))

    async def walk() -> None:
        database = open_url(sqlite_url)
        read = asyncio.create_task(database.read(work, is_long=True))
        assert await asyncio.to_thread(begun.wait, 60)
        read.cancel()
        with pytest.raises(asyncio.CancelledError):
            await read
        await asyncio.wait_for(database.aclose(), 60)  # which waits for the thread

    asyncio.run(walk())
