"""What is done with one press on a page where one sees it, and undone there."""

from __future__ import annotations

import re

import pytest
from httpx2 import Response

from normata.records.kinds import Task
from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA, Form, Parsed, send
from tests.console.app.records.recording import bearer, made, page_of, stored
from tests.console.browser import Browser, text_of
from tests.world import ALPHA as ALPHA_ID

MOON = f"{ALPHA}frameworks/fw-moon/"


# Each of these closes two gaps of fw-moon.
_WINS = [("sun.A.7", "6"), ("sun.A.7", "7"), ("sun.A.8", "8"), ("sun.A.8", "9"), ("sun.A.9", "10"), ("sun.A.9", "11")]
_MATCHES = [
    {"id": f"win-{number}", "organizationId": ALPHA_ID, "matchLevel": "FULL"}
    | {"sourceControlId": source, "targetControlId": f"moon.A.{number}"}
    for source, number in _WINS
]


def _undone(browser: Browser, page: Response, field: str) -> Response:
    """What Undo in the note of a page answers."""
    undo = next(form for form in Parsed(page).forms if form.fields.get(field))
    assert ("step", "undo") in undo.buttons
    return send(browser, undo, step="undo")


def _assessed(people: People, control: str) -> str | None:
    params = {"organizationId": ALPHA_ID}
    answer = people.instance.client.get(f"/controls/{control}/", params=params, headers=bearer(people, "viewer"))
    assert answer.status_code == 200, answer.text
    status: str | None = answer.json()["coverage"]["coverageStatus"]
    return status


@pytest.mark.parametrize("page", ["gaps/", "plan/?steps=25", ""])
def test_the_biggest_wins_are_assessed_where_they_are_listed(page: str, people: People) -> None:
    people.instance.load({"controlMatches": _MATCHES})
    editor = people["editor"]
    parsed = Parsed(editor.get(MOON + page))
    single, several = (form for form in parsed.forms if form.action.endswith("/coverage/"))
    wins = [value for name, value in single.buttons if name == "only"]
    assert len(wins) > 2
    assert not people["viewer"].get(MOON + page).text.count('name="only"')
    assert all(_assessed(people, one) is None for one in wins[:3])

    # One by its button; what is ticked meanwhile stays so.
    ticked = f"{single.fields['return_to'].partition('#')[0]}{'&' if '?' in page else '?'}selected={wins[1]}#wins"
    done = send(editor, single, only=wins[0], return_to=ticked)
    there = done.headers["location"]
    assert there.startswith(f"{MOON}{page}")
    assert there.endswith("#wins")  # the head of the list, above its first row
    assert f"selected={wins[1]}" in there
    assert (_assessed(people, wins[0]), _assessed(people, wins[1])) == ("FULL", None)
    noted = editor.get(there)
    assert "Saved. The effective coverage" in text_of(noted)
    assert "Undo" not in people["viewer"].get(there).text  # nor is it their session's note
    assert "done=assessments_undone" in _undone(editor, noted, "assessed").headers["location"]
    assert _assessed(people, wins[0]) is None

    # Several that are ticked; then nothing is.
    chosen = [one for one in wins if one in several.choices.values() or one in wins[:3]]
    done = send(editor, several, selected=chosen[:3], return_to=ticked)
    assert "selected=" not in done.headers["location"]
    assert [_assessed(people, one) for one in chosen[:3]] == ["FULL"] * 3
    assert "Saved for all selected controls" in text_of(editor.get(done.headers["location"]))
    preview = send(editor, several, selected=chosen[:3], step="preview")
    assert "Nothing has been changed yet" in text_of(preview)


def test_a_gap_leads_to_its_control_and_back(people: People) -> None:
    editor = people["editor"]
    link = next(link for link in Parsed(editor.get(f"{MOON}gaps/")).links if f"{ALPHA}controls/moon.A." in link)
    page = editor.get(link)
    assert f"{MOON}gaps/" in Parsed(page).links
    assert "Why it is not covered" in text_of(page)
    form = Parsed(page).form("/coverage/")
    refused = send(editor, form, coverageStatus="EXCLUDED")
    assert refused.status_code == 400
    assert f"{MOON}gaps/" in Parsed(refused).links
    done = send(editor, form, coverageStatus="FULL")
    page = editor.get(done.headers["location"])
    assert f"{MOON}gaps/" in Parsed(page).links
    assert "Why it is covered" in text_of(page)
    _undone(editor, page, "assessed")
    assert "Why it is not covered" in text_of(editor.get(link))


def test_a_task_is_done_where_it_is_due(people: People) -> None:
    editor = people["editor"]
    task = made(people, Task, title="Late", deadline="2026-01-01", assigneeMemberId="member-editor", status="BLOCKED")
    for place in (ALPHA, f"{ALPHA}due/?mine=true", page_of(Task, task)):
        page = editor.get(place)
        form = next(form for form in Parsed(page).forms if form.id == "finish")
        assert ("selected", f"tasks:{task}") in form.buttons
        done = send(editor, form, selected=f"tasks:{task}")
        assert done.headers["location"].startswith(place)
        assert stored(people, Task, task)["status"] == "DONE"
        noted = editor.get(done.headers["location"])
        assert "Marked as done." in text_of(noted)
        assert f'value="tasks:{task}" form="finish"' not in noted.text
        forged = done.headers["location"].replace("record_finished", "assessments_undone")
        assert not [one for one in Parsed(editor.get(forged)).forms if one.fields.get("changed")]
        assert "done=changes_undone" in _undone(editor, noted, "changed").headers["location"]
        assert stored(people, Task, task)["status"] == "BLOCKED"
        assert 'form="finish"' not in people["viewer"].get(place).text


def test_records_are_assigned_and_archived_from_their_list(people: People) -> None:
    editor = people["editor"]
    tasks = [made(people, Task, title=f"Bar {number}") for number in range(3)]
    place = page_of(Task, query="search=Bar")
    selected = [f"tasks:{one}" for one in tasks]
    bulk = next(form for form in Parsed(editor.get(place)).forms if form.action.endswith("/change/tasks/"))
    nobody = send(editor, bulk, selected=selected, step="assign")
    assert "done=nobody_chosen" in nobody.headers["location"]
    done = send(editor, bulk, selected=selected, step="assign", assigneeMemberId="member-owner")
    assert {stored(people, Task, one)["assigneeMemberId"] for one in tasks} == {"member-owner"}
    noted = editor.get(done.headers["location"])
    assert "Changed: 3 records." in text_of(noted)
    _undone(editor, noted, "changed")
    assert {stored(people, Task, one)["assigneeMemberId"] for one in tasks} == {None}

    rows = next(form for form in Parsed(editor.get(place)).forms if form.id == "one")
    assert ("only", selected[1]) in rows.buttons
    panel = Parsed(editor.get(f"{place}&open={tasks[1]}"))
    beside = next(form for form in panel.forms if form.fields.get("selected") == selected[1])
    for form, pressed in (
        (rows, {"only": selected[1]}),
        (Form(beside.action, "post", beside.fields), {"step": "archive"}),
    ):
        done = send(editor, form, **pressed)
        assert done.headers["location"].startswith(f"{page_of(Task)}?search=Bar")
        assert stored(people, Task, tasks[1])["archivedAt"] is not None
        noted = editor.get(done.headers["location"])
        assert "Archived: Bar 1" in text_of(noted)
        undo = next(one for one in Parsed(noted).forms if one.fields.get("archiveId"))
        send(editor, undo, step="restore")
        assert stored(people, Task, tasks[1])["archivedAt"] is None


def _led_back(browser: Browser, page: Response, form: Form, number: int) -> tuple[str, str]:
    """Where the button in a row leads back to: the row before it, by the fragment; and the button's value."""
    found = re.search(
        rf'id="r{number}".*?<button[^>]*formaction="([^"]*)" name="(\w+)" value="([^"]*)"', page.text, re.DOTALL
    )
    assert found is not None
    action, name, value = found.groups()
    assert (name, value) in form.buttons
    done = send(browser, Form(action, "post", form.fields), **{name: value})
    address, _, fragment = done.headers["location"].partition("#")
    assert f'id="{fragment}"' in browser.get(address).text
    return fragment, value


def test_the_page_is_back_at_the_row_before(people: People) -> None:
    """With script it stays where it is: ``tests/browser/test_staying.py``."""
    people.instance.load({"controlMatches": _MATCHES})
    editor = people["editor"]
    tasks = [
        made(people, Task, title=f"Due {number}", deadline="2026-01-01", assigneeMemberId="member-editor")
        for number in range(3)
    ]
    for place, form_id in (
        (MOON, "one"),
        (f"{MOON}gaps/", "one"),
        (f"{MOON}plan/?steps=25", "one"),
        (f"{ALPHA}due/", "finish"),
        (ALPHA, "finish"),
        (page_of(Task, query="search=Due"), "one"),
    ):
        page = editor.get(place)
        form = next(form for form in Parsed(page).forms if form.id == form_id)
        fragment, value = _led_back(editor, page, form, 2)
        assert fragment == "r1", place
        if form_id == "finish" and value.removeprefix("tasks:") in tasks:
            assert stored(people, Task, value.removeprefix("tasks:"))["status"] == "DONE"


def test_conflicts_do_not_move_the_biggest_wins(people: People) -> None:
    people.instance.load({"controlMatches": _MATCHES})
    editor = people["editor"]
    page = editor.post(f"{ALPHA}coverage/", only="moon.A.6", coverageStatus="NONE", step="do")
    assert page.status_code == 303
    editor.post(f"{ALPHA}coverage/", only="sun.A.7", coverageStatus="FULL", step="do")
    page = editor.get(f"{MOON}gaps/")
    cards = re.findall(r'<section class="card" aria-labelledby="(\w+)"', page.text)
    assert cards == ["wins", "conflicts", "all"]
