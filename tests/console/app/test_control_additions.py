"""What is added to a control from its page in one step: a record and its link, or the link of what there is already."""

from __future__ import annotations

import re
from typing import Any

import pytest

from normata.console.app.controls import ADDITIONS
from normata.records.archive.queries import KINDS
from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA, Form, Parsed, send
from tests.console.browser import is_refused, text_of
from tests.databases import on_both
from tests.world import ALPHA as ALPHA_ID

CONTROL = "sun.A.1"
PAGE = f"{ALPHA}controls/{CONTROL}/"


def form_of(people: People, kind: str, *, existing: bool = False) -> Form:
    """The form that creates something of a kind, or the one for what there is already."""
    forms = [
        one
        for one in Parsed(people["editor"].get(f"{PAGE}add/{kind}/")).forms
        if one.action.endswith("/add/" + kind + "/")
    ]
    return forms[1 if existing else 0]


def title(kind: str) -> str:
    """The field with the name of a record."""
    return KINDS[kind].title_column()


def named(people: People, kind: str, name: str) -> list[dict[str, Any]]:
    """The records of a kind with a name, archived ones, too."""
    found = people.instance.listing(f"/{kind}/", "editor").items(archived="include")
    return [one for one in found if one[title(kind)] == name]


def links_of(people: People) -> list[tuple[str, str, str]]:
    """The relations of the control, each with what is at the other end, and its name."""
    items = people.instance.listing("/links/", "editor").items(kind="controls", id=CONTROL)
    ends = [(one["relation"], one["to"] if one["from"]["id"] == CONTROL else one["from"]) for one in items]
    return [(relation, end["kind"], end["label"]) for relation, end in ends]


@pytest.mark.parametrize(
    ("kind", "relation"),
    [*zip(ADDITIONS, ("IMPLEMENTS", "AFFECTS", "SUPPORTS", "IMPLEMENTS", "TREATS"), strict=True)],
)
@on_both
def test_a_new_record_comes_linked_and_goes_with_its_undo(kind: str, relation: str, people: People) -> None:
    editor = people["editor"]
    assert f"{PAGE}add/{kind}/" in Parsed(editor.get(PAGE)).links
    form = form_of(people, kind)
    made = send(editor, form, **{title(kind): "From the control"})
    assert made.status_code == 303
    assert made.headers["location"].startswith(f"{PAGE}?added=")
    (record,) = named(people, kind, "From the control")
    assert (relation, kind, "From the control") in links_of(people)
    assert record.get("controlId", CONTROL) == CONTROL
    assert record.get("controlCoverageId", f"say-{CONTROL}") == f"say-{CONTROL}"
    page = editor.get(made.headers["location"])
    assert "was created, and" in text_of(page)
    assert "From the control" in text_of(page)
    # The same form makes nothing twice.
    assert send(editor, form, **{title(kind): "From the control"}).status_code == 303
    assert len(named(people, kind, "From the control")) == 1

    undo = next(one for one in Parsed(page).forms if "added" in one.fields)
    undone = send(editor, undo, step="undo")
    assert undone.headers["location"] == f"{PAGE}?done=addition_undone"
    assert named(people, kind, "From the control")[0]["archivedAt"] is not None
    assert "From the control" not in {name for *_, name in links_of(people)}
    again = send(editor, undo, step="undo")
    assert again.headers["location"] == f"{PAGE}?done=no_addition_to_undo"


def test_a_task_of_a_control_that_nobody_has_assessed_is_among_its_tasks(people: People) -> None:
    page = f"{ALPHA}controls/sun.A.9/"
    editor = people["editor"]
    form = Parsed(editor.get(f"{page}add/tasks/")).form("/add/tasks/")
    assert send(editor, form, title="Look at it first").status_code == 303
    assert named(people, "tasks", "Look at it first")[0]["controlCoverageId"] is None
    assert re.search(r"Tasks 1 New task\s+Look at it first", text_of(editor.get(page)))


def test_what_there_is_already_is_linked_once(people: People) -> None:
    editor, live = people["editor"], f"evidence-live-{ALPHA_ID}"
    form = form_of(people, "evidence", existing=True)
    attached = send(editor, form, other=live)
    page = editor.get(attached.headers["location"])
    assert "The evidence supports the control now." in text_of(page)
    assert send(editor, form, other=live).headers["location"] == f"{PAGE}?done=linked_before"
    undo = next(one for one in Parsed(page).forms if "added" in one.fields)
    assert send(editor, undo, step="undo").status_code == 303
    assert links_of(people) == []
    assert people.instance.listing("/evidence/", "editor").items()  # it is not archived by that
    refused = send(editor, form, other="nothing")
    assert is_refused(refused, status=400)
    assert "names no evidence that exists" in text_of(refused)
    none = send(editor, form, other="")
    assert (none.status_code, "Choose one of the list." in text_of(none)) == (400, True)


def test_evidence_is_attached_with_its_files(people: People) -> None:
    editor, form = people["editor"], form_of(people, "evidence")
    files = [
        ("file", (r"C:\tests\restore.txt", b"It came back.", "text/plain")),
        ("file", ("log.csv", b"a,b", "text/csv")),
    ]
    made = editor.client.post(form.action, data=form.fields, files=files, headers={"Sec-Fetch-Site": "same-origin"})
    assert made.status_code == 303, made.text
    (evidence,) = named(people, "evidence", "restore.txt")
    assert (evidence["type"], len(evidence["fileIds"])) == ("FILE", 2)
    assert ("SUPPORTS", "evidence", "restore.txt") in links_of(people)
    for fields, sort in (({"url": "https://example.org/scan"}, "ADDRESS"), ({}, "NOTE")):
        assert send(editor, form_of(people, "evidence"), name=sort, **fields).status_code == 303
        assert named(people, "evidence", sort)[0]["type"] == sort


def test_without_its_link_nothing_is_created(people: People) -> None:
    editor, form = people["editor"], form_of(people, "policies")
    form.action = form.action.replace(CONTROL, "nothing")
    assert is_refused(send(editor, form, title="Alone"), status=404)
    assert named(people, "policies", "Alone") == []
    foreign = form_of(people, "risks")
    foreign.action = foreign.action.replace(CONTROL, "nothing")
    assert is_refused(send(editor, foreign, name="Alone"), status=404)
    assert named(people, "risks", "Alone") == []


def test_what_is_wrong_is_shown_with_what_was_typed(people: People) -> None:
    editor = people["editor"]
    refused = send(editor, form_of(people, "tasks"), title="", deadline="tomorrow")
    assert is_refused(refused, status=400)
    assert 'value="tomorrow"' in refused.text
    assert links_of(people) == []
    found = send(editor, form_of(people, "policies", existing=True), step="find", **{"find.other": "live"})
    assert re.search(rf'<option value="policies-live-{ALPHA_ID}"', found.text)
    assert is_refused(send(people["viewer"], form_of(people, "tasks"), title="Mine"), status=403)
    assert editor.get(f"{PAGE}add/labels/").status_code == 404
