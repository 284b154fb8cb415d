"""The owners of records whose kind has no field for them: shown, chosen and filtered by."""

from __future__ import annotations

import pytest

from normata.records.base import Restorable
from normata.records.kinds import Audit, Finding, Label, Task
from tests.console.app.conftest import People
from tests.console.app.pages import Form, Parsed, send
from tests.console.app.records.recording import Sheet, bearer, made, page_of
from tests.console.browser import is_refused, text_of
from tests.world import ALPHA as ALPHA_ID


def chosen(people: People, kind: type[Restorable], record: str) -> Form:
    """The form with the owner on the page of a record."""
    forms = Parsed(people["editor"].get(page_of(kind, record))).forms
    return next(form for form in forms if form.action.endswith(f"/{record}/owner/"))


def owners(people: People, kind: type[Restorable], record: str) -> list[tuple[str, str | None]]:
    """Who owns a record, as the interface has it, each with the note of the link."""
    query = {"organizationId": ALPHA_ID, "kind": kind.path, "id": record, "relation": "OWNS"}
    answer = people.instance.client.get("/links/", params=query, headers=bearer(people, "viewer")).json()
    return [(link["from"]["id"], link["note"]) for link in answer["items"]]


def own(people: People, kind: type[Restorable], record: str, member: str, note: str | None = None) -> None:
    """Link a record with an owner."""
    ends = {"from": {"kind": "memberships", "id": member}, "to": {"kind": kind.path, "id": record}}
    body = {"organizationId": ALPHA_ID, **ends, "relation": "OWNS", "note": note}
    assert people.instance.client.post("/links/", json=body, headers=bearer(people, "editor")).status_code == 201


@pytest.mark.parametrize("kind", [Finding, Audit, Label])
def test_the_owner_is_chosen_on_the_page_and_replaces_the_one_before(kind: type[Restorable], people: People) -> None:
    record, editor = made(people, kind), people["editor"]
    page = page_of(kind, record)
    first = send(editor, chosen(people, kind, record), ownerId="member-viewer")
    assert (first.status_code, first.headers["location"]) == (303, f"{page}?done=record_saved")
    assert owners(people, kind, record) == [("member-viewer", None)]
    head = people["viewer"].get(page).text.partition("</h1>")[2].partition("</header>")[0]
    assert "Viewer" in head
    form = chosen(people, kind, record)
    assert Sheet(editor.get(page), "/owner/").value("ownerId") == "member-viewer"
    assert send(editor, form, ownerId="member-viewer").headers["location"] == f"{page}?done=record_unchanged"
    own(people, kind, record, "member-owner", "For the board")
    assert send(editor, form, ownerId="member-admin").status_code == 303
    assert owners(people, kind, record) == [("member-owner", "For the board"), ("member-admin", None)]
    assert send(editor, form, ownerId="member-admin").headers["location"] == f"{page}?done=record_unchanged"
    # Of two owners the first is replaced, and its note stays; if the second is chosen, the first goes.
    assert send(editor, chosen(people, kind, record), ownerId="member-editor").status_code == 303
    assert owners(people, kind, record) == [("member-admin", None), ("member-editor", "For the board")]
    assert send(editor, chosen(people, kind, record), ownerId="member-editor").status_code == 303
    assert owners(people, kind, record) == [("member-editor", "For the board")]
    assert send(editor, chosen(people, kind, record), ownerId="").status_code == 303
    assert owners(people, kind, record) == []


def test_who_cannot_own_it_is_refused_where_it_was_chosen(people: People) -> None:
    record = made(people, Finding)
    form = chosen(people, Finding, record)
    refused = send(people["editor"], form, ownerId="nobody")
    assert is_refused(refused, status=400)
    assert 'role="alert"' in refused.text
    assert is_refused(send(people["viewer"], form, ownerId="member-viewer"))
    task = made(people, Task)
    assert is_refused(
        send(people["editor"], Form(page_of(Task, task, "owner"), "post"), ownerId="member-viewer"), status=404
    )
    assert owners(people, Finding, record) == owners(people, Task, task) == []
    assert "/owner/" not in people["viewer"].get(page_of(Finding, record)).text


def test_a_list_shows_owners_and_has_those_of_the_reader(people: People) -> None:
    mine, shared = made(people, Finding, name="Mine alone"), made(people, Finding, name="Owned by two")
    made(people, Finding, name="Owned by nobody")
    own(people, Finding, mine, "member-viewer")
    own(people, Finding, shared, "member-admin")
    own(people, Finding, shared, "member-viewer")
    viewer = people["viewer"]
    page = viewer.get(page_of(Finding))
    row = page.text.partition("Owned by two")[2].partition("</tr>")[0]
    assert row.index("Admin") < row.index("Viewer")
    query = "ownerId=member-viewer"
    tab = next(link for link in Parsed(page).links if link.endswith(f"?{query}"))
    listed = text_of(viewer.get(tab))
    assert "Mine alone" in listed
    assert "Owned by two" in listed
    assert "Owned by nobody" not in listed
    panel = viewer.get(page_of(Finding, query=f"open={shared}")).text.rpartition("Owned by two")[2]
    assert "Admin" in panel
