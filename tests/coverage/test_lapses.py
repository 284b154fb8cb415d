"""Assessments whose review was missed: they are stale, and lapse where their organization wants that."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from normata.app import create_app
from normata.core.changes import job_runner
from normata.core.changes.job_runner import JobRunner
from normata.core.changes.jobs import Job
from normata.core.db.database import Database
from normata.core.db.opening import open_database
from normata.core.db.types import format_timestamp, now
from normata.coverage import lapses
from normata.coverage.lapses import LAPSES
from normata.events.model import AuditEvent
from normata.frameworks.model import ControlCoverage
from normata.identity.organization_lookup import NEXT_ORGANIZATIONS
from normata.notifications.model import Notification
from normata.settings import Settings
from normata.wiring import changes_of
from tests import mostly_sqlite, stored
from tests.client import TestClient
from tests.coverage.assessing import Json, Stating, assert_consistent, done, faults
from tests.databases import on_both, tamper
from tests.served import refused
from tests.world import ALPHA

database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url

REVIEW_BY, DUE_AT = "2026-06-15", "2026-06-16T00:00:00.000Z"  # a plain date passes when its day ends
BEFORE = "2026-06-15T23:59:59.999Z"
CONTROL, MATCHED = "sun.A.2", "moon.A.2"  # FULL leads from one to the other
Bearer = Callable[..., dict[str, str]]


@pytest.fixture(scope="module", autouse=True)
def idle_service() -> Iterator[None]:
    """The service that the tests share a database with would do their jobs, with another clock."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(job_runner, "_PAUSE", 3_600)
        yield


@pytest.fixture
def alpha(client: TestClient, bearer: Bearer) -> Stating:
    """The coverage of the organization alpha, in the hands of its admin, who may change the organization as well."""
    return Stating(client, bearer("admin", scope="admin"))


def assessed(database: Database, control: str = CONTROL, **values: Any) -> None:
    """Load an assessment of a long time ago whose review is due in June."""
    row = {"id": f"say-{control}", "organizationId": ALPHA, "controlId": control, "coverageStatus": "FULL"}
    dates = {"assessedAt": "2026-01-01", "reviewBy": REVIEW_BY}
    stored.load(database, {"controlCoverages": [row | dates | values]})


def assessment(database: Database, control: str = CONTROL) -> dict[str, Any]:
    (row,) = stored.rows(database, ControlCoverage, control_id=control)
    return row


def run(url: str, moment: str, processes: int = 1) -> None:
    """Have processes look for jobs and do them, at a moment."""

    async def work() -> None:
        databases = [open_database(Settings(database_url=url), serving=True) for _ in range(processes)]
        runners = [
            JobRunner(one, changes_of(one), [LAPSES], NEXT_ORGANIZATIONS, clock=partial(str, moment))
            for one in databases
        ]
        try:
            await asyncio.gather(*(one.find() for one in runners))
            await asyncio.gather(*(one.do_due() for one in runners))
        finally:
            for one in databases:
                await one.aclose()

    asyncio.run(work())


def choose(alpha: Stating, what: str) -> None:
    """Change what becomes of stale assessments."""
    response = alpha.client.patch(f"/organizations/{ALPHA}/", json={"staleAssessments": what}, headers=alpha.headers)
    assert done(response)["staleAssessments"] == what


def confirm(alpha: Stating, control: str = CONTROL, **body: Any) -> Any:
    return alpha._send("POST", f"/controls/{control}/coverage/confirm/", body)


def coverage(alpha: Stating, control: str = CONTROL) -> Json:
    found: Json = done(alpha.control(control))["coverage"]
    return found


def events(database: Database, *actions: str) -> list[str]:
    found = sorted(stored.rows(database, AuditEvent), key=lambda row: (row["at"], row["id"]))
    return [row["action"] for row in found if row["action"] in actions]


def stale_controls(alpha: Stating) -> list[str]:
    query = {"isStale": "true"}
    return [item["id"] for item in done(alpha._send("GET", "/coverage/", query=query))["items"]]


# --- Stale


@on_both
def test_an_assessment_is_stale_from_the_moment_of_its_review(alpha: Stating, database: Database) -> None:
    assessed(database)
    stale = [{"reason": "REVIEW_OVERDUE", "since": DUE_AT}]
    assert coverage(alpha)["stale"] == stale
    assert done(alpha.explanation(CONTROL))["assessment"]["stale"] == stale
    assert stale_controls(alpha) == [CONTROL]
    assert coverage(alpha)["coverageStatus"] == "FULL", "it is only shown"
    statement = done(alpha._send("GET", "/frameworks/fw-sun/statement-of-applicability/"))
    entries = [*statement["controls"], *statement["mandatory"]["requirements"]]
    assert {entry["id"]: entry["stale"] for entry in entries if entry["stale"]} == {CONTROL: stale}
    assert CONTROL not in [
        item["id"] for item in done(alpha._send("GET", "/coverage/", query={"isStale": "false"}))["items"]
    ]
    later = format_timestamp(datetime.now(UTC) + timedelta(seconds=100))
    assessed(database, reviewBy=later)
    assert coverage(alpha)["stale"] == []
    assert stale_controls(alpha) == []


@on_both
def test_to_confirm_needs_a_later_review_and_ends_it(alpha: Stating, database: Database) -> None:
    assessed(database)
    before = stored.everything(database)
    [(name, message)] = faults(confirm(alpha))
    assert (name, message.startswith("is required")) == ("reviewBy", True)
    assert faults(confirm(alpha, reviewBy="2026-06-16")) == [("reviewBy", "must be in the future")]
    assert stored.everything(database) == before
    answer = done(confirm(alpha, reviewBy="2031-01-01"))["coverage"]
    assert (answer["stale"], answer["coverageStatus"], answer["reviewBy"][:10]) == ([], "FULL", "2031-01-01")
    assert answer["assessedAt"] == answer["updatedAt"] > "2026-06-16"
    assert stale_controls(alpha) == []
    assert events(database, "confirm") == ["confirm"]
    assert done(confirm(alpha))["coverage"]["reviewBy"] == answer["reviewBy"], "it has not passed"


def test_who_may_confirm_and_what(alpha: Stating, database: Database, client: TestClient, bearer: Bearer) -> None:
    assessed(database)
    viewer = Stating(client, bearer("viewer"))
    refused(confirm(viewer, reviewBy="2031-01-01"), 403, "forbidden")
    assert done(confirm(Stating(client, bearer("editor")), reviewBy="2031-01-01"))
    refused(confirm(alpha, "sun.A.5"), 409, "not_assessed")
    refused(confirm(alpha, "star.A.4"), 404, "not_found")


@on_both
@pytest.mark.parametrize(
    ("said", "stays"),
    [
        ({"note": "N"}, True),
        ({"ownerId": "member-viewer"}, True),
        ({"coverageGap": "G"}, True),
        ({"coverageStatus": "FULL"}, True),
        ({"coverageStatus": "PARTIAL"}, False),
        ({"coverageStatus": None}, True),
        ({"reviewBy": "2031-01-01"}, False),
        ({"reviewBy": None}, False),
    ],
)
def test_what_ends_it(alpha: Stating, database: Database, said: Json, stays: bool) -> None:
    assessed(database)
    done(alpha.patch({"controlId": CONTROL, **said}))
    ended = coverage(alpha)["stale"] == []
    assert ended is (not stays or ("coverageStatus" in said and said["coverageStatus"] is None))


def test_a_load_of_another_status_ends_it_and_of_anything_else_does_not(alpha: Stating, database: Database) -> None:
    assessed(database)
    row = {"id": f"say-{CONTROL}", "note": "N"}
    stored.load(database, {"controlCoverages": [row]})
    assert stale_controls(alpha) == [CONTROL]
    stored.load(database, {"controlCoverages": [row | {"coverageStatus": "NONE"}]})
    assert stale_controls(alpha) == []


# --- Lapses


@on_both
def test_where_the_organization_wants_it_the_status_counts_no_more(
    alpha: Stating, database: Database, database_url: str
) -> None:
    assessed(database)
    assert alpha.effective()[MATCHED] == "FULL"
    run(database_url, now())
    assert events(database, "lapse") == [], "it flags, by default"
    choose(alpha, "LAPSE")
    tamper(database, "DELETE FROM job")  # it is due now, and below it is June
    run(database_url, BEFORE)
    assert assessment(database)["coverage_status"] == "FULL"
    notices = len(stored.rows(database, Notification))
    run(database_url, DUE_AT)
    listed = alpha.listed()
    assert listed[CONTROL]["coverage"]["coverageStatus"] == "NONE"
    assert (listed[CONTROL]["effectiveCoverageStatus"], listed[MATCHED]["effectiveCoverageStatus"]) == ("NONE", "NONE")
    shown = coverage(alpha)
    assert (shown["coverageStatus"], shown["lapsedStatus"], shown["lapsedAt"]) == (None, "FULL", DUE_AT)
    assert shown["stale"] == [{"reason": "REVIEW_OVERDUE", "since": DUE_AT}]
    assert_consistent(database)
    (event,) = (row for row in stored.rows(database, AuditEvent) if row["action"] == "lapse")
    assert (event["user_id"], f'"lapsedAt":"{DUE_AT}"' in event["body"]) == (None, True)
    new = stored.rows(database, Notification)[notices:]
    told = [row for row in stored.rows(database, Notification) if row["type"] == "coverage.lost"]
    assert {row["user_id"] for row in told} == {"user-admin", "user-owner"}
    assert all("sun control 2" in row["payload"]["params"]["controls"] for row in told)
    assert len(new) == len(told)
    before = stored.everything(database)
    run(database_url, now())
    assert stored.everything(database) == before, "once"


@on_both
def test_what_is_excluded_stays_excluded(alpha: Stating, database: Database, database_url: str) -> None:
    assessed(database, isApplicable=False, justification="No sites.")
    choose(alpha, "LAPSE")
    run(database_url, now())
    assert (coverage(alpha)["isApplicable"], coverage(alpha)["coverageStatus"]) == (False, None)
    assert_consistent(database)


@on_both
def test_what_was_assessed_after_its_review_was_due_does_not_lapse(
    alpha: Stating, database: Database, database_url: str
) -> None:
    assessed(database, assessedAt=DUE_AT)
    choose(alpha, "LAPSE")
    run(database_url, now())
    assert assessment(database)["coverage_status"] == "FULL"
    assert stale_controls(alpha) == []


@on_both
def test_to_flag_again_has_what_has_lapsed_count_again(alpha: Stating, database: Database, database_url: str) -> None:
    assessed(database)
    effective = alpha.effective()
    for _ in range(2):
        choose(alpha, "LAPSE")
        run(database_url, now())
        assert assessment(database)["lapsed_status"] == "FULL"
        choose(alpha, "FLAG")
        run(database_url, now())
        row = assessment(database)
        assert (row["coverage_status"], row["lapsed_status"], row["lapsed_at"]) == ("FULL", None, None)
        assert alpha.effective() == effective
        assert stale_controls(alpha) == [CONTROL]
        assert_consistent(database)
    assert events(database, "lapse", "reinstate") == ["lapse", "reinstate"] * 2


@on_both
@pytest.mark.parametrize("how", ["confirm", "patch", "clear", "note"])
def test_what_ends_a_lapse(alpha: Stating, database: Database, database_url: str, how: str) -> None:
    assessed(database)
    effective = alpha.effective()
    choose(alpha, "LAPSE")
    run(database_url, now())
    if how == "confirm":
        assert done(confirm(alpha, reviewBy="2031-01-01"))["effectiveCoverageStatus"] == "FULL"
        assert alpha.effective() == effective
    elif how == "patch":
        done(alpha.patch({"controlId": CONTROL, "coverageStatus": "FULL"}))
        assert alpha.effective() == effective
    elif how == "clear":
        done(alpha.delete(CONTROL))
    else:
        done(alpha.patch({"controlId": CONTROL, "note": "N", "reviewBy": "2031-01-01"}))
        assert coverage(alpha)["lapsedStatus"] == "FULL"
        assert stale_controls(alpha) == [CONTROL]
        return
    shown = coverage(alpha)
    assert (shown["lapsedStatus"], shown["lapsedAt"], shown["stale"]) == (None, None, [])
    assert_consistent(database)
    run(database_url, now())
    assert events(database, "lapse") == ["lapse"]


@on_both
def test_to_undo_another_status_confirms_nothing(alpha: Stating, database: Database, database_url: str) -> None:
    assessed(database)
    for choice, lapsed in (("FLAG", None), ("LAPSE", "FULL")):
        choose(alpha, choice)
        run(database_url, now())
        before = coverage(alpha) | {"updatedAt": ""}
        assert (before["lapsedStatus"], len(before["stale"])) == (lapsed, 1)
        change = done(alpha.patch({"controlId": CONTROL, "coverageStatus": "PARTIAL"}))["changeId"]
        assert coverage(alpha)["stale"] == []
        done(alpha._send("POST", "/controls/coverage/undo/", {"changeId": change}))
        assert coverage(alpha) | {"updatedAt": ""} == before
    assert_consistent(database)


@on_both
def test_more_than_fit_one_transaction_and_several_processes(
    alpha: Stating, database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lapses, "AT_ONCE", 2)
    monkeypatch.setattr(lapses, "_OVERDUE", lapses._OVERDUE.limit(2))
    controls = [f"sun.A.{number}" for number in range(1, 6)]
    for control in controls:
        assessed(database, control)
    choose(alpha, "LAPSE")
    run(database_url, now(), processes=3)
    assert [assessment(database, one)["lapsed_status"] for one in controls] == ["FULL"] * 5
    assert events(database, "lapse") == ["lapse"] * 5
    assert stored.rows(database, Job) == []
    assert_consistent(database)


@on_both
def test_lapse_and_confirmation_at_once(alpha: Stating, database: Database, database_url: str) -> None:
    """Whoever comes second sees what the first has done: in the end it is confirmed, and counts."""
    choose(alpha, "LAPSE")
    for _ in range(6):
        assessed(database, coverageStatus="FULL")
        with ThreadPoolExecutor(1) as thread:
            lapsing = thread.submit(run, database_url, now())
            done(confirm(alpha, reviewBy="2031-01-01"))
            lapsing.result()
        shown = coverage(alpha)
        assert (shown["coverageStatus"], shown["lapsedStatus"], shown["stale"]) == ("FULL", None, [])
        assert alpha.effective()[MATCHED] == "FULL"
        assert_consistent(database)


@on_both
def test_a_clock_that_jumps(alpha: Stating, database: Database, database_url: str) -> None:
    """What lapsed while it was ahead stays lapsed until it is confirmed; nothing else changes when it goes back."""
    assessed(database)
    choose(alpha, "LAPSE")
    for moment in (BEFORE, "2031-06-16T00:00:00.000Z", BEFORE, now()):
        run(database_url, moment)
    assert events(database, "lapse") == ["lapse"]
    assert coverage(alpha)["lapsedAt"] == DUE_AT
    assert_consistent(database)


@on_both
def test_a_dump_has_what_has_lapsed(alpha: Stating, database: Database, database_url: str) -> None:
    assessed(database)
    choose(alpha, "LAPSE")
    run(database_url, now())
    before = assessment(database)
    stored.load(
        database,
        {
            "controlCoverages": [
                {"id": f"say-{CONTROL}", "coverageStatus": None, "lapsedStatus": "FULL", "lapsedAt": DUE_AT}
            ]
        },
    )
    assert assessment(database) == before
    tamper(database, f"UPDATE organization SET stale_assessments = 'FLAG' WHERE id = '{ALPHA}'")
    run(database_url, now())
    assert assessment(database)["coverage_status"] == "FULL"


@pytest.mark.long
@on_both
def test_the_running_service_does_it_by_itself(
    database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within a minute of the moment: it looks every 20 seconds, and does what it finds within a second."""
    assert job_runner._FIND_EVERY * 1.25 < 59
    monkeypatch.setattr(job_runner, "_PAUSE", 0.01)
    monkeypatch.setattr(job_runner, "_FIND_EVERY", 0.01)
    due = datetime.now(UTC) + timedelta(seconds=1)
    assessed(database, reviewBy=format_timestamp(due))
    tamper(database, f"UPDATE organization SET stale_assessments = 'LAPSE' WHERE id = '{ALPHA}'")
    app = create_app(Settings(database_url=database_url, log_level="error"))

    async def wait() -> None:
        async with app.router.lifespan_context(app):
            for _ in range(3_000):
                if (await asyncio.to_thread(assessment, database))["lapsed_status"] is not None:
                    assert datetime.now(UTC) >= due
                    return
                await asyncio.sleep(0.01)

    asyncio.run(wait())
    assert assessment(database)["lapsed_at"] == format_timestamp(due)
