"""Numbers are given once, however many ask at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count
from threading import Event
from typing import Any

import pytest

from normata.core.changes.short_ids import raise_to, reserve
from normata.core.changes.source import FaultyInput
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.database import Database
from normata.core.schema.fields import MAX_NUMBER
from normata.core.schema.table import Table
from normata.records.kinds import Policy, Task
from tests import world
from tests.core.changes.creating import create
from tests.databases import change, open_url, tamper
from tests.world import ALPHA, BETA

THREADS = 6


@pytest.fixture
def others(database_url: str) -> Iterator[list[Database]]:
    """The same database, as several processes have it."""
    opened = [open_url(database_url) for _ in range(THREADS)]
    yield opened
    for one in opened:
        one.close()


def reserved(database: Database, table: type[Table] = Task, column: str = "short_id", number: int = 1) -> int | None:
    return change(database, lambda unit: reserve(unit, table, column, ALPHA, number))


# --- One after the other


@pytest.mark.parametrize(
    ("table", "column", "last"), [(Task, "short_id", 4), (Task, "order", 4), (Policy, "order", 10)]
)
def test_numbers_follow_the_highest_that_there_is(
    database: Database, table: type[Table], column: str, last: int
) -> None:
    assert [reserved(database, table, column, number) for number in (1, 3, 1)] == [last + 1, last + 2, last + 5]


def test_counters_of_organizations_kinds_and_columns_are_apart(database: Database) -> None:
    reserved(database, number=10)
    assert reserved(database, column="order") == 5
    assert change(database, lambda unit: reserve(unit, Task, "short_id", BETA, 1)) == 5


@pytest.mark.parametrize("column", ["short_id", "order"])
def test_a_counter_that_is_not_there_starts_at_the_highest_number(database: Database, column: str) -> None:
    """A database of before there were counters has none."""
    tamper(database, "DELETE FROM short_id_counter", 'UPDATE task SET short_id = 70, "order" = 70 WHERE short_id = 3')
    assert reserved(database, column=column) == 71


def test_a_counter_is_raised_and_never_goes_back(database: Database) -> None:
    for number, following in ((50, 51), (20, 52), (52, 53), (60, 61)):
        change(database, lambda unit, number=number: raise_to(unit, Task, "short_id", ALPHA, number))  # type: ignore[misc]
        assert reserved(database) == following


def test_what_is_undone_reserves_nothing(database: Database) -> None:
    def work(unit: UnitOfWork) -> None:
        assert reserve(unit, Task, "short_id", ALPHA, 5) == 5
        raise RuntimeError

    with pytest.raises(RuntimeError):
        change(database, work)
    assert reserved(database) == 5


@pytest.mark.parametrize("column", ["short_id", "order"])
def test_no_number_is_larger_than_the_largest(database: Database, column: str) -> None:
    change(database, lambda unit: raise_to(unit, Task, column, ALPHA, MAX_NUMBER - 2))
    assert reserved(database, column=column, number=3) is None
    assert reserved(database, column=column, number=2) == MAX_NUMBER - 1
    assert reserved(database, column=column) is None


def test_a_row_is_told_that_numbers_are_used_up(database: Database) -> None:
    change(database, lambda unit: raise_to(unit, Task, "short_id", ALPHA, MAX_NUMBER))
    with pytest.raises(FaultyInput) as caught:
        change(database, lambda unit: create(unit, Task, {"id": "new", "title": "New"}))
    assert [str(fault) for fault in caught.value.faults] == [
        f"body: /shortId: is used up: the organization has had number {MAX_NUMBER}"
    ]


# --- At once


@pytest.mark.parametrize("column", ["short_id", "order"])
@pytest.mark.parametrize("known", [True, False], ids=["known", "first use"])
def test_nobody_gets_a_number_twice(database: Database, others: list[Database], column: str, known: bool) -> None:
    if not known:
        tamper(database, "DELETE FROM short_id_counter")

    def ask(one: Database) -> list[int]:
        got: list[int] = []
        for number in (1, 2, 3, 1):
            first = reserved(one, column=column, number=number)
            assert first is not None
            got += range(first, first + number)
        return got

    with ThreadPoolExecutor(THREADS) as pool:
        numbers = [number for got in pool.map(ask, others) for number in got]
    assert sorted(numbers) == list(range(5, 5 + 7 * THREADS))


def test_records_created_at_once_have_numbers_of_their_own(others: list[Database]) -> None:
    names = count()

    def ask(one: Database) -> list[dict[str, Any]]:
        made = []
        for _ in range(4):
            name = f"task-{next(names)}"
            made.append(change(one, lambda unit, name=name: create(unit, Task, {"id": name, "title": name})))  # type: ignore[misc]
        return made

    with ThreadPoolExecutor(THREADS) as pool:
        rows = [row for made in pool.map(ask, others) for row in made]
    expected = list(range(5, 5 + 4 * THREADS))
    assert sorted(row["short_id"] for row in rows) == expected
    assert sorted(row["order"] for row in rows) == expected


def test_whoever_comes_second_waits_for_the_outcome_of_the_first(others: list[Database]) -> None:
    """The first is undone, so the second gets its number."""
    held, go_on = Event(), Event()

    def first(unit: UnitOfWork) -> None:
        assert reserve(unit, Task, "short_id", ALPHA, 1) == 5
        held.set()
        assert go_on.wait(30)
        raise RuntimeError

    def fail(work: Callable[[UnitOfWork], None]) -> None:
        with pytest.raises(RuntimeError):
            change(others[0], work)

    with ThreadPoolExecutor(2) as pool:
        failing = pool.submit(fail, first)
        assert held.wait(30)
        waiting = pool.submit(reserved, others[1])
        assert not waiting.done()
        go_on.set()
        failing.result(30)
        assert waiting.result(30) == 5


def test_a_load_and_a_create_at_once(database: Database, database_url: str) -> None:
    """The load brings numbers along; what is created at the same time gets none of them."""
    rows = [
        {"id": f"l{number}", "organizationId": ALPHA, "title": "L", "shortId": 100 + number} for number in range(50)
    ]

    def load() -> None:
        with closing(open_url(database_url)) as other:
            world.load(other, {"tasks": rows})

    with ThreadPoolExecutor(1) as pool:
        loading = pool.submit(load)
        made = [
            change(database, lambda unit, n=number: create(unit, Task, {"id": f"c{n}", "title": "C"}))["short_id"]  # type: ignore[misc]
            for number in range(20)
        ]
        loading.result(60)
    assert len(set(made)) == 20
    assert not set(made) & set(range(100, 150))
