"""Archiving and restoring from the pages: what is told, what takes it back, and what stands in the way."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from normata.console.filters import day
from normata.records.base import Restorable
from normata.records.kinds import Label, Policy, Task
from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA, FRAME, OWN, Parsed
from tests.console.app.records.recording import ARCHIVE, Sheet, made, page_of, stored
from tests.console.browser import Browser, is_refused, new_link, text_of
from tests.records.shapes import KINDS, WITH_SLUG
from tests.world import record_id


def _selected(*records: tuple[type[Restorable], str]) -> list[str]:
    return [f"{kind.path}:{one}" for kind, one in records]


def _post(people: People, user: str = "editor", **fields: Any) -> Any:
    return people[user].post(ARCHIVE, **fields)


@pytest.mark.parametrize("kind", KINDS)
def test_archive_undo_restore_undo(kind: type[Restorable], shared: People) -> None:
    """From the record's own page, by its forms alone, as without script."""
    editor, record = shared["editor"], made(shared, kind)
    title = stored(shared, kind, record)[kind.title_column()]
    page = editor.get(page_of(kind, record))

    answer = Sheet(page, "/archive/").send(editor, step="archive", reason="Of no use: <b>")

    assert answer.status_code == 303
    page = editor.get(answer.headers["location"])
    said = text_of(page)
    assert f"Archived: {title} Undo" in said
    assert "By Editor," in said
    assert "Of no use: <b>" in Parsed(page).text
    assert stored(shared, kind, record)["archivedAt"] is not None
    assert page_of(kind, record, "edit") not in Parsed(page).links

    answer = Sheet(page, "/archive/").send(editor, step="restore")  # the form of the note is the first one

    page = editor.get(answer.headers["location"])
    assert answer.headers["location"].startswith(page_of(kind, record))
    assert f"Restored: {title} Undo" in text_of(page)
    assert stored(shared, kind, record)["archivedAt"] is None

    answer = Sheet(page, "/archive/").send(editor, step="archive")

    assert f"Archived: {title} Undo" in text_of(editor.get(answer.headers["location"]))
    assert stored(shared, kind, record)["archivedAt"] is not None


def test_what_is_selected_in_a_list_is_archived_as_one(shared: People) -> None:
    tasks = [made(shared, Task, title=f"Many {number}") for number in range(3)]
    place = page_of(Task, query="search=Many&sortColumn=title")
    sheet = Sheet(shared["editor"].get(place), "/archive/")
    answer = sheet.send(shared["editor"], step="archive", selected=_selected(*((Task, one) for one in tasks[:2])))
    back = answer.headers["location"]
    assert back.startswith(f"{place}&undo=")
    page = shared["editor"].get(back)
    assert "Archived: 2 records. Undo" in text_of(page)
    assert [stored(shared, Task, one)["archivedAt"] is None for one in tasks] == [False, False, True]

    answer = Sheet(page, "/archive/").send(shared["editor"], step="restore")

    assert "Restored: 2 records. Undo" in text_of(shared["editor"].get(answer.headers["location"]))
    assert all(stored(shared, Task, one)["archivedAt"] is None for one in tasks)
    # What is there to be undone no more is no note any more, as after going back.
    assert "Undo" not in text_of(shared["editor"].get(back))


def test_nothing_is_selected_any_more_afterwards(shared: People) -> None:
    """Script keeps the selection in the address of a list."""
    task = made(shared, Task)
    selected = _selected((Task, task))
    place = f"{page_of(Task)}?status=TODO&selected={selected[0]}"
    back = _post(shared, step="archive", selected=selected, return_to=place).headers["location"]
    assert back.startswith(f"{page_of(Task)}?status=TODO&undo=")


def test_a_note_cannot_be_forged(shared: People) -> None:
    """Nor taken to another session: a link would claim that something was done, and ask to undo it."""
    task = made(shared, Task)
    answer = Sheet(shared["editor"].get(page_of(Task, task)), "/archive/").send(shared["editor"], step="archive")
    query = dict(parse_qsl(urlsplit(answer.headers["location"]).query))
    assert query.keys() == {"undo", "proof"}
    page = page_of(Task, task)
    forged = [
        f"{page}?undo={query['undo']}",
        f"{page}?undo={query['undo']}&proof={'0' * 32}",
        f"{page}?undo={query['undo']}&proof=%C3%BC",
        f"{page}?restored=tasks:{task}&proof={query['proof']}",
        f"{page}?restored=tasks:{record_id(Task, 'live')}",
    ]
    for address in forged:
        assert 'class="toast"' not in shared["editor"].get(address).text
    assert 'class="toast"' in shared["editor"].get(f"{page}?undo={query['undo']}&proof={query['proof']}").text
    other = Browser(shared.instance)
    other.post("/sign-in/link/", secret=new_link(shared.instance, "editor"))
    assert 'class="toast"' not in other.get(f"{page}?undo={query['undo']}&proof={query['proof']}").text


def test_the_archive_says_who_when_why_and_what_is_in_the_way(shared: People) -> None:
    task = made(shared, Task, title="Put away")
    _post(shared, "admin", step="archive", selected=_selected((Task, task)), reason="It is done.")
    page = shared["viewer"].get(f"{ARCHIVE}?search=Put+away")
    said = text_of(page)
    at = stored(shared, Task, task)["archivedAt"]
    assert f"Put away Task {day(at).striptags()} A Admin It is done." in said
    page = shared["viewer"].get(f"{ARCHIVE}?kind=labels&search=taken")
    assert "A live record has the same slug." in text_of(page)
    assert page_of(Label, record_id(Label, "namesake")) in Parsed(page).links


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("kind=labels", {"label"}),
        ("kind=labels&kind=policies", {"label", "policy"}),
        ("userId=user-owner", {"policy"}),
        ("search=filtered+label", {"label"}),
        ("from=2020-01-01&to=2020-02-01", {"old"}),
        ("to=2020-01-01", set()),
    ],
)
def test_filters(query: str, found: set[str], put_away: People) -> None:
    page = put_away["viewer"].get(f"{ARCHIVE}?{query}")
    text = Parsed(page).text
    assert {name for name in ("label", "policy", "old") if f"Filtered {name}" in text} == found
    if not found:
        assert "No archived records match these filters. Show all" in text_of(page)


@pytest.fixture(scope="module")
def put_away(shared: People) -> People:
    """People over a world with three more records in the archive."""
    label = made(shared, Label, name="Filtered label")
    policy = made(shared, Policy, title="Filtered policy")
    _post(shared, "admin", step="archive", selected=_selected((Label, label)))
    _post(shared, "owner", step="archive", selected=_selected((Policy, policy)))
    row = {"id": "old", "organizationId": "org-alpha", "title": "Filtered old", "archivedAt": "2020-01-15"}
    shared.instance.load({"tasks": [{**row, "createdAt": "2019-01-01"}]})
    return shared


def test_all_that_one_action_took_is_restored_by_one_button(shared: People) -> None:
    records = [(Task, made(shared, Task)), (Label, made(shared, Label)), (Policy, made(shared, Policy))]
    _post(shared, step="archive", selected=_selected(*records), reason="The project has ended.")
    page = shared["editor"].get(page_of(*records[1]))
    action = next(link for link in Parsed(page).links if "archiveId=" in link)
    page = shared["editor"].get(action)
    assert "Archive 3 " in text_of(page)
    assert "Restore all (3)" in text_of(page)

    answer = Sheet(page, "/archive/").send(shared["editor"], step="restore")

    assert "Restored: 3 records. Undo" in text_of(shared["editor"].get(answer.headers["location"]))
    assert all(stored(shared, *one)["archivedAt"] is None for one in records)


def test_one_of_the_archive_is_restored_by_its_button(shared: People) -> None:
    task, other = made(shared, Task, title="Row one"), made(shared, Task, title="Row two")
    _post(shared, step="archive", selected=_selected((Task, task), (Task, other)))
    place = f"{ARCHIVE}?search=Row"
    sheet = Sheet(shared["editor"].get(place), "/archive/")
    answer = sheet.send(shared["editor"], step="restore", only=_selected((Task, task)))
    assert answer.headers["location"].startswith(f"{place}&restored=tasks%3A")
    assert [stored(shared, Task, one)["archivedAt"] is None for one in (task, other)] == [True, False]


@pytest.mark.parametrize("kind", WITH_SLUG)
def test_what_stands_in_the_way_is_told(kind: type[Restorable], shared: People) -> None:
    taken, free = record_id(kind, "taken"), made(shared, kind)
    page = shared["editor"].get(page_of(kind, taken))
    assert "A live record has the same slug." in text_of(page)
    assert page_of(kind, record_id(kind, "namesake")) in Parsed(page).links
    _post(shared, step="archive", selected=_selected((kind, free)))

    answer = _post(shared, step="restore", selected=_selected((kind, taken), (kind, free)), return_to=ARCHIVE)

    assert is_refused(answer, status=409)
    assert "Nothing was restored" in text_of(answer)
    assert page_of(kind, taken) in Parsed(answer).links
    assert stored(shared, kind, free)["archivedAt"] is not None

    done = Sheet(answer, "/archive/").send(shared["editor"], step="restore")  # the others

    assert done.status_code == 303
    assert stored(shared, kind, free)["archivedAt"] is None
    assert stored(shared, kind, taken)["archivedAt"] is not None


def test_of_one_action_the_others_are_restored(shared: People) -> None:
    first, second = made(shared, Label, slug="one-slug"), made(shared, Label)
    back = _post(shared, step="archive", selected=_selected((Label, first), (Label, second))).headers["location"]
    archive_id = dict(parse_qsl(urlsplit(back).query))["undo"]
    made(shared, Label, slug="one-slug")
    answer = _post(shared, step="restore", archiveId=archive_id)
    assert is_refused(answer, status=409)
    assert page_of(Label, first) in Parsed(answer).links
    Sheet(answer, "/archive/").send(shared["editor"], step="restore")
    assert [stored(shared, Label, one)["archivedAt"] is None for one in (first, second)] == [False, True]


def test_who_archives_second_is_told(shared: People) -> None:
    task = made(shared, Task)
    sheet = Sheet(shared["editor"].get(page_of(Task, task)), "/archive/")
    assert sheet.send(shared["editor"], step="archive").status_code == 303
    answer = sheet.send(shared["admin"], step="archive", reason="Again")
    assert is_refused(answer, status=409)
    assert "Nothing was archived" in text_of(answer)


def test_too_many_for_an_address_are_restored_without_an_undo(shared: People) -> None:
    shared.instance.load(
        {
            "labels": [
                {"id": f"{'l' * 80}-{number}", "organizationId": "org-alpha", "name": f"Lot {number}"}
                for number in range(80)
            ]
        }
    )
    selected = [f"labels:{'l' * 80}-{number}" for number in range(80)]
    back = _post(shared, step="archive", selected=selected).headers["location"]
    page = shared["editor"].get(back)
    assert "Archived: 80 records. Undo" in text_of(page)
    answer = Sheet(page, "/archive/").send(shared["editor"], step="restore")
    assert len(answer.headers["location"]) < 6_000
    assert "Restored. The records are back in their lists." in text_of(shared["editor"].get(answer.headers["location"]))


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"selected": "nothing:1"}, 400),
        ({"selected": "tasks:"}, 400),
        ({"selected": "tasks:no-such"}, 409),
        ({"selected": f"tasks:{record_id(Task, 'live', 'org-beta')}"}, 409),
        ({"archiveId": "no-such"}, 404),
    ],
)
@pytest.mark.parametrize("step", ["archive", "restore"])
def test_what_names_nothing_is_refused(step: str, fields: dict[str, str], status: int, shared: People) -> None:
    if step == "archive" and "archiveId" in fields:
        return
    assert is_refused(_post(shared, step=step, **fields), status=status)


def test_an_unknown_step_archives_nothing(shared: People) -> None:
    record = made(shared, Task)
    assert is_refused(_post(shared, step="other", selected=_selected((Task, record))), status=400)
    assert stored(shared, Task, record)["archivedAt"] is None


def test_nothing_selected_is_told(shared: People) -> None:
    answer = _post(shared, step="archive", return_to=page_of(Task))
    assert "Select records first." in text_of(shared["editor"].get(answer.headers["location"]))
    answer = _post(shared, step="restore", mode="each", selected="tasks:no-such")
    assert "Nothing was done" in text_of(shared["editor"].get(answer.headers["location"]))


@pytest.mark.parametrize("kind", KINDS)
def test_a_viewer_archives_and_restores_nothing(kind: type[Restorable], shared: People) -> None:
    for state, step in (("live", "archive"), ("archived", "restore")):
        record = record_id(kind, state)
        before = stored(shared, kind, record)
        parsed = Parsed(shared["viewer"].get(page_of(kind, record)))
        posted = {form.action for form in parsed.forms if form.method == "post"}
        assert posted - OWN["records/{kind}/{id}/"] == FRAME
        assert is_refused(_post(shared, "viewer", step=step, selected=_selected((kind, record))))
        assert stored(shared, kind, record) == before


def test_an_empty_archive_says_what_it_is_for(people: People) -> None:
    people.instance.sql(
        *(
            f"UPDATE {kind.__tablename__} SET archived_at = NULL, slug = id"
            if "slug" in kind.sql().c
            else f"UPDATE {kind.__tablename__} SET archived_at = NULL"
            for kind in Restorable.kinds
        )
    )
    page = people["viewer"].get(ARCHIVE)
    assert "Nothing is archived." in text_of(page)
    assert f"{ALPHA}records/" in Parsed(page).links
