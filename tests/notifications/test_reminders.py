"""Reminders: a week before a date and on its day, once each, told by the service itself."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from structlog.testing import capture_logs

from normata.app import create_app
from normata.core.changes import job_runner
from normata.core.changes.job_runner import JobRunner
from normata.core.changes.jobs import Job
from normata.core.db.opening import open_database
from normata.core.db.types import format_timestamp
from normata.identity.organization_lookup import NEXT_ORGANIZATIONS
from normata.notifications import reminders
from normata.notifications.model import Notification, Reminder
from normata.notifications.reminders import REMINDERS
from normata.records.base import Restorable
from normata.records.due.queries import due_dates
from normata.records.kinds import Audit, Finding, Incident, Record, RiskReview, Task
from normata.settings import Settings
from normata.wiring import changes_of
from tests import stored
from tests.databases import on_both
from tests.records.restoring import camel
from tests.served import Served
from tests.world import ALPHA, BETA

DUE = "2026-06-15T16:00:00.000Z"
LATER = "2026-09-15T16:00:00.000Z"
# The reminders of a date in June, by the day on which a round is made: what has not been told yet is told then.
ROUNDS = {
    "2026-06-07T23:59:59.999Z": [],
    "2026-06-08T00:00:00.000Z": ["record.due_soon"],
    "2026-06-11T12:00:00.000Z": ["record.due_soon"],
    "2026-06-14T23:59:59.999Z": ["record.due_soon"],
    "2026-06-15T00:00:00.000Z": ["record.due_now"],
    "2026-06-15T23:00:00.000Z": ["record.due_now"],
    "2026-06-16T23:59:59.999Z": ["record.due_now"],
    "2026-06-17T00:00:00.000Z": [],
}


@pytest.fixture(scope="module", autouse=True)
def idle_service() -> Iterator[None]:
    """The service that the tests share a database with would do their jobs, with another clock."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(job_runner, "_PAUSE", 3_600)
        yield


async def _rounds(url: str, moments: list[str], processes: int = 1) -> None:
    databases = [open_database(Settings(database_url=url), serving=True) for _ in range(processes)]
    try:
        for moment in moments:
            runners = [
                JobRunner(one, changes_of(one), [REMINDERS], NEXT_ORGANIZATIONS, clock=partial(str, moment))
                for one in databases
            ]
            await asyncio.gather(*(one.find() for one in runners))
            await asyncio.gather(*(one.do_due() for one in runners))
    finally:
        for one in databases:
            await one.aclose()


def remind(service: Served, *moments: str, processes: int = 1) -> int:
    """Remind at these moments, with the rights of the service, and return how many reminders there were."""
    before = len(stored.rows(service.database, Reminder))
    asyncio.run(_rounds(service.url, [*moments], processes))
    assert stored.rows(service.database, Job) == []
    return len(stored.rows(service.database, Reminder)) - before


def add(service: Served, kind: type[Restorable], row_id: str, **values: Any) -> None:
    """Load a live record that alpha's viewer answers for."""
    least = {"id": row_id, "organizationId": ALPHA, kind.title_column(): row_id, **values}
    if kind.responsible is not None:
        least = {camel(kind.responsible): "member-viewer"} | least
    service.load({kind.path: [least]})


def told(service: Served) -> list[dict[str, Any]]:
    """The reminders that have been sent, oldest first."""
    return [row for row in stored.rows(service.database, Notification) if row["type"].startswith("record.due_")]


@pytest.mark.parametrize("moment", ROUNDS)
def test_when_somebody_is_told(moment: str, service: Served) -> None:
    """The world's own records were due months before: of what is long past nobody is told."""
    add(service, Task, "task", deadline=DUE)
    assert remind(service, moment) == len(ROUNDS[moment])
    assert [row["type"] for row in told(service)] == ROUNDS[moment]


@on_both
def test_where_the_time_matters_the_hours_count(service: Served) -> None:
    add(service, Incident, "breach", notificationDeadline="2026-06-15T10:00:00Z")
    for moment, expected in (
        ("2026-06-08T12:00", []),
        ("2026-06-14T09:59", []),
        ("2026-06-14T10:01", ["record.due_soon"]),
        ("2026-06-15T05:59", ["record.due_soon"]),
        ("2026-06-15T06:01", ["record.due_soon", "record.due_now"]),
        ("2026-06-15T12:00", ["record.due_soon", "record.due_now"]),
    ):
        remind(service, f"{moment}:00.000Z")
        assert [row["type"] for row in told(service)] == expected, moment


@on_both
def test_each_once_and_after_a_change_of_the_date_again(service: Served) -> None:
    add(service, Task, "task", deadline=DUE)
    days = [f"2026-06-{day:02}T12:00:00.000Z" for day in range(1, 25)]
    assert remind(service, *days, *days) == 2
    assert [row["type"] for row in told(service)] == ["record.due_soon", "record.due_now"]
    service.load({"tasks": [{"id": "task", "deadline": "2026-06-20T08:00:00Z", "title": "Other"}]})
    assert remind(service, *days, *days) == 2
    service.load({"tasks": [{"id": "task", "assigneeMemberId": "member-admin"}]})
    assert remind(service, *days) == 0
    assert {row["user_id"] for row in told(service)} == {"user-viewer"}


@pytest.mark.parametrize("date", [pytest.param(one, id=f"{one.kind.path}-{one.column}") for one in due_dates()])
def test_of_every_date_of_every_kind(date: Any, shared: Served) -> None:
    """What is told says what it is about; where nobody answers for the record, nobody is told."""
    row_id = f"{date.kind.path} {date.column}"
    add(shared, date.kind, row_id, **{camel(date.column): DUE})
    before = stored.rows(shared.database, Notification)
    moment = "2026-06-14T23:00:00.000Z" if date.has_time else "2026-06-09T01:00:00.000Z"
    assert remind(shared, moment) == (date.kind.responsible is not None)
    new = [row for row in stored.rows(shared.database, Notification) if row not in before]
    if date.kind.responsible is None:
        assert date.kind in (Finding, Audit)
        assert new == []
        return
    (row,) = new
    assert (row["user_id"], row["organization_id"], row["category"]) == ("user-viewer", ALPHA, date.kind.topic)
    assert row["payload"]["params"] == {"label": row_id, "dueOn": "2026-06-15", "dueAt": DUE}
    assert row["payload"]["entityId"] == row_id
    assert row["payload"]["titleKey"].endswith(f".{date.column}_soon.title")
    response = shared.client.get(
        row["payload"]["url"], params={"organizationId": ALPHA}, headers=shared.bearer("viewer", scope="read")
    )
    assert (response.status_code, response.json()["id"]) == (200, row_id)


@on_both
def test_of_an_audit_its_owner_is_told_until_it_has_started(service: Served) -> None:
    for row_id, started in (("timed", "2026-06-15T08:00:00Z"), ("plain", "2026-06-15")):
        add(service, Audit, row_id, started=started)
        owns = {"fromKind": "memberships", "fromId": "member-viewer", "toKind": "audits", "toId": row_id}
        service.load({"links": [{"id": f"owns {row_id}", "organizationId": ALPHA, "relation": "OWNS", **owns}]})
    for moment, expected in (
        ("2026-06-07T23:59", 0),
        ("2026-06-09T12:00", 2),
        ("2026-06-15T07:59", 2),
        ("2026-06-15T08:00", 0),
    ):
        assert remind(service, f"{moment}:00.000Z") == expected, moment
    service.load({"audits": [{"id": "timed", "name": "Moved", "started": "2026-06-15T07:00:00Z"}]})
    assert remind(service, "2026-06-15T08:00:00.000Z") == 0


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (Task, {"deadline": LATER, "status": "DONE"}),
        (Task, {"deadline": LATER, "archivedAt": "2026-06-01"}),
        (Task, {"deadline": LATER, "assigneeMemberId": None}),
        (RiskReview, {"deadline": LATER, "finishedAt": "2026-06-01"}),
        (Incident, {"notificationDeadline": LATER, "authorityNotifiedAt": "2026-06-01"}),
        (Record, {"dueDate": LATER, "status": "FINALIZED"}),
    ],
)
def test_of_what_is_done_nobody_is_told(kind: type[Restorable], values: dict[str, Any], shared: Served) -> None:
    add(shared, kind, f"done {len(stored.rows(shared.database, kind))}", **values)
    assert remind(shared, LATER) == 0


def test_two_dates_of_one_record_are_two_things(service: Served) -> None:
    add(service, Record, "both", dueDate=DUE, nextReviewAt=DUE)
    assert remind(service, "2026-06-15T12:00:00.000Z") == 2
    keys = {row["payload"]["titleKey"] for row in told(service)}
    assert keys == {f"notifications.record.{name}_now.title" for name in ("due_date", "next_review_at")}


@on_both
def test_of_several_processes_one_tells(service: Served) -> None:
    """In many organizations, too: they are gone through in steps."""
    names = [f"more-{number:03}" for number in range(130)]
    service.load(
        {
            "organizations": [{"id": name, "name": name, "slug": name} for name in names],
            "memberships": [
                {"id": f"in-{name}", "organizationId": name, "userId": "user-viewer", "role": "viewer"}
                for name in names
            ],
            "tasks": [
                {"id": f"{name}-{number}", "organizationId": name, "title": "T", "deadline": DUE}
                | {"assigneeMemberId": f"in-{name}"}
                for name in names[::10]
                for number in range(3)
            ],
        }
    )
    assert remind(service, "2026-06-15T12:00:00.000Z", processes=3) == 39
    assert len(told(service)) == 39
    reminded = stored.everything(service.database)[str(Reminder.__tablename__)]
    assert {(row["record_id"], row["which"]) for row in reminded} == {
        (f"{name}-{number}", "now") for name in names[::10] for number in range(3)
    }


@on_both
def test_more_than_fit_one_transaction(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reminders, "AT_ONCE", 3)
    reminders._rows.cache_clear()
    try:
        for number in range(8):
            add(service, Task, f"task-{number}", deadline=DUE)
        assert remind(service, "2026-06-15T12:00:00.000Z") == 8
    finally:
        reminders._rows.cache_clear()


def test_in_another_organization_its_own_member_is_told(service: Served) -> None:
    service.load(
        {
            "tasks": [
                {"id": "beta", "organizationId": BETA, "title": "T", "deadline": DUE}
                | {"assigneeMemberId": "member-foreigner"}
            ]
        }
    )
    assert remind(service, "2026-06-15T12:00:00.000Z") == 1
    (row,) = told(service)
    assert (row["organization_id"], row["user_id"]) == (BETA, "user-foreigner")


@pytest.mark.long
@on_both
def test_the_running_service_does_it_by_itself(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """And goes on after a round that failed."""
    in_three_days = format_timestamp(datetime.now(UTC) + timedelta(days=3))
    add(service, Task, "task", deadline=in_three_days)
    monkeypatch.setattr(job_runner, "_PAUSE", 0.01)
    monkeypatch.setattr(job_runner, "_FIND_EVERY", 0.01)
    finds = JobRunner.find
    rounds = 0

    async def find(runner: JobRunner) -> None:
        nonlocal rounds
        rounds += 1
        if rounds == 1:
            raise LookupError
        await finds(runner)

    monkeypatch.setattr(JobRunner, "find", find)
    app = create_app(Settings(database_url=service.url, log_level="error"))

    async def run() -> None:
        async with app.router.lifespan_context(app):
            for _ in range(3_000):
                if await asyncio.to_thread(told, service):
                    return
                await asyncio.sleep(0.01)

    with capture_logs() as logs:
        asyncio.run(run())
    assert [row["type"] for row in told(service)] == ["record.due_soon"]
    assert [line["event"] for line in logs if line["log_level"] == "error"] == ["jobs_failed"]


@on_both
def test_of_the_review_of_an_assessment(service: Served) -> None:
    """Its owner is reminded of it as of a date of a record."""
    row = {"id": "say-sun.A.2", "organizationId": ALPHA, "controlId": "sun.A.2", "ownerId": "member-viewer"}
    service.load({"controlCoverages": [row | {"reviewBy": DUE}]})
    assert remind(service, "2026-06-09T01:00:00.000Z", "2026-06-15T01:00:00.000Z", "2026-06-15T02:00:00.000Z") == 2
    found = [(row["user_id"], row["type"], row["payload"]["entityId"]) for row in told(service)]
    assert found == [("user-viewer", f"record.due_{which}", "sun.A.2") for which in ("soon", "now")]
