"""A server killed amid approvals, completions of recurring tasks and mails: nothing twice, nothing lost."""

from __future__ import annotations

import json
import random
import subprocess
import threading
import time
from collections import Counter
from contextlib import closing
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from normata.core.changes.jobs import schedule
from normata.core.changes.unit_of_work import Actor, UnitOfWork
from normata.core.db.database import Database
from normata.core.db.types import format_timestamp, now
from normata.identity.model import User
from normata.identity.tokens import tokens
from normata.links.model import Link
from normata.notifications import outbox
from normata.notifications.mailing import NAME
from normata.notifications.model import OutgoingMail
from normata.policies.model import PolicyVersion
from normata.records import writing
from normata.records.kinds import Task
from normata.recurrences.model import Recurrence
from normata.wiring import changes_of
from tests import stored
from tests.databases import change, open_url
from tests.identity.smtp_server import Inbox, mail_server
from tests.killing import Clients, kill, start
from tests.notifications.posting import SITE
from tests.notifications.test_mailing_killed import PROCESS
from tests.prepared import Normata
from tests.server import reserved_port
from tests.world import ALPHA, USERS

ENOUGH = 60  # acknowledged writes before the kill
MEMBERS = ("owner", "admin", "editor", "viewer")


def approve(clients: Clients, admin: str, approver: str, name: str) -> None:
    """Make a policy, and have it approved and published."""
    body = {"organizationId": ALPHA, "title": name, "content": "Lock the door.", "approverId": "member-viewer"}
    policy = clients.send(admin, "POST", "/policies/", f"{name}-create", body)["id"]
    path = f"/policies/{policy}"
    clients.send(admin, "POST", f"{path}/submit/", f"{name}-submit")
    clients.send(approver, "POST", f"{path}/approve/", f"{name}-approve", {"version": 1})
    clients.send(admin, "POST", f"{path}/publish/", f"{name}-publish")


def complete(clients: Clients, editor: str, name: str) -> None:
    """Make a recurring task, and do it and the two that follow it; all of them are somebody else's."""
    body = {"organizationId": ALPHA, "title": name, "deadline": "2100-01-31", "frequency": "MONTHLY"}
    body |= {"assigneeMemberId": "member-viewer"}
    task = clients.send(editor, "POST", "/tasks/", f"{name}-create", body)["id"]
    for number in range(3):
        clients.send(editor, "PATCH", f"/tasks/{task}/", f"{name}-{number}-update", {"status": "DONE"})
        task = clients.read(editor, f"/tasks/{task}/recurrence/?organizationId={ALPHA}")["nextId"]


def prepare(database: Database) -> dict[str, str]:
    """Have messages wait, of which a server sends the first at once; tokens of members."""
    choice = update(User).where(User.id.in_([f"user-{one}" for one in MEMBERS])).values(mail="IMMEDIATELY")
    database.write_now(lambda transaction: transaction.rows(choice))

    def notify(unit: UnitOfWork) -> None:
        for member in MEMBERS:
            for number in range(outbox.ALONE):
                values = {"title": f"{member} {number}", "assigneeMemberId": f"member-{member}"}
                writing.create(unit, Task, ALPHA, values)
        schedule(unit, NAME, ALPHA, "", unit.moment)

    changes_of(database, mails=True).make_now(notify, actor=Actor(user_id="user-foreigner", user_name="Foreigner"))
    lifetime = timedelta(hours=1)
    return {
        user: change(database, partial(tokens.create, email=USERS[user], scope="write", lifetime=lifetime))
        for user in ("admin", "editor", "viewer")
    }


@pytest.mark.long
def test_nothing_is_done_twice_and_nothing_is_lost(database_url: str, tmp_path: Path) -> None:
    # Of the two members whom the clients notify as well, all may come in one message.
    last = random.randint(2, 2 * outbox.ALONE)  # noqa: S311 - no secret
    with closing(open_url(database_url)) as database, reserved_port() as port, mail_server() as inbox:
        bearers = prepare(database)
        clients = Clients(f"http://127.0.0.1:{port}")
        settings = {
            "NORMATA_SMTP_URL": inbox.url,
            "NORMATA_PUBLIC_URL": SITE,
            "NORMATA_MAIL_FROM": "normata@example.org",
        }
        server = start(database_url, port, tmp_path / "key", settings)
        is_killed = threading.Event()

        def killed() -> None:
            """Kill the server amid a message, which is there and not yet answered, once clients have done enough."""
            if len(inbox.messages) != last or is_killed.is_set():
                return
            deadline = time.monotonic() + 60
            while len(clients.acknowledged) < ENOUGH and time.monotonic() < deadline:
                time.sleep(0.01)
            kill(server)
            is_killed.set()

        inbox.before_answer = killed
        lives = [partial(approve, clients, bearers["admin"], bearers["viewer"])] * 2
        with clients.writing([*lives, *[partial(complete, clients, bearers["editor"])] * 2]):
            if not is_killed.wait(90):
                kill(server)
        assert is_killed.is_set()
        assert len(clients.acknowledged) >= ENOUGH
        _check_events(database, clients)
        _check_policies(database)
        _check_tasks(database)
        _check_mail(database, inbox, database_url)


def _events(database: Database, **wanted: Any) -> list[dict[str, Any]]:
    """The events of the clients' requests."""
    return [one for one in stored.events(database, **wanted) if one["request_id"]]


def _check_events(database: Database, clients: Clients) -> None:
    """Each acknowledged step is there, once; what was under way when the server was killed is there or not."""
    found = Counter((one["request_id"], one["action"], one["entity_id"]) for one in _events(database))
    for request, (action, record) in clients.acknowledged.items():
        assert found[request, action, record] == 1
    requests = {request for request, _, _ in found}
    assert requests <= clients.sent
    assert len(requests - clients.acknowledged.keys()) <= 4
    assert set(found.values()) == {1}


def _check_policies(database: Database) -> None:
    """No version without its event, and no event without its version."""
    for action, column in (("submit", "submitted_at"), ("approve", "approved_at"), ("publish", "published_at")):
        versions = [row["policy_id"] for row in stored.rows(database, PolicyVersion, is_imported=False) if row[column]]
        events = [one["entity_id"] for one in _events(database, entity_type="Policy", action=action)]
        assert sorted(events) == sorted(versions), action


def _check_tasks(database: Database) -> None:
    """Each task that is done has one that follows it, and no other has."""
    tasks = {row["id"]: row for row in stored.rows(database, Task) if row["frequency"] == "MONTHLY"}
    done = sorted(task for task, row in tasks.items() if row["status"] == "DONE")
    assert done
    links = stored.rows(database, Link, relation="FOLLOWS")
    assert sorted(row["to_id"] for row in links) == done
    nexts = {row["to_id"]: row["from_id"] for row in links}
    recorded = [row for row in stored.rows(database, Recurrence, kind="tasks") if row["next_id"] is not None]
    assert {row["record_id"]: row["next_id"] for row in recorded} == nexts
    assert set(nexts.values()) <= tasks.keys()
    made = _events(database, entity_type=Task.__name__, action="create")
    follows = [(json.loads(one["body"])["counts"] or {}).get("follows") for one in made]
    assert sorted(one for one in follows if one) == done
    completed = _events(database, entity_type=Task.__name__, action="update")
    assert sorted(one["entity_id"] for one in completed) == done


def _check_mail(database: Database, inbox: Inbox, url: str) -> None:
    """All is mailed once the claims of the killed server have ended: once, but for what it had no answer to."""
    inbox.before_answer = None
    moment = format_timestamp(datetime.fromisoformat(now()) + 3 * outbox.CLAIMED_FOR)
    mailing = Normata([str(PROCESS), url, inbox.url, moment], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert mailing.wait(60) == 0
    rows = stored.rows(database, OutgoingMail)
    assert {row["outcome"] for row in rows} == {"SENT"}
    counts = Counter(message["Message-ID"] for message in inbox.messages)
    assert len(counts) == len({row["message"] for row in rows})
    assert sorted(counts.values())[-2:] == [1, 2]
