"""Two that change the same organization at the same time: what each has advanced stays, and what is kept is right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Event
from typing import Any

import pytest
from sqlalchemy import select

from normata.adoption.adoption import adopt
from normata.bundle import loading
from normata.cli import check
from normata.core.changes.revisions import current_revision
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.database import Database
from normata.core.db.transaction import Transaction
from normata.core.http.operation import ListOperation
from normata.frameworks.model import Framework
from normata.operations import OPERATIONS, SECURITY
from tests import world
from tests.core.db.sessions import session, wait_until
from tests.databases import change, open_url
from tests.world import ALPHA

Document = dict[str, list[dict[str, Any]]]

KEPT = [one.cached for one in OPERATIONS if isinstance(one, ListOperation) and one.cached]


@pytest.fixture
def database_url(postgres_url: str) -> str:
    """SQLite lets one load in at a time."""
    return postgres_url


@pytest.fixture
def other(database_url: str) -> Iterator[Database]:
    """The same database, for another process."""
    with closing(open_url(database_url)) as opened:
        yield opened


def revisions(database: Database, organization_id: str = ALPHA) -> dict[str, str]:
    """The revision of each kept list of an organization."""
    return database.read_now(
        lambda transaction: {name: current_revision(transaction, organization_id, name) for name in KEPT}
    )


def faults(database: Database) -> list[str]:
    """What `normata check` finds."""
    return database.read_now(lambda transaction: list(check.faults(database, transaction, SECURITY)))


def load_around(
    database: Database, url: str, document: Document, meanwhile: Callable[[], object], *, written: bool = False
) -> None:
    """Load a bundle, and have something else begin once it has looked at what is stored, or has ``written`` its rows.

    What else there is may get by or wait for the load: then it comes after it.
    """
    reached, go_on = Event(), Event()

    def pause() -> None:
        reached.set()
        assert go_on.wait(30)

    def progress(step: str, _done: int, _total: int) -> None:
        if step == "Writing rows" and not written:
            pause()

    def work(unit: UnitOfWork) -> None:
        loading.load(unit, world.rows(document), progress)
        if written:
            pause()

    with ThreadPoolExecutor(2) as elsewhere, session(url) as looking:
        loaded = elsewhere.submit(change, database, work)
        try:
            assert reached.wait(30)
            done = elsewhere.submit(meanwhile)
            wait_until(lambda: done.done() or looking.waiting())
        finally:
            go_on.set()
        loaded.result(30)
        done.result(30)


@pytest.mark.parametrize("written", [False, True])
def test_a_load_does_not_bring_an_earlier_revision_back(
    database: Database, other: Database, database_url: str, written: bool
) -> None:
    """Of two changes at once, each gives the lists that it touches a revision that was not there before."""
    first = revisions(database)
    seen: list[dict[str, str]] = []

    def meanwhile() -> None:
        assert change(other, lambda unit: adopt(unit, ALPHA, ["fw-star"])) == {"fw-star": True}
        seen.append(revisions(other))

    load_around(
        database, database_url, {"frameworks": [{"id": "fw-own", "name": "Renamed"}]}, meanwhile, written=written
    )
    last = revisions(database)
    for name in KEPT:
        assert first[name] not in (seen[0][name], last[name]), "pages from before would be sent again"


def test_a_load_does_not_bring_an_earlier_count_back(database: Database, other: Database, database_url: str) -> None:
    """The bundle changes the framework's name; in between another has added a control."""
    added = {"controls": [{"id": "new", "frameworkId": "fw-own", "name": "New"}]}
    load_around(
        database, database_url, {"frameworks": [{"id": "fw-own", "name": "Renamed"}]}, lambda: world.load(other, added)
    )
    assert faults(database) == []


def test_two_loads_do_not_give_two_controls_one_place(database: Database, other: Database, database_url: str) -> None:
    one, two = ({"controls": [{"id": name, "frameworkId": "fw-own", "name": name}]} for name in ("one", "two"))
    load_around(database, database_url, one, lambda: world.load(other, two))
    assert faults(database) == []


def test_coverage_of_two_at_once_is_what_follows_from_both(
    database: Database, other: Database, database_url: str
) -> None:
    """Two statements that only together cover a category."""
    children = [f"own.A.{number}" for number in range(1, 13)]

    def stating(names: list[str]) -> Document:
        return {
            "controlCoverages": [
                {"id": f"say-{name}", "organizationId": ALPHA, "controlId": name, "coverageStatus": "FULL"}
                for name in names
            ]
        }

    load_around(database, database_url, stating(children[:6]), lambda: world.load(other, stating(children[6:])))
    assert faults(database) == []


def test_a_new_organization_does_not_miss_what_becomes_of_everybodys_frameworks(
    database: Database, other: Database, database_url: str
) -> None:
    """It comes to be while a framework of all is changed, and its revisions tell the old lists from the new."""
    seen: list[dict[str, str]] = []

    def look(transaction: Transaction) -> tuple[str, dict[str, str]]:
        name = transaction.scalar(select(Framework.name).where(Framework.id == "fw-sun"))
        return str(name), {cached: current_revision(transaction, "org-new", cached) for cached in KEPT}

    def meanwhile() -> None:
        organization = {"id": "org-new", "name": "New", "slug": "new"}
        adoption = {"id": "adopt-new", "organizationId": "org-new", "frameworkId": "fw-moon"}
        world.load(other, {"organizations": [organization], "frameworkAdoptions": [adoption]})
        name, found = other.read_now(look)
        seen.extend([found] if name != "Sunny" else [])

    changed: Document = {"frameworks": [{"id": "fw-sun", "name": "Sunny"}]}
    load_around(database, database_url, changed, meanwhile, written=True)
    name, last = database.read_now(look)
    assert name == "Sunny"
    for before in seen:
        assert not set(before.values()) & set(last.values()), "pages from before would be sent again"
