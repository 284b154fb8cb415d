"""How webhooks are sent: in order, at least once, again after failures, and without holding up others."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from normata.events.model import AuditEvent
from normata.notifications.model import Notification
from normata.webhooks import commands, sender
from normata.webhooks.deliveries import FAILS_FOR, FEWEST_ATTEMPTS, LONGEST_DELAY, delay
from normata.webhooks.model import Webhook
from normata.webhooks.sender import Sender
from tests import stored
from tests.webhooks.receiver import is_signed, receiving
from tests.webhooks.sending import Sending, sending_of
from tests.webhooks.waiting import until
from tests.world import ALPHA, BETA


@pytest.fixture
def sending(database_url: str) -> Iterator[Sending]:
    """The service with a receiver, on each database."""
    with sending_of(database_url) as opened:
        yield opened


def test_a_failure_is_followed_by_the_same_message_later(sending: Sending) -> None:
    made = sending.create()
    sending.happen("One", "Two", "Three")
    sending.receiver.answer = lambda _: (500, {})
    [first] = sending.run()
    assert sending.run() == []
    state = sending.delivery(made)
    assert (state["lastStatus"], state["lastReason"], state["attempts"]) == (500, "STATUS", 1)
    assert state["failingSince"] is not None
    assert state["deliveredNumber"] is None
    [again] = sending.run(timedelta(seconds=6))
    assert (again.id, again.body) == (first.id, first.body)
    assert sending.run(timedelta(seconds=6)) == []

    sending.receiver.answer = lambda _: (503, {"Retry-After": "3600"})
    assert len(sending.run(timedelta(seconds=10))) == 1
    assert sending.run(timedelta(minutes=50)) == []
    sending.receiver.answer = lambda _: (200, {})
    got = sending.run(timedelta(minutes=15))
    assert [one.data["action"] for one in got] == ["create"] * 3
    assert got[0].id == first.id
    assert [one.data["number"] for one in got] == sorted(one.data["number"] for one in got)
    assert all(is_signed(one, made["secret"]) for one in sending.receiver.got)
    state = sending.delivery(made)
    assert (state["lastReason"], state["attempts"], state["failingSince"]) == (None, 0, None)
    assert (state["deliveredNumber"], state["behind"]) == (got[-1].data["number"], 0)


def test_pauses_grow_from_five_seconds_to_six_hours() -> None:
    pauses = [delay(attempts, None) for attempts in range(1, 25)]
    assert pauses[0] == timedelta(seconds=5)
    assert pauses == sorted(pauses)
    assert pauses[-1] == LONGEST_DELAY == timedelta(hours=6)
    assert sum(pauses[: FEWEST_ATTEMPTS - 1], timedelta()) < FAILS_FOR
    assert delay(1, 1.0) == timedelta(seconds=5)
    assert delay(1, 99.0) == timedelta(seconds=99)
    assert delay(1, 1e9) == LONGEST_DELAY


def test_what_fails_for_three_days_is_disabled_and_goes_on_later(sending: Sending) -> None:
    made = sending.create()
    sending.happen("One", "Two")
    sending.receiver.answer = lambda _: (500, {})
    began = datetime.fromisoformat(sending.moment)
    for _ in range(60):
        if not sending.one(made)["isActive"]:
            break
        sending.run(timedelta(hours=6))
    lasted = datetime.fromisoformat(sending.moment) - began
    assert FAILS_FOR <= lasted <= FAILS_FOR + timedelta(hours=13)
    found = sending.one(made)
    assert (found["disabledReason"], found["delivery"]["deliveredNumber"]) == ("FAILED", None)
    assert sending.run(timedelta(days=9)) == []

    notes = [one for one in stored.rows(sending.service.database, Notification) if one["type"] == "webhook.disabled"]
    assert {one["user_id"] for one in notes} == {"user-admin", "user-owner"}
    assert {one["payload"]["params"]["label"] for one in notes} == {f"http://127.0.0.1:{sending.receiver.port}"}
    [event] = stored.rows(sending.service.database, AuditEvent, action="disable", entity_type=Webhook.__name__)
    assert json.loads(event["body"])["after"]["disabledReason"] == "FAILED"

    sending.receiver.answer = lambda _: (200, {})
    changed = sending.ask("PATCH", f"/webhooks/{made['id']}/", {"isActive": True})
    assert (changed["isActive"], changed["disabledReason"]) == (True, None)
    assert len(sending.run()) == 2


@pytest.mark.parametrize(("status", "reason", "is_active"), [(410, "GONE", False), (302, "REDIRECT", True)])
def test_what_receivers_say_for_good_and_redirects(sending: Sending, status: int, reason: str, is_active: bool) -> None:
    made = sending.create()
    sending.happen("One")
    with receiving() as elsewhere:
        sending.receiver.answer = lambda _: (status, {"Location": elsewhere.url})
        assert len(sending.run()) == 1
        assert not elsewhere.got
    found = sending.one(made)
    assert (found["isActive"], found["delivery"]["lastReason"]) == (is_active, reason)
    assert found["disabledReason"] == (None if is_active else "GONE")


def test_what_is_not_wanted_is_passed_over(sending: Sending) -> None:
    made = sending.create(kinds=["labels"], actions=["archive"])
    sending.happen("One", "Two")
    assert sending.run() == []
    state = sending.delivery(made)
    assert (state["behind"], state["lastAt"], state["deliveredNumber"]) == (0, None, None)


def test_a_replay_sends_the_same_messages_again(sending: Sending) -> None:
    made = sending.create()
    path = f"/webhooks/{made['id']}/replay/"
    sending.happen("One", "Two", "Three")
    first = sending.run()
    sending.ask("POST", path, {"number": first[1].data["number"]})
    again = sending.run()
    assert [(one.id, one.body) for one in again] == [(one.id, one.body) for one in first[1:]]
    refused = sending.service.client.post(path, json={"number": 10**6}, headers=sending.headers)
    assert (refused.status_code, refused.json()["errors"][0]["code"]) == (400, "too_large")
    # What is left out is not sent.
    sending.happen("Four")
    size = sending.ask("GET", "/events/log/", organizationId=ALPHA)["size"]
    assert sending.ask("POST", path, {"number": size})["delivery"]["behind"] == 0
    assert sending.run() == []


def test_two_secrets_are_valid_for_a_day(sending: Sending) -> None:
    made = sending.create()
    path = f"/webhooks/{made['id']}/rotate/"
    assert sending.ask("POST", path, dryRun="true")["answer"]["secret"] is None
    new = sending.ask("POST", path)
    assert new["formerSecretUntil"] is not None
    for after, former in ((timedelta(), True), (timedelta(hours=25), False)):
        sending.happen(f"Label {former}")
        [got] = sending.run(after)
        assert is_signed(got, new["secret"])
        assert is_signed(got, made["secret"]) == former


def test_several_processes_send_each_event_once(sending: Sending) -> None:
    hooks = [sending.create() for _ in range(3)]
    sending.happen(*(f"Label {number}" for number in range(4)))
    got = sending.run(processes=3)
    by_peer = [one.data["number"] for one in got]
    assert sorted(by_peer) == sorted(3 * sorted(set(by_peer)))
    assert len(got) == 12
    assert {sending.delivery(one)["behind"] for one in hooks} == {0}


def test_receivers_that_do_not_answer_hold_up_nobody(sending: Sending) -> None:
    over = threading.Event()

    def wait(_got: object) -> tuple[int, dict[str, str]]:
        over.wait(20)
        return 200, {}

    with receiving() as silent:
        silent.answer = wait
        for _ in range(3):
            sending.create(silent.url)
        good = sending.create()
        sending.happen("One", "Two")

        async def work(sender: Sender) -> None:
            await sender.start_due()
            # The others hold their requests until the good one has everything.
            await asyncio.to_thread(until, lambda: len(silent.got) == 3 and len(sending.receiver.got) == 2)
            over.set()
            await sender.idle()

        sending.with_senders(work)
        assert sending.delivery(good)["deliveredNumber"] == sending.receiver.got[-1].data["number"]


def test_those_of_one_organization_hide_none_of_another(sending: Sending, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "_AT_ONCE", 2)
    monkeypatch.setattr(sender, "_FAILING_AT_ONCE", 1)
    monkeypatch.setattr(sender, "_OF_ONE_OWNER", 1)
    many = [sending.create()["id"] for _ in range(8)]
    sending.service.sql(f"UPDATE webhook_delivery SET attempts = 1 WHERE webhook_id < '{many[4]}'")
    foreigner = sending.service.bearer("foreigner")
    for path, body in (("/webhooks/", {"url": sending.receiver.url, "kinds": ["labels"]}), ("/labels/", {"name": "B"})):
        made = sending.service.client.post(path, json={"organizationId": BETA, **body}, headers=foreigner)
        assert made.status_code == 201, made.text
    sending.happen("A")

    async def once(one: Sender) -> None:
        assert await one.start_due() == 2
        await one.idle()

    sending.with_senders(once)
    assert {one.data["organizationId"] for one in sending.receiver.got} == {ALPHA, BETA}


def test_a_sentence_for_slack_has_no_markup_of_others(sending: Sending) -> None:
    sending.create(format="SLACK")
    sending.happen("<!channel> *bold* & <https://evil.example|here>")
    [got] = sending.run()
    message = json.loads(got.body)
    assert set(message) == {"text", "blocks"}
    assert not {"<", ">", "*"} & set(message["text"].replace("\u200b*", ""))
    assert message["text"].startswith("Admin added “&lt;!channel&gt;")
    shown = message["blocks"][0]["text"]["text"]
    assert shown.startswith("<https://normata.example.org/app/alpha/records/labels/")
    assert shown.endswith("(Label)>")


def test_a_test_is_sent_at_once_and_changes_nothing(sending: Sending) -> None:
    made = sending.create()
    path = f"/webhooks/{made['id']}/test/"
    before = sending.delivery(made)
    dry = sending.ask("POST", path, dryRun="true")["answer"]
    assert (dry["status"], sending.receiver.got) == (None, [])
    sending.ask("PATCH", f"/webhooks/{made['id']}/", {"isActive": False})
    found = sending.ask("POST", path)
    [got] = sending.receiver.got
    assert (found["status"], found["reason"], found["id"]) == (204, None, got.id)
    assert is_signed(got, made["secret"])
    assert json.loads(got.body)["type"] == "test"
    sending.receiver.answer = lambda _: (403, {})
    assert sending.ask("POST", path)["reason"] == "STATUS"
    after = sending.delivery(made)
    assert {**after, "behind": 0} == {**before, "behind": 0}


def test_nothing_is_sent_for_a_removed_organization(sending: Sending) -> None:
    sending.create()
    sending.happen("One")
    sending.service.sql("UPDATE organization SET removed_at = '2026-01-01 00:00:00+00:00' WHERE id = 'org-alpha'")
    assert sending.run() == []
    sending.service.sql("UPDATE organization SET removed_at = NULL WHERE id = 'org-alpha'")
    assert len(sending.run()) == 1


def test_two_changes_at_the_same_time_are_both_made(sending: Sending, monkeypatch: pytest.MonkeyPatch) -> None:
    made = sending.create()
    path, faults_of = f"/webhooks/{made['id']}/", commands._faults
    others = [threading.Thread(target=lambda: sending.ask("PATCH", path, {"kinds": ["risks"]}))]

    def faults(*given: Any) -> Any:
        """Begin the second change while the first one has read, and not written yet."""
        if others:
            other = others.pop()
            other.start()
            other.join(0.5)
            began.append(other)
        return faults_of(*given)

    began: list[threading.Thread] = []
    monkeypatch.setattr(commands, "_faults", faults)
    sending.ask("PATCH", path, {"isActive": False})
    began[0].join()
    found = sending.one(made)
    assert (found["isActive"], found["kinds"]) == (False, ["risks"])


@pytest.mark.parametrize(
    ("request_line", "body", "more"),
    [
        ("DELETE ", None, []),
        ("PATCH ", {"isActive": False}, []),
        ("PATCH ", {"kinds": ["risks"]}, []),
        ("PATCH ", {"format": "FULL"}, [1, 2, 3]),
        ("POST replay/", {"number": 0}, [0, 1, 2, 3]),
        ("POST rotate/", None, [2, 3]),
    ],
)
def test_what_is_changed_while_it_is_sent_counts_for_the_next_message(
    sending: Sending, monkeypatch: pytest.MonkeyPatch, request_line: str, body: Any, more: list[int]
) -> None:
    monkeypatch.setattr(sender, "_STORE_EVERY", 0)
    made = sending.create()
    method, path = request_line.split(" ")
    sending.happen(*"ABCD")

    def answer(_got: object) -> tuple[int, dict[str, str]]:
        if len(sending.receiver.got) == 2:
            sending.ask(method, f"/webhooks/{made['id']}/{path}", body)
        return 200, {}

    sending.receiver.answer = answer
    with capture_logs() as lines:
        numbers = [one.data["number"] for _ in range(2) for one in sending.run()]
    first = numbers[0]
    assert numbers == [first, first + 1, *(first + number for number in more)]
    assert not [line for line in lines if line["event"].startswith("webhook")]
