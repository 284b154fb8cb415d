"""The inbox, the number beside it, and what is due."""

from __future__ import annotations

import re
from typing import Any

import pytest

from normata.notifications.model import Notification
from normata.notifications.texts import sentence
from normata.records.base import Restorable
from tests import stored
from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA, Parsed, send
from tests.console.browser import is_refused, text_of
from tests.world import ALPHA as ALPHA_ID

INBOX = f"{ALPHA}inbox/"
DUE = f"{ALPHA}due/"


def _note(number: int, **fields: Any) -> dict[str, Any]:
    return {
        "id": f"new-{number}",
        "organizationId": ALPHA_ID,
        "userId": "user-editor",
        "type": "record.assigned",
        "createdAt": f"2026-05-{number:02}T10:00:00.000Z",
    } | fields


def _read(people: People) -> dict[str, str | None]:
    rows = stored.rows(people.instance.database, Notification, user_id="user-editor")
    return {row["id"]: row["read_at"] for row in rows}


def test_the_number_of_unread_is_beside_the_inbox_on_every_page(readers: People) -> None:
    for page in (ALPHA, INBOX, f"{ALPHA}controls/"):
        assert "Inbox 8 unread" in text_of(readers["editor"].get(page))  # every third of twelve is read
    assert "Inbox 1 unread" in text_of(readers["viewer"].get(INBOX))


def test_a_notification_says_what_it_is_about_and_leads_there(people: People) -> None:
    payload = {
        "titleKey": "notifications.incident.notification_deadline_soon.title",
        "bodyKey": "notifications.incident.notification_deadline_soon.body",
        "params": {"label": "Lost {dueAt} key", "dueAt": "2026-06-01T08:30:00.000Z"},
        "url": "https://evil.example/",
        "entityType": "Incident",
        "entityId": "an id/of all",
    }
    lost = {"titleKey": "notifications.control.coverage_lost.title", "params": {"count": 3}, "entityType": "Control"}
    people.instance.load(
        {
            "notifications": [
                _note(1, payload=payload),
                _note(2, payload=lost | {"entityId": "moon.A.1"}),
                _note(3, type="policy.published", payload={"titleKey": "unknown", "entityLabel": "Travel"}),
            ]
        }
    )
    page = people["editor"].get(INBOX)
    said = text_of(page)
    assert "Authority to be notified soon: Lost {dueAt} key" in said
    assert "notified of the incident “Lost {dueAt} key” by 1 Jun 2026, 08:30 ." in said
    assert "Controls that lost coverage: 3" in said
    assert "Policy published: Travel" in said
    links = Parsed(page).links
    assert f"{ALPHA}records/incidents/an%20id%2Fof%20all/" in links
    assert f"{ALPHA}controls/moon.A.1/" in links
    assert not [link for link in links if "evil" in link]
    home = people["editor"].get(ALPHA)  # who may not see events is told this there
    assert "Controls that lost coverage: 3" in text_of(home)
    assert f"{ALPHA}controls/moon.A.1/" in Parsed(home).links


def test_what_is_about_a_framework_that_was_left_leads_to_what_is_there(people: People) -> None:
    def lost(entity_type: str, entity_id: str) -> dict[str, Any]:
        return {"payload": {"entityType": entity_type, "entityId": entity_id, "entityLabel": entity_id}}

    people.instance.load(
        {
            "notifications": [
                _note(1, **lost("Framework", "fw-moon")),
                _note(2, **lost("Control", "moon.A.1")),
                _note(3, **lost("Framework", "fw-never")),
            ]
        }
    )
    assert {f"{ALPHA}frameworks/fw-moon/", f"{ALPHA}controls/moon.A.1/"} <= set(
        Parsed(people["editor"].get(INBOX)).links
    )
    people.instance.sql("DELETE FROM framework_adoption WHERE framework_id = 'fw-moon'")
    page = people["editor"].get(INBOX)
    about = [link for link in Parsed(page).links if "fw-" in link or "moon" in link]
    assert about == [f"{ALPHA}frameworks/fw-moon/adoption/"]
    assert people["editor"].get(about[0]).status_code == 200
    assert "Record assigned: fw-never" in text_of(page)


def test_every_kind_that_notifies_has_a_page(readers: People) -> None:
    del readers
    for kind in Restorable.kinds:
        if kind.responsible is not None:
            assert sentence(f"notifications.{kind.__tablename__}.assigned.title", {"label": "X"})


def test_one_is_marked_and_marked_back(people: People) -> None:
    form = next(form for form in Parsed(people["editor"].get(INBOX)).forms if "notification" in form.fields)
    for step, is_read in (("read", True), ("unread", False)):
        answer = send(people["editor"], form, step=step, notification="note-10")
        assert (answer.status_code, answer.headers["location"]) == (303, INBOX)
        assert (_read(people)["note-10"] is not None) == is_read


def test_all_are_read_up_to_the_newest_that_was_shown(people: People) -> None:
    form = next(form for form in Parsed(people["editor"].get(INBOX)).forms if "until" in form.fields)
    people.instance.load({"notifications": [_note(9)]})  # comes meanwhile
    assert send(people["editor"], form, step="all").status_code == 303
    assert [name for name, read_at in _read(people).items() if read_at is None] == ["new-9"]
    said = text_of(people["editor"].get(f"{INBOX}?unreadOnly=true"))
    assert "Inbox 1 unread" in said
    assert stored.rows(people.instance.database, Notification, id="note-unread-viewer")[0]["read_at"] is None


def test_nobody_marks_what_is_not_theirs(people: People) -> None:
    owner, editor = people["owner"], people["editor"]
    before = stored.everything(people.instance.database)
    for notification in ("note-10", "no-such"):
        assert is_refused(owner.post(INBOX, step="read", notification=notification), status=404)
    assert is_refused(editor.post(INBOX, step="all", until="soon"), status=400)
    assert is_refused(editor.post(INBOX, step="nothing"), status=400)
    assert stored.everything(people.instance.database) == before


def test_an_empty_inbox_says_what_comes_there(people: People) -> None:
    people.instance.sql("DELETE FROM notification")
    said = text_of(people["editor"].get(INBOX))
    assert "No notifications yet." in said
    assert "unread" not in said
    assert "You have read everything." in text_of(people["editor"].get(f"{INBOX}?unreadOnly=true"))


def test_pages_of_the_inbox(readers: People) -> None:
    said = text_of(readers["editor"].get(f"{INBOX}?page=2"))
    assert re.search(r"Inbox 12 ", said)
    assert "Mark all as read" not in said  # of these one does not see the newest


# --- What is due


@pytest.mark.parametrize("user", ["viewer", "editor"])
def test_what_is_due_has_everything_or_what_is_mine(user: str, readers: People) -> None:
    page = readers[user].get(DUE)
    said = text_of(page)
    assert re.search(r"task live 10 Feb 2026 Overdue Deadline Task E Editor", said)
    assert f"{ALPHA}records/tasks/tasks-live-org-alpha/" in Parsed(page).links
    assert f"{ALPHA}settings/members/member-editor/" in Parsed(page).links
    mine = text_of(readers[user].get(f"{DUE}?mine=true&within=7d"))
    assert ("You have nothing due" in mine) == (user == "viewer")


def test_kinds_and_dates_are_called_as_on_the_pages_of_records(people: People) -> None:
    due = {"organizationId": ALPHA_ID}
    people.instance.load(
        {
            "auditItems": [due | {"id": "f", "name": "A finding", "deadline": "2026-01-01"}],
            "policies": [due | {"id": "p", "title": "A policy", "nextReviewAt": "2026-01-02"}],
        }
    )
    said = text_of(people["viewer"].get(DUE))
    assert "A finding 1 Jan 2026 Overdue Deadline Finding Nobody" in said
    assert "A policy 2 Jan 2026 Overdue Next review Policy Nobody" in said
    events = people["admin"].get(f"{ALPHA}events/").text
    assert '<option value="auditItems">Findings</option>' in events


def test_where_nothing_is_due(people: People) -> None:
    people.instance.sql("DELETE FROM reminder")
    for kind in Restorable.kinds:
        people.instance.sql(f"UPDATE {kind.__tablename__} SET archived_at = '2026-01-01T00:00:00.000Z'")
    assert "Nothing is due in this period." in text_of(people["viewer"].get(DUE))
