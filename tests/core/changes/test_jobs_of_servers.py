"""Servers that do jobs are killed: each job is done once by those that are left, or that come after."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from normata.core.changes.jobs import Job, schedule
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.database import Database
from normata.core.db.types import format_timestamp, now
from normata.events.model import AuditEvent
from normata.notifications.model import Notification, Reminder
from tests import stored
from tests.databases import change, open_url
from tests.prepared import SeveralWorkers
from tests.server import reserved_port, serve_command, wait_until_ready

ORGANIZATIONS = [f"many-{number:03}" for number in range(80)]
TASKS = 3


def start(url: str, port: int, folder: Path) -> subprocess.Popen[bytes]:
    """A server with two workers, in a process group of its own, so that all of it can be killed at once."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NORMATA_")}
    return SeveralWorkers(
        serve_command(port, url, workers=2),
        env=environment | {"NORMATA_EVENT_KEY": str(folder / "key")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def kill(server: subprocess.Popen[bytes]) -> None:
    if server.poll() is None:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def reminded(database: Database) -> Counter[str]:
    return Counter(row["record_id"] for row in stored.rows(database, Reminder))


def end_claims(database: Database) -> None:
    """Let the minute pass that the claims of those who were killed last."""
    database.alter_now(
        lambda connection: connection.exec_driver_sql("UPDATE job SET due_at = '2026-01-01T00:00:00.000Z'")
    )


def schedule_reminders(unit: UnitOfWork) -> None:
    for organization_id in ORGANIZATIONS:
        schedule(unit, "reminders", organization_id, "", now())


@pytest.mark.long
def test_servers_that_are_killed_and_started_again(database_url: str, tmp_path: Path) -> None:
    soon = format_timestamp(datetime.now(UTC) + timedelta(days=3))
    tasks = [
        {"id": f"{name} {number}", "organizationId": name, "title": "T", "deadline": soon}
        | {"assigneeMemberId": f"in-{name}"}
        for name in ORGANIZATIONS
        for number in range(TASKS)
    ]
    with closing(open_url(database_url)) as database, ExitStack() as stack:
        stored.load(
            database,
            {
                "organizations": [{"id": name, "name": name, "slug": name} for name in ORGANIZATIONS],
                "memberships": [
                    {"id": f"in-{name}", "organizationId": name, "userId": "user-viewer", "role": "viewer"}
                    for name in ORGANIZATIONS
                ],
                "tasks": tasks,
            },
        )
        change(database, schedule_reminders)
        servers = []
        for folder in ("first", "second"):
            (tmp_path / folder).mkdir()
            port = stack.enter_context(reserved_port())
            servers.append(start(database_url, port, tmp_path / folder))
            stack.callback(kill, servers[-1])
        wait_until(lambda: len(reminded(database)) > TASKS)
        kill(servers[0])
        wait_until(lambda: len(reminded(database)) > TASKS * len(ORGANIZATIONS) // 3)
        kill(servers[1])
        end_claims(database)

        port = stack.enter_context(reserved_port())
        server = start(database_url, port, tmp_path / "first")
        stack.callback(kill, server)
        wait_until_ready(f"http://127.0.0.1:{port}", server)
        wait_until(lambda: not [job for job in stored.rows(database, Job) if job["owner"]])  # that of all comes again

        once = {task["id"]: 1 for task in tasks}
        assert reminded(database) == once
        told = [row for row in stored.rows(database, Notification) if row["type"] == "record.due_soon"]
        assert Counter(row["payload"]["entityId"] for row in told) == once
        events = [row["entity_id"] for row in stored.rows(database, AuditEvent) if row["action"] == "remind"]
        assert Counter(events) == once
