"""Forgetting: what is over goes after as many days as the settings say, and nothing else does."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import bindparam, delete, func, insert, select

from normata.core.changes import job_runner
from normata.core.changes.job_runner import JobRunner
from normata.core.changes.jobs import Job
from normata.core.db.database import Database
from normata.core.db.opening import open_database
from normata.core.db.transaction import TenantScope
from normata.core.db.types import format_timestamp, now
from normata.core.schema.table import Table, sql_table
from normata.events.model import AuditEvent
from normata.identity.model import AccessToken, Invitation
from normata.identity.sign_in_model import Session, SignInLink
from normata.notifications.model import Notification, OutgoingMail
from normata.records.assurance import VendorAssessment
from normata.retention import forgetting
from normata.retention.forgetting import AT_ONCE, FORGOTTEN, NAME, Forgotten, retention
from normata.settings import Settings
from normata.vendors.link_model import VendorLink
from tests import stored
from tests.core.changes.labelling import Clock, runners, waiting
from tests.databases import on_both, open_url
from tests.prepared import SeveralWorkers
from tests.served import Served
from tests.server import reserved_port, serve_command, wait_until_ready
from tests.world import ALPHA, BETA, record_id

NOW = "2026-02-01T12:00:00.000Z"
ALL = {"forget_mail": 20, "forget_notifications": 100, "forget_sessions": 10, "forget_tokens": 50}
FAR = "2126-01-01T00:00:00.000Z"
_NOTIFICATION = sql_table(Notification)
_LEFT = select(func.count()).where(_NOTIFICATION.c.id.like("n-%"))


@pytest.fixture(scope="module", autouse=True)
def idle_service() -> Iterator[None]:
    """The service that the tests share a database with would do their jobs, with another clock."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(job_runner, "_PAUSE", 3_600)
        yield


def ago(days: float, moment: str = NOW) -> str:
    return format_timestamp(datetime.fromisoformat(moment) - timedelta(days=days))


def forget(url: str, days: Mapping[str, int], moment: str = NOW, processes: int = 1) -> Counter[str]:
    """Have processes forget at a moment, with the rights of the service; how many rows of each table they count."""
    counted: Counter[str] = Counter()
    job_type = retention(
        Settings.model_validate({**dict.fromkeys(ALL, 0), **days}), lambda table, rows: counted.update({table: rows})
    )

    async def work(found: Sequence[JobRunner]) -> None:
        for one in found:
            await one.find()
        await asyncio.gather(*(one.do_due() for one in found))

    runners(url, work, job_type, clocks=[Clock(moment)] * processes)
    return counted


def add(database: Database, table: type[Table], *rows: dict[str, Any]) -> None:
    """Add rows, past all rules."""
    columns = sql_table(table).c
    statement = insert(sql_table(table)).values({one.name: bindparam(one.name, type_=one.type) for one in columns})
    every = [{one.name: row.get(one.name) for one in columns} for row in rows]
    database.write_now(lambda transaction: transaction.execute_many(statement, every))


def notification(row_id: str, read_at: str | None, organization_id: str = ALPHA) -> dict[str, Any]:
    values = {"id": row_id, "organization_id": organization_id, "user_id": "user-viewer", "type": "notice"}
    return values | {"category": "SYSTEM", "payload": {}, "read_at": read_at, "created_at": ago(1_000)}


def mail(row_id: str, ended_at: str | None, organization_id: str = ALPHA) -> dict[str, Any]:
    values = {"id": row_id, "organization_id": organization_id, "user_id": "user-viewer", "due_at": ago(1_000)}
    return values | {"attempts": 1, "ended_at": ended_at, "outcome": ended_at and "SENT"}


def session(row_id: str, user: str = "viewer", *, ended_at: str | None = None, expires_at: str = FAR) -> dict[str, Any]:
    values = {"id": row_id, "user_id": f"user-{user}", "digest": digest(row_id), "means": "link", "address": ""}
    values |= {"user_agent": "", "created_at": ago(1_000), "last_used_at": ago(1_000)}
    return values | {"ended_at": ended_at, "expires_at": expires_at}


def token(row_id: str, user_id: str = "user-viewer", **moments: str) -> dict[str, Any]:
    values = {"id": row_id, "user_id": user_id, "digest": digest(row_id), "scope": "read", "created_at": ago(1_000)}
    return values | moments


def link(row_id: str, used_at: str | None = None, expires_at: str = FAR) -> dict[str, Any]:
    values = {"id": row_id, "user_id": "user-nobody", "digest": digest(row_id), "created_at": ago(1_000)}
    return values | {"used_at": used_at, "expires_at": expires_at}


def invitation(row_id: str, **moments: str) -> dict[str, Any]:
    values = {"id": row_id, "organization_id": BETA, "email": f"{row_id}@x.example", "role": "viewer"}
    values |= {"email_folded": f"{row_id}@x.example", "digest": digest(row_id), "created_at": ago(1_000)}
    return values | {"expires_at": FAR} | moments


def vendor_link(row_id: str, revoked_at: str | None = None, expires_at: str = FAR) -> dict[str, Any]:
    values = {"id": row_id, "organization_id": BETA, "assessment_id": record_id(VendorAssessment, "sent", BETA)}
    values |= {"digest": digest(row_id), "created_at": ago(1_000)}
    return values | {"revoked_at": revoked_at, "expires_at": expires_at}


def digest(row_id: str) -> str:
    return sha256(f"of {row_id}".encode()).hexdigest()


def furnish(database: Database) -> dict[type[Table], set[str]]:
    """Add rows that are over, just or by far, and others; the ids of those that are."""
    add(database, Notification, notification("n-old", ago(101)), notification("n-other", ago(500), BETA))
    add(database, Notification, notification("n-new", ago(99)), notification("n-unread", None))
    add(database, OutgoingMail, mail("m-old", ago(21)), mail("m-other", ago(500), BETA))
    add(database, OutgoingMail, mail("m-new", ago(19)), mail("m-open", None))
    add(database, Session, session("s-ended", ended_at=ago(10.01)), session("s-expired", expires_at=ago(11)))
    add(database, Session, session("s-nobodys", "nobody", ended_at=ago(12)))
    add(database, Session, session("s-new", ended_at=ago(9.9)), session("s-open"))
    add(database, AccessToken, token("t-revoked", revoked_at=ago(51)), token("t-expired", expires_at=ago(51)))
    add(database, AccessToken, token("t-robot", f"robot-{BETA}", revoked_at=ago(51)))
    add(database, AccessToken, token("t-new", revoked_at=ago(49)), token("t-good", expires_at=FAR), token("t-endless"))
    add(database, SignInLink, link("l-used", ago(51)), link("l-expired", None, ago(51)))
    add(database, SignInLink, link("l-new", ago(49)), link("l-good"))
    add(
        database, Invitation, invitation("i-accepted", accepted_at=ago(51)), invitation("i-revoked", revoked_at=ago(51))
    )
    add(database, Invitation, invitation("i-expired", expires_at=ago(51)), invitation("i-new", revoked_at=ago(49)))
    add(database, VendorLink, vendor_link("v-revoked", ago(51)), vendor_link("v-expired", None, ago(51)))
    add(database, VendorLink, vendor_link("v-new", ago(49), ago(49)), vendor_link("v-open"))
    return {
        Notification: {"n-old", "n-other"},
        OutgoingMail: {"m-old", "m-other"},
        Session: {"s-ended", "s-expired", "s-nobodys"},
        AccessToken: {"t-revoked", "t-expired", "t-robot"},
        SignInLink: {"l-used", "l-expired"},
        Invitation: {"i-accepted", "i-revoked", "i-expired"},
        VendorLink: {"v-revoked", "v-expired"},
    }


def unread(service: Served) -> None:
    """The world has notifications that were read long ago; here they would be in the way."""
    service.sql("UPDATE notification SET read_at = NULL")


@on_both
def test_what_is_over_is_forgotten_and_nothing_else(service: Served) -> None:
    """No event, no leaf and no other table loses a row."""
    unread(service)
    over = furnish(service.database)
    before = stored.everything(service.database)
    events = stored.rows(service.database, AuditEvent)
    assert forget(service.url, ALL) == Counter({str(table.__tablename__): len(ids) for table, ids in over.items()})
    after = stored.everything(service.database)
    for table, ids in over.items():
        name = str(table.__tablename__)
        before[name] = [row for row in before[name] if row["id"] not in ids]
    assert after == before
    assert stored.rows(service.database, AuditEvent) == events
    assert forget(service.url, ALL) == Counter()


@on_both
@pytest.mark.parametrize("setting", ALL)
def test_each_setting_forgets_its_own_and_0_is_never(setting: str, service: Served) -> None:
    unread(service)
    over = furnish(service.database)
    assert forget(service.url, {}) == Counter()
    assert waiting(service.database) == []
    expected = {one.name: len(over[one.table]) for one in FORGOTTEN if one.days == setting}
    assert forget(service.url, {setting: ALL[setting]}) == Counter(expected)


def test_by_default_sessions_and_mail_are_forgotten_after_a_month_and_nothing_else() -> None:
    settings = Settings()
    assert {name: getattr(settings, name) for name in ALL} == {
        "forget_mail": 30,
        "forget_notifications": 0,
        "forget_sessions": 30,
        "forget_tokens": 0,
    }


@on_both
def test_lists_no_longer_have_what_is_forgotten(service: Served) -> None:
    add(service.database, AccessToken, token("t-old", revoked_at=ago(51)), token("t-new", revoked_at=ago(49)))
    unread(service)
    add(service.database, Notification, notification("n-old", ago(101)))
    tokens, notes = service.listing("/me/tokens/"), service.listing(f"/notifications/?organizationId={ALPHA}")
    assert {"t-old", "t-new"} <= {item["id"] for item in tokens.page(organizationId=None)["items"]}
    assert "n-old" in {item["id"] for item in notes.page()["items"]}
    before = tokens.page(organizationId=None)["total"], notes.page()["total"]
    assert forget(service.url, ALL) == Counter(access_token=1, notification=1)
    found = {item["id"] for item in tokens.page(organizationId=None)["items"]}
    assert "t-new" in found
    assert "t-old" not in found
    assert (tokens.page(organizationId=None)["total"] + 1, notes.page()["total"] + 1) == before


@on_both
def test_a_few_at_a_time_and_the_rest_after_the_jobs_of_others(
    service: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No transaction has more than some hundred rows, and no job more than so many transactions."""
    monkeypatch.setattr(forgetting, "STEPS", 2)
    unread(service)
    rows = [notification(f"n-{number:04}", ago(200)) for number in range(3 * AT_ONCE + 7)]
    add(service.database, Notification, *rows)
    counted: list[int] = []
    job_type = retention(Settings(forget_notifications=100), lambda _table, rows: counted.append(rows))
    attempts: list[str] = []

    async def work(found: Sequence[JobRunner]) -> None:
        await found[0].find()
        await found[0].do_due()

    runners(service.url, work, job_type, clocks=[Clock(NOW)], count=lambda name, _: attempts.append(name))
    assert counted == [AT_ONCE] * 3 + [7]
    assert attempts == [NAME] * 3
    assert not [row for row in stored.rows(service.database, Notification) if row["id"].startswith("n-0")]


@on_both
def test_of_two_processes_one_forgets_and_it_comes_again(service: Served) -> None:
    unread(service)
    add(service.database, Notification, *(notification(f"n-{number:04}", ago(200)) for number in range(500)))
    assert forget(service.url, {"forget_notifications": 100}, processes=3) == Counter(notification=500)
    (row,) = waiting(service.database)
    assert (row["owner"], row["type"], row["key"]) == ("", NAME, "")
    assert row["due_at"] == format_timestamp(datetime.fromisoformat(NOW) + forgetting.EVERY)
    add(service.database, Notification, notification("n-later", ago(200)))
    assert forget(service.url, {"forget_notifications": 100}, moment=ago(-0.2)) == Counter()
    assert forget(service.url, {"forget_notifications": 100}, moment=ago(-0.25)) == Counter(notification=1)


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
@pytest.mark.parametrize("one", FORGOTTEN, ids=lambda one: one.name)
def test_the_database_removes_only_what_is_in_scope(one: Forgotten, service: Served) -> None:
    """Each removal has the owners of its rows in scope; what is another's would stay, whatever a statement asks for."""
    unread(service)
    over = furnish(service.database)[one.table]
    table = sql_table(one.table)
    remove = delete(table).where(table.c.id.in_(sorted(over))).returning(table.c.id)
    owners = {str(row[one.owner]) for row in stored.rows(service.database, one.table) if row["id"] in over}

    async def removed(scope: TenantScope) -> int:
        serving = open_database(Settings(database_url=service.url), serving=True)
        try:
            return len(await serving.write(lambda transaction: transaction.rows(remove), scope))
        finally:
            await serving.aclose()

    assert asyncio.run(removed(one.scope(["somebody-else"]))) == 0
    assert asyncio.run(removed(one.scope(sorted(owners)))) == len(over)


@pytest.mark.long
@on_both
def test_a_killed_process_loses_nothing_and_another_goes_on(database_url: str, tmp_path: Path) -> None:
    """What was removed stays so, and what is left goes when the claim of the killed one has ended."""
    moment = format_timestamp(datetime.now(UTC))
    many = 10_000
    with closing(open_url(database_url)) as database, reserved_port() as port:
        add(database, Notification, *(notification(f"n-{number:04}", ago(200, moment)) for number in range(many)))
        add(database, Job, {"owner": "", "type": NAME, "key": "", "due_at": moment, "attempts": 0})

        def left() -> int:
            return int(database.read_now(lambda transaction: transaction.scalar(_LEFT)) or 0)

        environment = {name: value for name, value in os.environ.items() if not name.startswith("NORMATA_")}
        environment |= {"NORMATA_EVENT_KEY": str(tmp_path / "key"), "NORMATA_FORGET_NOTIFICATIONS": "100"}
        server = SeveralWorkers(
            serve_command(port, database_url, workers=2),
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            wait_until_ready(f"http://127.0.0.1:{port}", server)
            deadline = time.monotonic() + 60
            while left() == many:
                assert time.monotonic() < deadline
                time.sleep(0.01)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)
            server.wait()
        assert 0 < left() < many
        (row,) = stored.rows(database, Job)
        assert row["attempts"] == 1
        remaining, days = left(), {"forget_notifications": 100}
        assert forget(database_url, days, moment=now()) == Counter()
        later = format_timestamp(datetime.now(UTC) + timedelta(minutes=2))
        assert forget(database_url, days, moment=later)["notification"] >= remaining
        assert left() == 0
