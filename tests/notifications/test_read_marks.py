"""Marking notifications as read, and counting those that are not: each user's own, and nobody else's."""

from __future__ import annotations

from typing import Any

import pytest

from normata.notifications.model import Notification
from tests import stored
from tests.databases import on_both
from tests.served import Headers, Served, refused, removal_of
from tests.world import ALPHA, BETA

UNREAD = "note-01"  # of alpha's editor
READ = "note-00"
WORDS = pytest.mark.parametrize(("word", "note"), [("read", UNREAD), ("unread", READ)])


def mark(service: Served, note: str, word: str, headers: Headers) -> Any:
    """The answer to marking one notification."""
    return service.client.post(f"/notifications/{note}/{word}/", headers=headers)


def unread(service: Served, headers: Headers, organization: str = ALPHA) -> int:
    """How many are unread."""
    response = service.client.get(
        "/notifications/unread-count/", params={"organizationId": organization}, headers=headers
    )
    assert response.status_code == 200, response.text
    assert response.json().keys() == {"unread"}
    return int(response.json()["unread"])


@WORDS
@on_both
def test_only_the_mark_changes_and_again_is_harmless(word: str, note: str, service: Served) -> None:
    before = stored.everything(service.database)
    editor = service.bearer("editor")
    count = unread(service, editor)
    first = mark(service, note, word, editor)
    assert first.status_code == 200, first.text
    assert (first.json()["readAt"] is not None) == (word == "read")
    assert unread(service, editor) == count + (-1 if word == "read" else 1)
    (listed,) = (item for item in service.listing("/notifications/", "editor").items() if item["id"] == note)
    assert first.json() == listed
    marked = stored.everything(service.database)
    assert mark(service, note, word, editor).json() == listed
    after = stored.everything(service.database)
    assert after["audit_event"] == marked["audit_event"], "what changes nothing is no event"
    changed = [(old, new) for old, new in zip(before["notification"], after["notification"], strict=True) if old != new]
    assert changed == [(old, old | {"read_at": first.json()["readAt"]}) for old, _ in changed]
    assert [old["id"] for old, _ in changed] == [note]
    (event,) = (one for one in after["audit_event"] if one not in before["audit_event"])
    assert (event["action"], event["entity_id"], event["user_id"]) == (word, note, "user-editor")


@WORDS
def test_of_anybody_else_it_is_not_there(word: str, note: str, shared: Served) -> None:
    """Not for an owner either, nor with a token that only reads."""
    before = stored.rows(shared.database, Notification)
    for user in ("owner", "viewer", "foreigner", "nobody"):
        refused(mark(shared, note, word, shared.bearer(user)), 404, "not_found")
    refused(mark(shared, note, word, shared.bearer("editor", scope="read")), 403, "forbidden")
    refused(mark(shared, "note-none", word, shared.bearer("editor")), 404, "not_found")
    assert stored.rows(shared.database, Notification) == before


def test_who_has_left_has_no_notifications(service: Served) -> None:
    admin = service.bearer("admin")
    service.sql(*removal_of("member-admin"))
    refused(mark(service, "note-unread-admin", "read", admin), 404, "not_found")
    refused(mark(service, "note-read-admin", "read", admin), 404, "not_found")


@on_both
def test_all_up_to_a_moment(service: Served) -> None:
    """That moment included; what has come later stays unread, and so does what is others'."""
    editor, before = service.bearer("editor"), stored.rows(service.database, Notification)
    body = {"organizationId": "alpha", "until": "2026-03-06T11:00:00+01:00"}
    answers = [service.client.post("/notifications/read/", json=body, headers=editor) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert [answer.json() for answer in answers] == [{"marked": 4}, {"marked": 0}]
    marked = {row["id"] for row in stored.rows(service.database, Notification) if row["read_at"] is not None} - {
        row["id"] for row in before if row["read_at"] is not None
    }
    assert marked == {"note-01", "note-02", "note-04", "note-05"}
    assert unread(service, editor) == 4
    events = [row for row in stored.events(service.database) if row["action"] == "read"]
    assert {event["entity_id"] for event in events} == marked


def test_all_of_another_organization_are_not_there(shared: Served) -> None:
    body = {"organizationId": BETA, "until": "2026-12-01"}
    answer = shared.client.post("/notifications/read/", json=body, headers=shared.bearer("editor"))
    refused(answer, 404, "not_found")


@pytest.mark.parametrize("until", [None, "", "yesterday", "2026-13-01", 7])
def test_a_moment_that_is_none(until: object, shared: Served) -> None:
    body = {"organizationId": ALPHA, "until": until}
    answer = shared.client.post("/notifications/read/", json=body, headers=shared.bearer("editor"))
    assert [fault["name"] for fault in refused(answer, 400, "validation")["errors"]] == ["until"]


def test_the_count_is_the_callers_own(shared: Served) -> None:
    assert [unread(shared, shared.bearer(user)) for user in ("editor", "viewer", "owner")] == [8, 1, 1]
    assert unread(shared, shared.bearer("foreigner"), BETA) == 1


def test_the_link_has_the_prefix(service: Served) -> None:
    """As in the list: a proxy may serve the application below another path."""
    with_prefix = service.bearer("editor") | {"X-Forwarded-Prefix": "/compliance"}
    assert mark(service, UNREAD, "read", with_prefix).json()["payload"]["url"] == "/policies/"
