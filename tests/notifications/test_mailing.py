"""Mail about notifications: who gets which, when, and what becomes of it, sent to a real server."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from functools import partial
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import insert, update
from structlog.testing import capture_logs

from normata.core.changes import job_runner
from normata.core.db.transaction import Transaction
from normata.core.db.types import now
from normata.identity.model import Membership, Organization, User
from normata.notifications import mailing, outbox
from normata.notifications.model import Notification, OutgoingMail
from tests import stored
from tests.databases import on_both
from tests.notifications.posting import SITE, VIEWER, Post, posting
from tests.served import served
from tests.world import ALPHA, BETA, USERS

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)


@pytest.fixture
def post(database_url: str) -> Iterator[Post]:
    """The service with a mail server, in which the viewer gets mail immediately."""
    with posting(database_url) as opened:
        opened.choose("IMMEDIATELY")
        yield opened


def write(post: Post, table: Any, row_id: str, **values: Any) -> None:
    """Change a row, past all rules."""
    statement = update(table).where(table.id == row_id).values(**values)
    post.service.database.write_now(lambda transaction: transaction.rows(statement))


@on_both
def test_a_notification_is_mailed_once(post: Post) -> None:
    post.notify("Renew the certificate")
    assert post.run(processes=3) == ["Task assigned to you: Renew the certificate"]
    assert post.run(after=DAY) == []
    assert post.outcomes() == ["SENT"]
    assert (post.inbox.recipients, post.jobs()) == ([VIEWER], [])
    (message,) = post.inbox.messages
    (notification,) = post.notifications()
    assert message["Message-ID"] == f"<notifications.{notification['id']}@example.org>"
    assert (message["From"], message["Auto-Submitted"]) == ("Normata <normata@example.org>", "auto-generated")
    plain, html = (part.get_content() for part in message.iter_parts())
    page = f"{SITE}/app/alpha/records/tasks/{notification['payload']['entityId']}/"
    for content in (plain, html):
        assert "Editor assigned the task “Renew the certificate” to you." in content
        assert page in content
        assert "member of Alpha" in content
    assert post.service.client.get(page.removeprefix(SITE)).status_code in {200, 303}


@on_both
def test_the_daily_message_comes_in_the_morning_with_what_is_unread(post: Post) -> None:
    """Of one's own time zone. What was read meanwhile, or archived as read, is left out."""
    post.choose("DAILY")
    write(post, User, "user-viewer", time_zone="America/New_York")
    post.notify("One", "Two", "Three")
    assert post.run() == []
    (due_at,) = {row["due_at"] for row in post.rows()}
    assert due_at == outbox.next_morning(post.moment, "America/New_York")
    [two] = [row for row in post.notifications() if row["payload"]["params"]["label"] == "Two"]
    assert post.service.client.post(
        f"/notifications/{two['id']}/read/", headers=post.service.bearer("viewer")
    ).is_success
    post.moment = due_at
    assert post.run() == ["2 notifications from Alpha"]
    assert sorted(row["outcome"] for row in post.rows()) == ["LEFT_OUT", "SENT", "SENT"]
    plain, _ = (part.get_content() for part in post.inbox.messages[0].iter_parts())
    assert [name for name in ("One", "Two", "Three") if f"“{name}”" in plain] == ["One", "Three"]
    post.notify("Four")
    assert post.run(after=MINUTE) == []
    assert post.run(after=DAY) == ["Task assigned to you: Four"]
    assert len({message["Message-ID"] for message in post.inbox.messages}) == 2


@on_both
def test_who_ends_mail_gets_no_message_that_was_planned_before(post: Post) -> None:
    """By the link in an earlier mail, for one type, or by the organization for all who have not chosen."""
    post.notify("Task")
    post.run()
    link = post.inbox.messages[0]["List-Unsubscribe"].strip("<>").removeprefix(SITE)
    post.choose("DAILY")
    post.notify("By the link")
    assert post.run() == []
    host = {"Host": SITE.removeprefix("https://")}
    ended = post.service.client.post(link, data={"List-Unsubscribe": "One-Click"}, headers=host)
    assert ended.status_code == 200, ended.text
    assert post.run(after=DAY) == []
    for mail, by_type, default in (("DAILY", {"record.assigned": "OFF"}, "DAILY"), (None, None, "OFF")):
        post.choose("DAILY")
        post.notify("By a choice")
        assert post.run() == []
        post.choose(mail, by_type)
        write(post, Organization, ALPHA, mail=default)
        assert post.run(after=DAY) == []
    assert post.outcomes() == ["SENT", "LEFT_OUT", "LEFT_OUT", "LEFT_OUT"]


@pytest.mark.parametrize(
    ("moment", "zone", "morning"),
    [
        ("2026-06-15T06:59:59.999Z", None, "2026-06-15T07:00:00.000Z"),
        ("2026-06-15T07:00:00.000Z", None, "2026-06-16T07:00:00.000Z"),
        ("2026-06-15T04:00:00.000Z", "Europe/Berlin", "2026-06-15T05:00:00.000Z"),
        ("2026-12-15T06:30:00.000Z", "Europe/Berlin", "2026-12-16T06:00:00.000Z"),
        ("2026-10-24T12:00:00.000Z", "Europe/Berlin", "2026-10-25T06:00:00.000Z"),
        ("2026-10-25T00:30:00.000Z", "Europe/Berlin", "2026-10-25T06:00:00.000Z"),  # the hour that comes twice
        ("2027-03-27T12:00:00.000Z", "Europe/Berlin", "2027-03-28T05:00:00.000Z"),
        ("2026-10-03T12:00:00.000Z", "Australia/Lord_Howe", "2026-10-03T20:00:00.000Z"),  # by half an hour
        ("2011-12-29T18:00:00.000Z", "Pacific/Apia", "2011-12-30T17:00:00.000Z"),  # a day that there was not
        ("2026-06-15T21:00:00.000Z", "Asia/Kolkata", "2026-06-16T01:30:00.000Z"),
        ("2026-06-15T12:00:00.000Z", "Nowhere/Gone", "2026-06-16T07:00:00.000Z"),
    ],
)
def test_when_it_is_morning(moment: str, zone: str | None, morning: str) -> None:
    assert outbox.next_morning(moment, zone) == morning


@pytest.mark.parametrize(
    ("mail", "by_type", "default", "comes"),
    [
        ("OFF", None, "IMMEDIATELY", False),
        (None, None, "IMMEDIATELY", True),
        (None, None, "OFF", False),
        ("OFF", {"record.assigned": "IMMEDIATELY"}, "OFF", True),
        ("IMMEDIATELY", {"record.assigned": "OFF"}, "IMMEDIATELY", False),
        ("IMMEDIATELY", {"record.archived": "OFF"}, "OFF", True),
    ],
)
def test_whose_choice_counts(
    mail: str | None, by_type: dict[str, str] | None, default: str, comes: bool, post: Post
) -> None:
    post.choose(mail, by_type)
    write(post, Organization, ALPHA, mail=default)
    post.notify("Task")
    assert len(post.run()) == comes
    if mail == "OFF" and by_type is None:
        assert post.rows() == [], "nothing is written for those who get no mail at all"


def test_the_choice_counts_that_there_is_when_it_is_sent(post: Post) -> None:
    post.notify("Task")
    post.choose("OFF")
    assert post.run() == []
    assert post.outcomes() == ["LEFT_OUT"]


@on_both
def test_what_nobody_may_or_need_read_any_more_is_not_sent(post: Post) -> None:
    """Members who were removed or whose time is over, people without an address, and what is read or gone."""
    client, database = post.service.client, post.service.database
    changes: list[tuple[Any, str, dict[str, Any]]] = [
        (Membership, "member-viewer", {"removed_at": post.moment}),
        (Membership, "member-viewer", {"expires_at": post.moment}),
        (User, "user-viewer", {"removed_at": post.moment}),
        (User, "user-viewer", {"email": None, "email_folded": None}),
    ]
    for table, row_id, values in changes:
        post.notify("Task")
        before = stored.row(database, table, row_id)
        write(post, table, row_id, **values)
        assert post.run() == []
        write(post, table, row_id, **{name: before[name] for name in values})
    post.notify("Task")
    until = post.notifications()[-1]["created_at"]
    read = client.post(
        "/notifications/read/", json={"organizationId": ALPHA, "until": until}, headers=post.service.bearer("viewer")
    )
    assert read.is_success
    post.notify("Task")
    post.service.sql("DELETE FROM notification WHERE read_at IS NULL AND id NOT LIKE 'note-%'")
    assert post.run() == []
    assert post.outcomes() == ["LEFT_OUT"] * 6


def test_many_at_once_are_one_message(post: Post) -> None:
    post.notify(*(f"Task {number}" for number in range(outbox.ALONE)))
    assert len(post.run()) == outbox.ALONE
    post.notify(*(f"<b>Task</b> {number}" for number in range(outbox.ALONE + 1)))
    assert post.run() == [f"{outbox.ALONE + 1} notifications from Alpha"]
    _, html = (part.get_content() for part in post.inbox.messages[-1].iter_parts())
    assert html.count("&lt;b&gt;Task&lt;/b&gt; 3") == 2


@on_both
def test_a_server_that_is_away_for_an_hour(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is lost, all comes once it is back, and the log has no address."""
    monkeypatch.setattr(mailing, "_AWAY_FOR", timedelta())
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        away = f"smtp://127.0.0.1:{taken.getsockname()[1]}"
    post.notify("One", "Two")
    with capture_logs() as logged:
        for _ in range(12):
            assert post.run(url=away, after=5 * MINUTE) == []
    failures = [str(entry["exc_info"]) for entry in logged if entry["event"] == "job_failed"]
    assert set(failures) == {"ConnectionRefusedError"}
    assert len(failures) < 12, "the pauses become longer"
    assert VIEWER not in str(logged)
    assert [row["attempts"] for row in post.rows()] == [0, 0]
    sent = [subject for _ in range(6) for subject in post.run(after=10 * MINUTE)]
    assert sorted(sent) == ["Task assigned to you: One", "Task assigned to you: Two"]
    assert post.outcomes() == ["SENT", "SENT"]


@on_both
def test_an_address_that_is_refused_for_good_gets_nothing_more(post: Post) -> None:
    """Until its user says that it is right. Those of others get theirs."""
    post.choose("IMMEDIATELY", user="admin")
    post.inbox.answers[VIEWER] = f"550 5.1.1 {VIEWER} is not known here"
    post.notify("One")
    post.notify("Other", member="admin")
    with capture_logs() as logged:
        assert post.run() == ["Task assigned to you: Other"]
    assert VIEWER not in str(logged)
    assert post.outcomes() == ["REFUSED", "SENT"]
    headers = post.service.bearer("viewer")
    assert post.service.client.get("/me/", headers=headers).json()["isMailRefused"] is True
    post.notify("Two")
    assert len(post.rows()) == 2
    del post.inbox.answers[VIEWER]
    assert post.service.client.patch("/me/", json={"isMailRefused": False}, headers=headers).is_success
    post.notify("Three")
    assert post.run(after=MINUTE) == ["Task assigned to you: Three"]


@pytest.mark.parametrize("answer", ["450 4.2.1 busy", "550 5.7.1 relaying denied"])
def test_an_address_that_is_refused_for_now_is_attempted_again(answer: str, post: Post) -> None:
    """A policy is no fault of the address: a server that does not relay yet refuses all with it."""
    post.choose("IMMEDIATELY", user="admin")
    post.inbox.answers[VIEWER] = answer
    post.notify("One")
    post.notify("Other", member="admin")
    assert post.run() == ["Task assigned to you: Other"]
    assert post.run(after=MINUTE / 2) == []
    for attempts in (2, 3):
        assert post.run(after=MINUTE * attempts) == []
        (row,) = post.rows(outcome=None)
        assert row["attempts"] == attempts
    del post.inbox.answers[VIEWER]
    assert post.run(after=MINUTE * 4) == ["Task assigned to you: One"]
    assert post.service.client.get("/me/", headers=post.service.bearer("viewer")).json()["isMailRefused"] is False


@pytest.mark.parametrize(("answer", "outcome"), [("554 5.6.0 no", "REJECTED"), ("451 4.3.0 later", None)])
def test_a_message_that_is_refused(answer: str, outcome: str | None, post: Post) -> None:
    post.inbox.data_answer = answer
    post.notify("One")
    assert post.run() == []
    assert post.outcomes() == [outcome]
    assert post.service.client.get("/me/", headers=post.service.bearer("viewer")).json()["isMailRefused"] is False
    if outcome is None:
        post.service.sql(f"UPDATE outgoing_mail SET attempts = {outbox.MOST_ATTEMPTS - 1}")
        assert post.run(after=timedelta(hours=4)) == []
    assert post.outcomes() == ["REJECTED"], "after some days it is given up"


@on_both
def test_a_server_that_hangs_keeps_nobody(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its connection is ended, and for a while other organizations do not attempt to send."""
    monkeypatch.setattr(mailing, "_ONE_WITHIN", 0.2)
    post.choose("IMMEDIATELY", user="both")
    post.inbox.hangs = True
    post.notify("One")
    with capture_logs() as logged:
        assert post.run() == []
    assert [str(entry["exc_info"]) for entry in logged if entry["event"] == "job_failed"] == ["TimeoutError"]
    post.inbox.hangs = False
    assert post.run(after=MINUTE) == ["Task assigned to you: One"]


def test_without_a_mail_server_nothing_is_written(database_url: str) -> None:
    with served(database_url) as service:
        body = {"organizationId": ALPHA, "title": "T", "assigneeMemberId": "member-viewer"}
        assert service.client.post("/tasks/", json=body, headers=service.bearer("editor")).is_success
        assert any(not row["id"].startswith("note-") for row in stored.rows(service.database, Notification))
        assert stored.rows(service.database, OutgoingMail) == []


@on_both
def test_a_clock_that_jumps_neither_repeats_nor_loses_the_daily_message(post: Post) -> None:
    """Back to the day before, and forward by three: what was written in between is in one message of a morning."""
    post.choose("DAILY")
    post.notify("One")
    assert post.run() == []
    before = post.moment
    (post.moment,) = {row["due_at"] for row in post.rows()}
    assert post.run() == ["Task assigned to you: One"]
    post.moment = before
    assert post.run() == []
    post.notify("Two", "Three")
    assert post.run() == []
    assert post.run(after=3 * DAY) == ["2 notifications from Alpha"]
    assert post.run(after=3 * DAY) == []
    assert post.outcomes() == ["SENT", "SENT", "SENT"]


def _add(content: list[dict[str, Any]], mails: list[dict[str, Any]], transaction: Transaction) -> None:
    transaction.execute_many(insert(Notification), content)
    transaction.execute_many(insert(OutgoingMail), mails)


@on_both
def test_mail_of_one_organization_does_not_wait_for_that_of_another(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where one job runs at a time, the others wait for as many messages as it sends in its time, however many wait."""
    seconds = count()
    monkeypatch.setattr(mailing, "time", SimpleNamespace(monotonic=lambda: float(next(seconds))))
    monkeypatch.setattr(job_runner, "_AT_ONCE", 1)
    written = now()
    for organization, user, number in ((ALPHA, "user-viewer", 90), (BETA, "user-foreigner", 3)):
        values = [{"id": f"bulk-{organization}-{one:02}", "user_id": user} for one in range(number)]
        own = {"organization_id": organization, "created_at": written, "type": "record.assigned", "category": "TASKS"}
        content: list[dict[str, Any]] = [own | one | {"payload": {}} for one in values]
        due = {"organization_id": organization, "due_at": written, "attempts": 0}
        mails = [due | one | {"message": one["id"]} for one in values]
        post.service.database.write_now(partial(_add, content, mails))
    post.run()
    sent_to = [message["To"] for message in post.inbox.messages]
    assert len(sent_to) == 93
    others = [place for place, to in enumerate(sent_to) if to == USERS["foreigner"]]
    assert others[-1] - others[0] == 2, "a few are sent in one go"
    assert others[0] <= 20, "and before the second turn of the organization with many"
