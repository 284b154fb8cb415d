"""Comments on the pages of records and controls."""

from __future__ import annotations

import re
from functools import partial

import pytest

from normata.core.changes.unit_of_work import UnitOfWork
from normata.identity import users
from normata.notifications.model import Notification
from normata.records.kinds import Task
from tests import stored
from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA, Parsed, send
from tests.console.app.records.recording import made, page_of
from tests.console.browser import text_of
from tests.databases import change

CONTROL = f"{ALPHA}controls/moon.A.1/"


@pytest.mark.parametrize("place", ["control", "record"])
def test_a_member_comments_changes_and_removes(place: str, people: People) -> None:
    page = CONTROL if place == "control" else page_of(Task, made(people, Task))
    viewer = people["viewer"]
    [form] = [one for one in Parsed(viewer.get(page)).forms if one.action == f"{ALPHA}comments/"]
    for _ in range(2):  # a second click writes no second one
        assert send(viewer, form, text="Is **this** right?").headers["location"].startswith(page)
    shown = viewer.get(page)
    assert shown.text.count("Is <strong>this</strong> right?") == 1
    [own] = [one.action for one in Parsed(shown).forms if one.action.startswith(f"{ALPHA}comments/01")]
    assert own not in people["editor"].get(page).text.replace(f'href="{own}"', "")
    [change] = [one for one in Parsed(viewer.get(own)).forms if one.action == own]
    assert change.fields["text"].strip() == "Is **this** right?"
    send(viewer, change, text="It is.")
    assert "It is." in text_of(viewer.get(page))
    assert "changed" in text_of(viewer.get(page))
    read = people["editor"].get(own)
    assert "It is." in text_of(read)
    assert own not in [one.action for one in Parsed(read).forms]
    [remove] = [one for one in Parsed(viewer.get(page)).forms if one.action == own]
    send(viewer, remove, step="remove")
    assert "Nobody has commented yet." in text_of(viewer.get(page))


def test_what_is_refused_is_shown_again(people: People) -> None:
    editor = people["editor"]
    [form] = [one for one in Parsed(editor.get(CONTROL)).forms if one.action == f"{ALPHA}comments/"]
    assert send(editor, form, text=" ").headers["location"].startswith(CONTROL)
    refused = send(editor, form, text="a" * 10_001)
    assert refused.status_code == 400
    assert "a" * 10_001 in refused.text
    assert "at most 10000 characters" in text_of(refused).replace(",", "")


def _rename(user: str, name: str, unit: UnitOfWork) -> None:
    users.rename(unit, f"user-{user}", name)


def test_what_is_suggested_mentions_that_member_and_nobody_else(people: People) -> None:
    """Also of namesakes, of a name that begins another one, and of one that looks like an address."""
    called = {"viewer": "Ann Lee", "admin": "ann lee", "owner": "Ann", "auditor": "Ann@lee.example (QA)"}
    database = people.instance.database
    for user, name in called.items():
        change(database, partial(_rename, user, name))
    editor, task = people["editor"], made(people, Task)
    found = editor.get(f"{ALPHA}find/?kind=mentions&search=ann", accept="application/json").json()
    items = [item for group in found for item in group["items"]]
    assert sorted(item["label"] for item in items) == sorted(called.values())
    assert {item["label"]: item["note"] != "" for item in items} == {name: name != "Ann" for name in called.values()}, (
        "whoever could be mistaken is mentioned by their address"
    )
    mentioned: list[set[str]] = []
    for item in items:
        body = {
            "about": {"kind": "tasks", "id": task},
            "organizationId": "org-alpha",
            "text": f"See {item['id']} here.",
        }
        headers = people.instance.bearer("editor")
        assert people.instance.client.post("/comments/", json=body, headers=headers).status_code == 201
        users_now = {row["user_id"] for row in stored.rows(database, Notification, type="comment.mentioned")}
        mentioned.append(users_now - {one for known in mentioned for one in known})
    assert sorted(map(len, mentioned)) == [1, 1, 1, 1]
    assert {one for known in mentioned for one in known} == {f"user-{user}" for user in called}
    assert editor.get(f"{ALPHA}find/?kind=mentions&search=nobody-is-called-so", accept="application/json").json() == []


def test_the_form_says_whom_it_suggests(people: People) -> None:
    page = people["viewer"].get(CONTROL).text
    assert page.count("data-mentions=") == len(re.findall(r'src="[^"]*mentions[^"]*\.js"', page)) == 1
