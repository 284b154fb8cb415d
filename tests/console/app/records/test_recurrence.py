"""Work that recurs: the form offers how often, and its page has when the next one is due, and which it is."""

from __future__ import annotations

import re

import pytest

from normata.records.base import Restorable
from normata.records.kinds import EntitlementReview, RiskReview, Task
from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA, Parsed, send
from tests.console.app.records.recording import made, page_of, stored
from tests.console.browser import is_refused, text_of
from tests.stored import rows

FIRST, NEXT = "2100-01-31T00:00:00.000Z", "2100-04-30T00:00:00.000Z"
WORDS = "Every second Tuesday"


def test_the_form_of_a_task_offers_frequencies_and_has_what_stands_there(people: People) -> None:
    editor = people["editor"]
    task = made(people, Task, title="Look", deadline=FIRST, frequency=WORDS)
    page = editor.get(f"{page_of(Task, task)}edit/")
    offered = page.text.partition('name="frequency"')[2].partition("</select>")[0]
    values = [part.partition('"')[0] for part in offered.split('<option value="')[1:]]
    assert values == ["", "DAILY", "WEEKLY", "MONTHLY", "QUARTERLY", "HALF_YEARLY", "YEARLY", WORDS]
    assert f'value="{WORDS}" selected' in offered
    assert "Does not repeat" in offered
    form = Parsed(page).form(f"{task}/edit/")
    assert send(editor, form, title="Look again").status_code == 303
    assert stored(people, Task, task)["frequency"] == WORDS
    form = Parsed(editor.get(f"{page_of(Task, task)}edit/")).form(f"{task}/edit/")
    assert send(editor, form, frequency="MONTHLY").status_code == 303
    assert "Repeats monthly; next on 28 Feb 2100" in text_of(editor.get(page_of(Task, task)))


def test_a_task_that_is_done_names_and_links_the_next_one(people: People) -> None:
    editor = people["editor"]
    task = made(people, Task, title="Look", deadline=FIRST, frequency="QUARTERLY", assigneeMemberId="member-editor")
    page = editor.get(page_of(Task, task))
    assert "Repeats quarterly; next on 30 Apr 2100" in text_of(page)
    form = next(form for form in Parsed(page).forms if form.id == "finish")
    done = send(editor, form, selected=f"tasks:{task}")
    noted = editor.get(done.headers["location"])
    following = page_of(Task, next(row["id"] for row in rows(people.instance.database, Task, deadline=NEXT)))
    assert following in Parsed(noted).links
    number = stored(people, Task, following.split("/")[-2])["shortId"]
    assert f"Marked as done. The next one, {number}, is due on 30 Apr 2100." in text_of(noted)
    assert f"Next: Look ({number})" in text_of(noted)
    forged = done.headers["location"].replace("30+Apr", "1+May")
    assert forged != done.headers["location"]
    assert "is due on" not in text_of(editor.get(forged))
    assert "Repeats quarterly; next on 31 Jul 2100" in text_of(people["viewer"].get(following))


def test_a_task_that_was_done_late_says_what_was_skipped(people: People) -> None:
    task = made(people, Task, title="Look", deadline="2024-02-29T00:00:00.000Z", frequency="YEARLY")
    page = people["editor"].get(page_of(Task, task))
    form = next(form for form in Parsed(page).forms if form.id == "finish")
    send(people["editor"], form, selected=f"tasks:{task}")
    [row] = [one for one in rows(people.instance.database, Task, title="Look") if one["id"] != task]
    assert re.search(r"\d dates? skipped: .*28 Feb 2025", text_of(people["viewer"].get(page_of(Task, row["id"]))))


@pytest.mark.parametrize("kind", [EntitlementReview, RiskReview], ids=lambda kind: kind.path)
def test_an_editor_lets_a_review_recur(kind: type[Restorable], people: People) -> None:
    editor, viewer = people["editor"], people["viewer"]
    review = made(people, kind, title="Spring", deadline=FIRST)
    page = page_of(kind, review)
    place = f"{page}recurrence/"
    assert place not in viewer.get(page).text
    assert is_refused(viewer.post(place, frequency="YEARLY"))
    form = Parsed(editor.get(page)).form(place)
    for frequency, words in (("YEARLY", "Repeats yearly; next on 31 Jan 2101"), ("", "")):
        saved = editor.get(send(editor, form, frequency=frequency).headers["location"])
        assert "Recurrence saved." in text_of(saved)
        assert words in text_of(saved)
    history = text_of(editor.get(page)).partition("History")[2]
    assert "set the recurrence of it Does not repeat" in history
    assert "set the recurrence of it Repeats yearly" in history
    assert editor.post(place, frequency="HOURLY").status_code == 400
    assert editor.post(f"{ALPHA}records/tasks/tasks-live-org-alpha/recurrence/", frequency="DAILY").status_code == 404
