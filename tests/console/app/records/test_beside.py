"""Dates and times in the forms of records, and the form beside a list."""

from __future__ import annotations

from normata.records.kinds import Incident, Task
from tests.console.app.conftest import People
from tests.console.app.records.recording import Sheet, made, page_of, stored
from tests.console.browser import is_refused, text_of

# --- Days and times


def test_a_date_is_a_day_and_a_time_is_where_its_reader_is(shared: People) -> None:
    """Of a task the day matters; of an incident the time, in the zone that the browser has said."""
    task = made(shared, Task, deadline="2026-07-01T22:30:00Z")
    incident = made(shared, Incident, detectedAt="2026-07-01T22:30:00Z")
    browser = shared["editor"]
    browser.client.cookies.set("normata-zone", "Europe%2FBerlin")
    try:
        sheet = Sheet(browser.get(page_of(Task, task, "edit")), "/edit/")
        assert sheet.value("deadline") == "2026-07-02"
        page = browser.get(page_of(Incident, incident, "edit"))
        assert "Times are those of Europe/Berlin." in text_of(page)
    finally:
        browser.client.cookies.delete("normata-zone")  # the form says itself where its times are
    sheet.send(browser, title="Renamed")
    assert stored(shared, Task, task)["deadline"] == "2026-07-01T22:30:00.000Z"
    sheet = Sheet(browser.get(page_of(Task, task, "edit")), "/edit/")
    sheet.send(browser, deadline="2026-07-03")
    assert stored(shared, Task, task)["deadline"] == "2026-07-03T00:00:00.000Z"
    sheet = Sheet(page, "/edit/")
    assert sheet.value("detectedAt") == "2026-07-02T00:30"
    sheet.send(browser, detectedAt="2026-12-02T00:45")
    assert stored(shared, Incident, incident)["detectedAt"] == "2026-12-01T23:45:00.000Z"


# --- Beside the list


def test_what_changes_most_is_changed_beside_the_list(shared: People) -> None:
    task = made(shared, Task, title="Beside", description="It stays.")
    place = page_of(Task, query=f"search=Beside&open={task}")
    sheet = Sheet(shared["editor"].get(place), "/edit/")
    assert set(sheet.fields) >= {"status", "assigneeMemberId", "deadline"}
    answer = sheet.send(shared["editor"], status="DONE", deadline="2026-12-24", return_to=place)
    assert answer.headers["location"] == f"{place}&done=record_saved"
    found = stored(shared, Task, task)
    assert (found["status"], found["deadline"]) == ("DONE", "2026-12-24T00:00:00.000Z")
    assert (found["title"], found["description"]) == ("Beside", "It stays.")


def test_whoever_is_second_beside_the_list_is_told_what_changed_there(shared: People) -> None:
    task = made(shared, Task, title="Twice")
    place = page_of(Task, query=f"search=Twice&open={task}")
    first, second = (Sheet(shared[user].get(place), "/edit/") for user in ("editor", "admin"))
    first.send(shared["editor"], status="DONE")
    answer = second.send(shared["admin"], status="BLOCKED", return_to=place)
    assert is_refused(answer, status=412)
    assert 'id="now-status">Current value: <span class="whole">DONE' in answer.text
    assert 'id="now-title' not in answer.text
    again = Sheet(answer, "/edit/").send(shared["admin"])
    assert again.headers["location"] == f"{place}&done=record_saved"
    assert stored(shared, Task, task)["status"] == "BLOCKED"
