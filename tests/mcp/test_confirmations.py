"""Confirmations: what a change needs, and everything for which one does not hold."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from normata.events.keys import Signer
from normata.mcp.confirmations import LIFETIME, Confirmations, Confirmed, Refusal, call_of
from normata.records.assurance import Risk
from normata.records.kinds import Task
from tests import stored
from tests.mcp.raw import RawClient
from tests.served import Served
from tests.world import ALPHA, record_id

LIVE, ARCHIVED = record_id(Risk, "live"), record_id(Risk, "archived")
CHANGES: dict[str, dict[str, Any]] = {
    "assess": {"controlId": "own.A.1", "note": "At the gate."},
    "create": {"kind": "risks", "values": {"name": "Fire"}},
    "change": {"kind": "risks", "id": LIVE, "values": {"name": "Fire"}},
    "archive": {"kind": "risks", "id": LIVE, "reason": "Gone"},
    "restore": {"kind": "risks", "id": ARCHIVED},
    "comment": {"kind": "risks", "id": LIVE, "text": "Well."},
}
# Of the same tool, other arguments.
OTHERS: dict[str, dict[str, Any]] = {
    "assess": {"note": "At the door."},
    "create": {"values": {"name": "Flood"}},
    "change": {"values": {"name": "Flood"}},
    "archive": {"reason": "Sold"},
    "restore": {"id": record_id(Risk, "taken")},
    "comment": {"text": "Better."},
}
each_change = pytest.mark.parametrize("tool", CHANGES)


@pytest.fixture
def client(service: Served) -> RawClient:
    """A client of an editor."""
    return RawClient(service.client, service.bearer("editor"))


def events(service: Served) -> int:
    """How many events there are."""
    return len(service.listing("/events/", "owner").items())


@each_change
def test_it_shows_first_and_does_it_once(service: Served, client: RawClient, tool: str) -> None:
    before, arguments = stored.everything(service.database), CHANGES[tool]
    shown = client.call(tool, **arguments)
    assert stored.everything(service.database) == before
    assert shown.content["as"] == {"userId": "user-editor", "name": "Editor"}
    (main, *_) = shown.data["changes"]
    assert main["organizationId"] == ALPHA
    count = events(service)
    done = client.call(tool, **arguments, confirmation=shown.confirmation)
    assert done.content["status"] == "done", done.text
    made = events(service) - count
    assert made >= 1
    again = client.call(tool, **arguments, confirmation=shown.confirmation)
    if tool in ("create", "comment"):
        assert again.content == done.content  # the first answer, once more
    else:
        assert again.code == (400, "validation")
        assert "has been used" in again.text
    assert events(service) - count == made


@each_change
def test_what_a_confirmation_does_not_hold_for(service: Served, client: RawClient, tool: str) -> None:
    arguments = CHANGES[tool]
    given = client.call(tool, **arguments).confirmation
    other_tool = "archive" if tool == "restore" else "restore"
    same_person = RawClient(service.client, service.bearer("editor"))
    owner = RawClient(service.client, service.bearer("owner"))
    before = stored.everything(service.database)
    raw = bytearray(urlsafe_b64decode(given))
    raw[3] ^= 1  # it would hold for longer
    for caller, called, sent, confirmation, reason in (
        (client, tool, arguments | OTHERS[tool], given, "other arguments"),
        (client, other_tool, {"kind": "risks", "id": LIVE}, given, "another tool"),
        (owner, tool, arguments, given, "another caller"),
        (same_person, tool, arguments, given, "another token"),
        (client, tool, arguments, urlsafe_b64encode(raw).decode(), "none that this service has given"),
        (client, tool, arguments, given + "=", "none that this service has given"),
        (client, tool, arguments, given[:-4], "none that this service has given"),
        (client, tool, arguments, "AAAA", "none that this service has given"),
        (client, tool, arguments, "é\n", "none that this service has given"),
        (client, tool, arguments, "", "none that this service has given"),
    ):
        answer = caller.call(called, **sent, confirmation=confirmation)
        assert answer.code == (400, "validation"), (reason, answer.text)
        assert reason in answer.text
    assert stored.everything(service.database) == before


@pytest.mark.parametrize("tool", ["assess", "change", "archive", "restore"])
def test_a_record_that_has_changed_is_shown_again(service: Served, client: RawClient, tool: str) -> None:
    arguments = CHANGES[tool]
    given = client.call(tool, **arguments).confirmation
    owner = RawClient(service.client, service.bearer("owner"))
    if tool == "assess":
        owner.confirmed("assess", controlId="own.A.1", coverageGap="A gap.")
    elif tool == "restore":
        owner.confirmed("restore", **arguments)
        owner.confirmed("archive", **arguments)
    else:
        owner.confirmed("change", kind="risks", id=LIVE, values={"description": "Seen by somebody else."})
    before = stored.everything(service.database)
    refusal = client.call(tool, **arguments, confirmation=given)
    assert refusal.code == (400, "validation")
    assert "has changed" in refusal.text
    assert stored.everything(service.database) == before
    assert client.confirmed(tool, **arguments).content["status"] == "done"


@each_change
def test_of_many_at_once_one_is_done(service: Served, client: RawClient, tool: str) -> None:
    given = client.call(tool, **CHANGES[tool]).confirmation
    count = events(service)
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: client.call(tool, **CHANGES[tool], confirmation=given), range(6)))
    codes = {answer.code for answer in answers}
    assert (200, "") in codes
    assert codes <= {(200, ""), (400, "validation"), (409, "request_in_progress"), (412, "precondition_failed")}
    assert events(service) - count == 1


def test_the_same_change_can_be_made_twice_if_it_was_confirmed_twice(client: RawClient) -> None:
    values = {"kind": "tasks", "values": {"title": "Twice"}}
    first, second = (client.confirmed("create", **values).data["id"] for _ in range(2))
    assert first != second
    assert client.call("read", kind="tasks", id=record_id(Task, "live")).code == (200, "")


def test_what_changes_nothing_says_so(service: Served, client: RawClient) -> None:
    name = client.call("read", kind="risks", id=LIVE).data["name"]
    arguments = {"kind": "risks", "id": LIVE, "values": {"name": name}}
    shown = client.call("change", **arguments)
    assert shown.data["changes"] == []
    assert shown.text.startswith("It would change nothing")
    before = stored.everything(service.database)
    assert client.call("change", **arguments, confirmation=shown.confirmation).content["status"] == "done"
    assert stored.everything(service.database) == before


# --- Without the application


@pytest.fixture
def signer(tmp_path: Path) -> Signer:
    """A key."""
    return Signer(tmp_path / "one.event-key")


CONFIRMED = Confirmed("caller", call_of("tool", {"b": 1, "a": [2]}), "state")


def test_it_holds_until_it_ends(signer: Signer) -> None:
    moment = 1_800_000_000.5
    given, end = Confirmations(signer, lambda: moment).give(CONFIRMED)
    assert end == int(moment) + LIFETIME
    assert Confirmations(Signer(signer.path), lambda: end - 0.1).require(given, CONFIRMED)  # of another process
    with pytest.raises(Refusal, match="expired"):
        Confirmations(signer, lambda: end).require(given, CONFIRMED)


def test_no_other_key_has_given_it(signer: Signer, tmp_path: Path) -> None:
    given, _ = Confirmations(signer).give(CONFIRMED)
    with pytest.raises(Refusal, match="none that this service has given"):
        Confirmations(Signer(tmp_path / "other.event-key")).require(given, CONFIRMED)


def test_each_has_a_key_of_its_own_which_does_not_depend_on_its_spelling(signer: Signer) -> None:
    confirmations = Confirmations(signer)
    keys = {confirmations.require(confirmations.give(CONFIRMED)[0], CONFIRMED) for _ in range(20)}
    assert len(keys) == 20
    given, _ = confirmations.give(CONFIRMED)
    for spelling in (given + "=", given + "\n", f" {given}", given + "!"):
        with pytest.raises(Refusal):
            confirmations.require(spelling, CONFIRMED)


def test_arguments_in_another_order_are_the_same() -> None:
    assert call_of("tool", {"a": [2], "b": 1}) == call_of("tool", {"b": 1, "a": [2]})
    assert call_of("tool", {"a": [1, 2]}) != call_of("tool", {"a": [2, 1]})
    assert call_of("tool", {"a": "1"}) != call_of("tool", {"a": 1})
