"""Comments on the pages of records and controls."""

from __future__ import annotations

import pytest

from normata.records.kinds import Task
from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA, Parsed, send
from tests.console.app.records.recording import made, page_of
from tests.console.browser import text_of

CONTROL = f"{ALPHA}controls/moon.A.1/"


@pytest.mark.parametrize("place", ["control", "record"])
def test_a_member_comments_changes_and_removes(place: str, people: People) -> None:
    page = CONTROL if place == "control" else page_of(Task, made(people, Task))
    viewer = people["viewer"]
    [form] = [one for one in Parsed(viewer.get(page)).forms if one.action == f"{ALPHA}comments/"]
    assert send(viewer, form, text="Is **this** right?").headers["location"].startswith(page)
    shown = viewer.get(page)
    assert "Is <strong>this</strong> right?" in shown.text
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
