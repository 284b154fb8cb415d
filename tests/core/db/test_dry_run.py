"""Work that is tried: it does everything, and nothing of it is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import insert, select, update

from normata.core.db.database import Database
from normata.core.db.transaction import ConstraintViolation, Transaction, Work
from normata.core.db.wrapping import Watching
from normata.errors import NotFound
from tests.core.db.example import ALPHA, LABELS, adding, framework, label, open_url

WRITTEN = select(label.c.id).where(label.c.id.not_in(["label-alpha", "label-beta"])).order_by(label.c.id)


@dataclass(frozen=True)
class Opened:
    """A database with an event loop of its own: connections to PostgreSQL cannot move between loops."""

    database: Database
    run: Callable[[Coroutine[Any, Any, Any]], Any]

    def labels(self) -> Any:
        """What the tests have added."""
        return self.run(self.database.read(lambda transaction: transaction.scalars(WRITTEN)))

    def dry_run(self, work: Work[Any]) -> Any:
        """What comes of a dry run."""
        return self.run(self.database.dry_run(work))


@pytest.fixture(params=["sqlite", "postgresql"])
def opened(request: pytest.FixtureRequest) -> Iterator[Opened]:
    """A fresh copy of the example; the test runs once on each database."""
    database = open_url(request.getfixturevalue(f"{'postgres' if request.param == 'postgresql' else 'sqlite'}_url"))
    with asyncio.Runner() as runner:
        yield Opened(database, runner.run)
        runner.run(database.aclose())


def counted(transaction: Transaction) -> list[str]:
    """Adds a label, and tells which there are then."""
    adding("new")(transaction)
    return transaction.scalars(WRITTEN)


def test_it_sees_what_it_does_and_leaves_nothing(opened: Opened) -> None:
    assert opened.dry_run(counted) == ["new"]
    assert opened.labels() == []


@pytest.mark.parametrize("error", [NotFound(), ValueError("mine"), KeyError("k")])
def test_it_raises_what_the_work_raises(opened: Opened, error: Exception) -> None:
    with pytest.raises(type(error)) as caught:
        opened.dry_run(adding("new", then=error))
    assert caught.value is error
    assert opened.labels() == []


def test_a_unique_key_that_is_taken_is_told(opened: Opened) -> None:
    with pytest.raises(ConstraintViolation):
        opened.dry_run(adding("new", "first"))


def test_a_statement_that_has_failed_is_told_though_the_work_keeps_silent(opened: Opened) -> None:
    def work(transaction: Transaction) -> None:
        with pytest.raises(ConstraintViolation):
            adding("new", "first")(transaction)

    with pytest.raises(Exception):  # noqa: B017, PT011 - on PostgreSQL it is the next statement that fails
        opened.dry_run(work)
    assert opened.labels() == []


def dangle(transaction: Transaction) -> None:
    transaction.rows(update(label).values(parent_id="nobody"))


@pytest.mark.parametrize("opened", ["postgresql"], indirect=True)
def test_references_are_checked_as_the_commit_would(opened: Opened) -> None:
    """SQLite cannot: there it is the rules of a change that look at them."""
    for call in (opened.database.dry_run, opened.database.write):
        with pytest.raises(ConstraintViolation):
            opened.run(call(dangle))


def test_others_at_the_same_moment_are_kept(opened: Opened) -> None:
    """On SQLite they go in one transaction with it."""
    kept = [adding(f"kept-{number}") for number in range(3)]
    planned = [adding(f"planned-{number}") for number in range(3)]
    broken = adding("broken", then=NotFound())

    async def all_at_once() -> Sequence[Any]:
        calls: list[Any] = []
        for one, other in zip(kept, planned, strict=True):
            calls += [opened.database.write(one), opened.database.dry_run(other)]
        return await asyncio.gather(*calls, opened.database.dry_run(broken), return_exceptions=True)

    *outcomes, failed = opened.run(all_at_once())
    assert outcomes == ["kept-0", "planned-0", "kept-1", "planned-1", "kept-2", "planned-2"]
    assert isinstance(failed, NotFound)
    assert opened.labels() == ["kept-0", "kept-1", "kept-2"]


# --- Watching


def test_what_is_inserted_into_a_table_is_seen_however(opened: Opened) -> None:
    copied = insert(framework).from_select(
        ["id", "organization_id", "name"], select(label.c.id, label.c.organization_id, label.c.name)
    )

    def work(transaction: Transaction) -> list[str]:
        watching = Watching(transaction, "framework")
        watching.execute_many(insert(label), LABELS)
        watching.rows(copied)
        watching.execute_many(insert(framework), [{"id": one, "organization_id": ALPHA, "name": one} for one in "ab"])
        watching.rows(update(framework).values(name="new"))
        assert {row.organization_id for row in watching.added[-2:]} == {ALPHA}
        return [row.id for row in watching.added]

    seen = opened.dry_run(work)
    assert sorted(seen) == sorted([*(row["id"] for row in LABELS), "label-alpha", "label-beta", "a", "b"])
