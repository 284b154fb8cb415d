"""The rules for one row of a request: the same as for a load, with the place in the body, at the price of one row."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any, TypeVar

import pytest

from normata.bundle import loading
from normata.core.changes.source import FaultyInput
from normata.core.changes.unit_of_work import Actor, UnitOfWork
from normata.core.db.database import Database
from normata.core.db.transaction import NO_PARAMETERS, Parameters, Statement, TenantScope
from normata.records.base import Restorable
from normata.records.kinds import Audit, Finding, Label, Task
from normata.wiring import changes_of
from tests import stored, world
from tests.core.changes.creating import create, writes
from tests.databases import change, open_url, tamper
from tests.world import ALPHA, BETA

T = TypeVar("T")

EDITOR = Actor("user-editor", "Editor", "token", "request")
IN_ALPHA = TenantScope(readable=(ALPHA,), writable=(ALPHA,))


def made(database: Database, kind: type[Restorable], **values: Any) -> dict[str, Any]:
    """A record that a command creates."""
    return change(database, lambda unit: create(unit, kind, {"id": "new"} | values))


def requested(url: str, kind: type[Restorable], work: Callable[[UnitOfWork], T]) -> T:
    """What a member of alpha makes over HTTP."""

    async def make() -> T:
        database = open_url(url)
        try:
            return await changes_of(database).make(work, actor=EDITOR, scope=IN_ALPHA, writes=writes(kind))
        finally:
            await database.aclose()

    return asyncio.run(make())


def told(error: pytest.ExceptionInfo[FaultyInput]) -> list[str]:
    return [str(fault) for fault in error.value.faults]


# --- One row


def test_a_row_is_completed(database: Database) -> None:
    row = made(database, Task, title="Été: 1/2")
    assert (row["slug"], row["short_id"], row["order"]) == ("ete-1-2", 5, 5)
    assert (row["status"], row["priority"], row["archived_at"]) == ("TODO", "MEDIUM", None)
    assert row["created_at"] == row["updated_at"]
    assert stored.row(database, Task, "new").items() >= row.items()


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        (Task, {}, ["body: /title: is required"]),
        (Task, {"title": ""}, ["body: /title: must have at least 1 character"]),
        (Task, {"title": "T", "colour": "red"}, ["body: /colour: is not a known field"]),
        (Task, {"title": "T", "policyId": "x"}, ["body: /policyId: names no policy that exists"]),
        (
            Task,
            {"title": "T", "policyId": f"policies-live-{BETA}", "assetId": "x"},
            ["body: /policyId: names a policy of another organization", "body: /assetId: names no asset that exists"],
        ),
        (
            Label,
            {"name": "L", "slug": "labels-live"},
            ["body: /slug: is taken by the stored row 'labels-live-org-alpha'"],
        ),
        (Task, {"title": "T", "shortId": 1}, ["body: /shortId: is taken by the stored row 'tasks-archived-org-alpha'"]),
        (
            Audit,
            {"name": "A", "frameworkId": "fw-foreign"},
            ["body: /frameworkId: names a framework of another organization"],
        ),
        (
            Finding,
            {"name": "F", "controlId": "foreign.A.1"},
            ["body: /controlId: names a control of another organization"],
        ),
    ],
)
def test_faults_have_their_place_in_the_body(
    database: Database, kind: type[Restorable], values: dict[str, Any], expected: list[str]
) -> None:
    before = world.contents(database)
    with pytest.raises(FaultyInput) as caught:
        made(database, kind, **values)
    assert told(caught) == expected
    assert world.contents(database) == before


def test_what_is_centralized_or_of_the_same_organization_may_be_named(database: Database) -> None:
    made(database, Finding, name="F", controlId="star.A.3", auditId=f"audits-live-{ALPHA}")
    assert stored.row(database, Finding, "new")["control_id"] == "star.A.3"


# --- For somebody


def test_a_request_creates_what_it_declares(database: Database, database_url: str) -> None:
    values = {"id": "new", "title": "New", "assigneeMemberId": "member-viewer"}
    row = requested(database_url, Task, lambda unit: create(unit, Task, values))
    [event] = stored.everything(database)["audit_event"]
    assert (event["action"], event["entity_id"], event["user_id"]) == ("create", row["id"], "user-editor")


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        (Task, {"policyId": f"policies-live-{BETA}"}, "body: /policyId: names no policy that exists"),
        (Task, {"assigneeMemberId": "member-foreigner"}, "body: /assigneeMemberId: names no membership that exists"),
        (Task, {"controlCoverageId": "say-foreign"}, "body: /controlCoverageId: names no control coverage that exists"),
        (Finding, {"controlId": "foreign.A.1"}, "body: /controlId: names no control that exists"),
        (Audit, {"frameworkId": "fw-foreign"}, "body: /frameworkId: names no framework that exists"),
    ],
)
def test_what_the_caller_cannot_see_does_not_exist(
    database_url: str, kind: type[Restorable], values: dict[str, Any], expected: str
) -> None:
    with pytest.raises(FaultyInput) as caught:
        requested(database_url, kind, lambda unit: create(unit, kind, {"id": "new", kind.title_column(): "T"} | values))
    assert told(caught) == [expected]


# --- The price


class Counted:
    """The rows that a unit of work reads from here on."""

    def __init__(self, unit: UnitOfWork) -> None:
        self.rows = self.statements = 0
        rows = unit.rows

        def count(statement: Statement, parameters: Parameters = NO_PARAMETERS) -> list[Any]:
            found = rows(statement, parameters)
            self.rows += len(found)
            self.statements += 1
            return found

        unit.rows = count  # type: ignore[method-assign]


@pytest.fixture
def crowded(database: Database) -> Database:
    """The world with two thousand more tasks, half of them with one title."""
    tasks = [{"id": f"t{n}", "organizationId": ALPHA, "title": "Same" if n % 2 else f"Task {n}"} for n in range(2_000)]
    world.load(database, {"tasks": tasks})
    return database


@pytest.mark.parametrize(("title", "slug", "most"), [("New", "new", 5), ("Same", "same-1001", 1_010)])
def test_one_row_reads_no_more_than_collides_with_it(crowded: Database, title: str, slug: str, most: int) -> None:
    """The number of statements grows with the logarithm of the slugs that are taken, the rows with the slugs."""

    def work(unit: UnitOfWork) -> tuple[str, Counted]:
        counted = Counted(unit)
        row = create(unit, Task, {"id": "new", "title": title, "policyId": f"policies-live-{ALPHA}"})
        return row["slug"], counted

    made_slug, counted = change(crowded, work)
    assert made_slug == slug
    assert counted.rows <= most
    assert counted.statements <= 20


def test_a_load_of_one_control_reads_no_other_controls(database: Database) -> None:
    controls = [
        {"id": f"c{n}", "frameworkId": "fw-old", "name": "C", "parentId": f"c{n // 100}" if n >= 100 else None}
        for n in range(2_000)
    ]
    world.load(database, {"controls": controls})
    added = {"controls": [{"id": "new", "frameworkId": "fw-old", "name": "New", "parentId": "c1999"}]}

    def work(unit: UnitOfWork) -> int:
        counted = Counted(unit)
        loading.load(unit, world.rows(added))
        return counted.rows

    assert change(database, work) <= 20


# --- At once


def meanwhile(url: str, statement: str) -> None:
    """Have somebody else change something, and wait until it is durable."""

    def work() -> None:
        with closing(open_url(url)) as other:
            tamper(other, statement)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result(30)


@pytest.mark.parametrize(
    ("values", "sql", "expected"),
    [
        pytest.param(
            {"policyId": "policy"},
            "DELETE FROM policy WHERE id = 'policy'",
            ["body: /policyId: names no policy that exists"],
            id="the row that it refers to goes",
        ),
        pytest.param(
            {"slug": "wanted"},
            f"UPDATE task SET slug = 'wanted' WHERE id = 'tasks-live-{ALPHA}'",
            [f"body: /slug: is taken by the stored row 'tasks-live-{ALPHA}'"],
            id="its slug is taken",
        ),
        pytest.param(
            {}, f"UPDATE task SET slug = 'new' WHERE id = 'tasks-live-{ALPHA}'", [], id="its free slug is taken"
        ),
    ],
)
def test_what_changes_between_the_check_and_the_commit_is_found(
    postgres_url: str, values: dict[str, Any], sql: str, expected: list[str]
) -> None:
    """The database notices at the commit; the unit of work is run again, and then the rules find it.

    On SQLite nobody changes anything while a unit of work runs.
    """
    with closing(open_url(postgres_url)) as database:
        world.load(database, {"policies": [{"id": "policy", "organizationId": ALPHA, "title": "P"}]})
    attempts = 0

    def work(unit: UnitOfWork) -> dict[str, Any]:
        nonlocal attempts
        attempts += 1
        execute_many = unit.execute_many

        def write_later(statement: Statement, parameters: Sequence[Parameters]) -> None:
            if attempts == 1:
                meanwhile(postgres_url, sql)
            execute_many(statement, parameters)

        unit.execute_many = write_later  # type: ignore[method-assign]
        return create(unit, Task, {"id": "new", "title": "New"} | values)

    if expected:
        with pytest.raises(FaultyInput) as caught:
            requested(postgres_url, Task, work)
        assert told(caught) == expected
    else:
        assert requested(postgres_url, Task, work)["slug"] == "new-2"
    assert attempts == 2
