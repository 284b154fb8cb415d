"""Changing fields of all selected records with the forms of the console."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

from normata.records.kinds import Incident, Task
from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA, Form, Parsed, send
from tests.console.app.records.recording import made, page_of, stored
from tests.console.browser import is_refused, text_of

CHANGE = f"{ALPHA}change/tasks/"


def test_selected_records_are_changed_after_a_preview_and_undone(shared: People) -> None:
    browser = shared["editor"]
    first, second = (made(shared, Task, title=f"Alike {number}", description="Old.") for number in (1, 2))
    third = made(shared, Task, title="Alike 3", status="BLOCKED", deadline="2027-02-03")
    place = page_of(Task, query="search=Alike")
    selected = [f"tasks:{one}" for one in (first, second, third)]
    bulk = Parsed(browser.get(place)).form("/change/tasks/")
    page = send(browser, bulk, selected=selected, step="choose")
    assert "Change 3 tasks" in text_of(page)
    form = Parsed(page).form("/change/tasks/")
    assert {"status", "assigneeMemberId", "deadline", "description", "order"} <= set(form.fields) | {
        "status",
        "assigneeMemberId",
    }
    refused = send(browser, form, selected=selected, step="preview")
    assert refused.status_code == 400
    assert "Tick at least one field" in text_of(refused)

    # What is ticked counts, and nothing else; empty is cleared.
    filled: dict[str, str | list[str]] = {"selected": selected, "change": ["status", "deadline", "description"]}
    filled |= {"status": "BLOCKED", "deadline": "2027-02-03", "description": "", "assigneeMemberId": "member-owner"}
    preview = send(browser, form, **filled, step="preview")
    assert preview.status_code == 200
    assert "2 records would change" in text_of(preview)
    assert "1 record is like this already" in text_of(preview)
    assert stored(shared, Task, first)["status"] == "TODO"
    doing = Parsed(preview).form("/change/tasks/")
    done = send(browser, doing, **filled, step="do")
    back = urlsplit(done.headers["location"])
    assert back.path == page_of(Task)
    assert "selected" not in parse_qs(back.query)
    for one in (first, second):
        found = stored(shared, Task, one)
        assert (found["status"], found["deadline"][:10], found["description"]) == ("BLOCKED", "2027-02-03", None)
        assert found["assigneeMemberId"] is None

    listed = browser.get(done.headers["location"])
    assert "Changed: 2 records." in text_of(listed)
    forged = browser.get(done.headers["location"].replace("many=2", "many=9"))
    assert "Changed:" not in text_of(forged)
    undo = next(one for one in Parsed(listed).forms if one.fields.get("changed"))
    assert "done=changes_undone" in send(browser, undo, step="undo").headers["location"]
    assert [stored(shared, Task, one)["description"] for one in (first, second, third)] == ["Old.", "Old.", None]
    assert "done=no_change_to_undo" in send(browser, undo, step="undo").headers["location"]


def test_what_cannot_be_is_said_where_it_is_and_what_was_typed_stays(shared: People) -> None:
    browser = shared["editor"]
    one, gone = made(shared, Task, title="Stays"), made(shared, Task, title="Goes")
    shared.instance.client.post(f"/tasks/{gone}/archive/", headers=shared.instance.bearer("editor"))
    form = Form(CHANGE, "post", {"return_to": page_of(Task), "zone": "UTC"})
    typed: dict[str, str | list[str]] = {
        "change": ["status", "order", "description"],
        "other.status": "no token!",
        "status": "",
    }
    page = send(browser, form, selected=[f"tasks:{one}"], order="many", description="Typed.", step="preview", **typed)
    assert page.status_code == 400
    assert "Order: must be an integer" in text_of(page) or "must be an integer" in text_of(page)
    assert Parsed(page).form("/change/tasks/").fields["description"] == "Typed."
    both = [f"tasks:{one}", f"tasks:{gone}"]
    page = send(browser, form, selected=both, change="description", description="Typed.", step="do")
    assert page.status_code == 409
    assert "Goes : The record is archived" in text_of(page)
    assert stored(shared, Task, one)["description"] is None
    nothing = send(browser, form, selected=["incidents:x"], step="preview")
    assert "done=no_record_selected" in nothing.headers["location"]
    assert is_refused(shared["viewer"].post(CHANGE, selected=both[0]))


def test_flags_and_times_are_changed_as_their_reader_writes_them(shared: People) -> None:
    browser, one = shared["editor"], made(shared, Incident, name="Flagged")
    form = Form(f"{ALPHA}change/incidents/", "post", {"zone": "Europe/Berlin", "selected": f"incidents:{one}"})
    typed = {"isPersonalDataBreach": "true", "detectedAt": "2026-07-02T00:30"}
    send(browser, form, change=list(typed), step="do", **typed)
    found = stored(shared, Incident, one)
    assert (found["isPersonalDataBreach"], found["detectedAt"]) == (True, "2026-07-01T22:30:00.000Z")
