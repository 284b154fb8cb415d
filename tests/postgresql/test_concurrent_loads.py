"""Two that change the same organization at the same time: what each has advanced stays, and what is kept is right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Event
from typing import Any

import pytest
from sqlalchemy import Connection, select

from normata import checkup
from normata.bundle import loading
from normata.database import Database
from normata.frameworks.adoption import adopt
from normata.frameworks.model import Framework
from normata.identity.model import Organization
from tests import world
from tests.databases import open_url
from tests.postgresql.conftest import session, wait_until
from tests.world import ALPHA

Document = dict[str, list[dict[str, Any]]]


@pytest.fixture
def database_url(postgres_url: str) -> str:
    """SQLite lets one load in at a time."""
    return postgres_url


@pytest.fixture
def other(database_url: str) -> Iterator[Database]:
    """The same database, for another process."""
    with closing(open_url(database_url)) as opened:
        yield opened


def revision(database: Database) -> str:
    statement = select(Organization.revision).where(Organization.id == ALPHA)
    found: str = database.read_now(lambda connection: connection.scalars(statement).one())
    return found


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

    def work(connection: Connection) -> None:
        loading.load(connection, world.rows(document), progress)
        if written:
            pause()

    with ThreadPoolExecutor(2) as elsewhere, session(url) as looking:
        loaded = elsewhere.submit(database.write_now, work)
        try:
            assert reached.wait(30)
            done = elsewhere.submit(meanwhile)
            wait_until(lambda: done.done() or looking.waiting())
        finally:
            go_on.set()
        loaded.result(30)
        done.result(30)


def test_a_load_does_not_bring_an_earlier_revision_back(database: Database, other: Database, database_url: str) -> None:
    """The bundle changes the organization's name; in between it has adopted a framework."""
    first = revision(database)

    def meanwhile() -> None:
        assert other.write_now(lambda connection: adopt(connection, ALPHA, ["fw-star"])) == {"fw-star": True}

    load_around(database, database_url, {"organizations": [{"id": ALPHA, "name": "Renamed"}]}, meanwhile)
    assert revision(database) != first, "pages that were kept before the adoption would be given out again"


def test_a_load_does_not_bring_an_earlier_count_back(database: Database, other: Database, database_url: str) -> None:
    """The bundle changes the framework's name; in between another has added a control."""
    added = {"controls": [{"id": "new", "frameworkId": "fw-own", "name": "New"}]}
    load_around(
        database, database_url, {"frameworks": [{"id": "fw-own", "name": "Renamed"}]}, lambda: world.load(other, added)
    )
    assert database.read_now(lambda connection: list(checkup.faults(database, connection))) == []


def test_two_loads_do_not_give_two_controls_one_place(database: Database, other: Database, database_url: str) -> None:
    one, two = ({"controls": [{"id": name, "frameworkId": "fw-own", "name": name}]} for name in ("one", "two"))
    load_around(database, database_url, one, lambda: world.load(other, two))
    assert database.read_now(lambda connection: list(checkup.faults(database, connection))) == []


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
    assert database.read_now(lambda connection: list(checkup.faults(database, connection))) == []


def test_a_new_organization_does_not_miss_what_becomes_of_everybodys_frameworks(
    database: Database, other: Database, database_url: str
) -> None:
    """It comes to be while a framework of all is changed, and its revision tells the old lists from the new."""
    seen: list[str] = []

    def look(connection: Connection) -> tuple[str, str]:
        name = connection.scalars(select(Framework.name).where(Framework.id == "fw-sun")).one()
        return name, connection.scalars(select(Organization.revision).where(Organization.id == "org-new")).one()

    def meanwhile() -> None:
        world.load(other, {"organizations": [{"id": "org-new", "name": "New", "slug": "new"}]})
        name, revision = other.read_now(look)
        seen.extend([revision] if name != "Sunny" else [])

    changed: Document = {"frameworks": [{"id": "fw-sun", "name": "Sunny"}]}
    load_around(database, database_url, changed, meanwhile, written=True)
    name, revision = database.read_now(look)
    assert name == "Sunny"
    assert revision not in seen, "pages that were kept before the change would be given out again"
