"""Making and changing records of every kind by their forms."""

from __future__ import annotations

import json
from typing import Any

import pytest

from normata.core.changes.unit_of_work import Changes
from normata.records.base import Restorable
from normata.records.fields import fields_of
from normata.records.kinds import Audit, Incident, Label, Policy, Task, Vendor
from tests.console.app.conftest import People
from tests.console.app.pages import Parsed
from tests.console.app.records.recording import Sheet, bearer, made, new_of, page_of, stored
from tests.console.browser import is_refused, text_of
from tests.records.shapes import CONTENT, KINDS, full_record
from tests.world import ALPHA as ALPHA_ID
from tests.world import record_id

# What stands in a form, by the sort of the field, and the value that it is.
_TYPED: dict[str, tuple[str, Any]] = {
    "text": (" Two words ", "Two words"),
    "prose": ("One line,\r\nanother\r\n", "One line,\nanother\n"),
    "token": ("CLOSED", "CLOSED"),
    "flag": ("true", True),
    "moment": ("2026-12-24T18:30", "2026-12-24T18:30:00.000Z"),
    "count": ("4", 4),
    "number": ("2.5", 2.5),
    "document": ("# A *heading*\r\nText", "# A *heading*\nText"),
    "foreign": ("anything-7", "anything-7"),
}
_TYPED_BY_NAME: dict[str, tuple[str, Any]] = {
    "website": ("https://www.example.org/", "https://www.example.org/"),
    "url": ("https://www.example.org/", "https://www.example.org/"),
    "contactEmail": (" kim@example.org", "kim@example.org"),
}
_REFERRED = {"memberships": "member-admin", "controls": "moon.A.1", "controlCoverages": "say-sun.A.1"} | {
    "frameworks": "fw-moon",
    "questionnaires": "free-org-alpha",
}


def _typed(kind: type[Restorable]) -> tuple[dict[str, str], dict[str, Any]]:
    """Something for every field of a kind: what is typed, and what is to be stored."""
    typed, expected = {}, {}
    for field in fields_of(kind):
        if not field.is_typed:
            continue
        if field.sort == "reference":
            typed[field.name] = _REFERRED.get(field.target, f"{field.target}-live-org-alpha")
            expected[field.name] = typed[field.name]
        else:
            typed[field.name], expected[field.name] = _TYPED_BY_NAME.get(field.name) or _TYPED[field.sort]
        if field.sort == "token":
            typed[field.name], typed[f"other.{field.name}"] = "", "our own-value"
            expected[field.name] = "OUR_OWN_VALUE"
    if "slug" in typed:
        typed["slug"] = expected["slug"] = f"typed-{kind.path}"
    return typed, expected


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_is_made_with_every_field(kind: type[Restorable], shared: People) -> None:
    typed, expected = _typed(kind)
    sheet = Sheet(shared["admin"].get(new_of(kind)), new_of(kind))

    answer = sheet.send(shared["admin"], **typed)

    assert answer.status_code == 303, text_of(answer)
    page = answer.headers["location"]
    assert page.endswith("/?done=record_made")
    record = stored(shared, kind, page.split("/")[-2])
    assert {name: record[name] for name in expected} == expected
    assert "Created." in text_of(shared["admin"].get(page))
    # The form is sent again, as when somebody presses twice: there is one record.
    assert sheet.send(shared["admin"], **typed).headers["location"] == page


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_left_empty_gets_its_default(kind: type[Restorable], shared: People) -> None:
    title = kind.title_column()
    sheet = Sheet(shared["editor"].get(new_of(kind)), new_of(kind))
    answer = sheet.send(shared["editor"], **{title: f"Bare {kind.path}"})
    record = stored(shared, kind, answer.headers["location"].split("/")[-2])
    told = shared.instance.client.post(
        f"/{kind.path}/",
        json={"organizationId": "org-alpha", title: f"Bare {kind.path} too"},
        headers=bearer(shared, "editor"),
    ).json()
    ours = {"id", "slug", "shortId", "order", "createdAt", "updatedAt", title}
    assert {name: record[name] for name in record if name not in ours} == {
        name: told[name] for name in told if name not in ours
    }


@pytest.mark.parametrize("kind", KINDS)
def test_a_form_that_nobody_touched_changes_nothing(kind: type[Restorable], people_of_full: People) -> None:
    """Whatever the values are: of every field one that is easily damaged."""
    record = f"full-{kind.path}"
    before = stored(people_of_full, kind, record)
    answer = Sheet(people_of_full["editor"].get(page_of(kind, record, "edit")), "/edit/").send(people_of_full["editor"])
    assert answer.headers["location"].endswith("?done=record_unchanged"), text_of(answer)
    assert stored(people_of_full, kind, record) == before


@pytest.fixture(scope="module")
def people_of_full(shared: People) -> People:
    """People over a world that has a live record of every kind, every field of it with a value."""
    shared.instance.load(
        {kind.path: [{**full_record(kind, f"full-{kind.path}"), "archivedAt": None}] for kind in Restorable.kinds}
    )
    return shared


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_changed_is_sent_and_nothing_else(kind: type[Restorable], shared: People) -> None:
    title = kind.title_column()
    record = made(shared, kind)
    before = stored(shared, kind, record)
    sheet = Sheet(shared["editor"].get(page_of(kind, record, "edit")), "/edit/")
    answer = sheet.send(shared["editor"], **{title: "Changed <b>title</b>"})
    assert answer.status_code == 303
    after = stored(shared, kind, record)
    assert {name for name in after if after[name] != before[name]} <= {title, "updatedAt"}
    assert after[title] == "Changed <b>title</b>"
    page = shared["editor"].get(answer.headers["location"])
    assert "Saved." in text_of(page)
    assert "Changed <b>title</b>" in Parsed(page).text
    assert "→ Changed <b>title</b>" in text_of(page)  # in its history


@pytest.mark.parametrize("kind", KINDS)
def test_faults_are_told_at_their_fields_and_nothing_typed_is_lost(kind: type[Restorable], shared: People) -> None:
    title = kind.title_column()
    wrong = {title: ""}
    wrong |= {field.name: "not a day" for field in fields_of(kind) if field.sort == "moment" and field.is_writable}
    wrong |= {field.name: "many" for field in fields_of(kind) if field.sort == "number"}
    right = {field.name: "Typed,\r\nand long" for field in fields_of(kind) if field.sort == "prose" and field.is_typed}
    for path in (new_of(kind), page_of(kind, record_id(kind, "live"), "edit")):
        sheet = Sheet(shared["editor"].get(path), path)
        wrong = {name: value for name, value in wrong.items() if name in sheet.fields}  # steps set the others
        answer = sheet.send(shared["editor"], **wrong, **right)
        assert is_refused(answer, status=400)
        assert 'id="faults" tabindex="-1" autofocus' in answer.text
        again = Sheet(answer, path)
        for name in wrong:
            assert f'href="#field-{name}"' in answer.text
            assert f'id="fault-{name}">must ' in answer.text
            assert again.value(name) == wrong[name]
        for name, typed in right.items():
            assert again.value(name) == typed


def test_a_value_of_ones_own_that_is_no_token_is_told(shared: People) -> None:
    sheet = Sheet(shared["editor"].get(new_of(Label)), new_of(Label))
    assert "status" not in sheet.fields  # a label has none
    sheet = Sheet(shared["editor"].get(new_of(Incident)), new_of(Incident))
    answer = sheet.send(shared["editor"], name="An incident", status="", **{"other.status": "über all"})
    assert is_refused(answer, status=400)
    assert Sheet(answer, new_of(Incident)).value("other.status") == "ÜBER_ALL"
    assert Sheet(answer, new_of(Incident)).value("status") == ""


def test_an_address_fills_fields_in(shared: People) -> None:
    query = "policyId=policies-live-org-alpha&title=From+here&status=DONE"
    sheet = Sheet(shared["editor"].get(new_of(Task, query)), new_of(Task))
    assert (sheet.value("policyId"), sheet.value("title"), sheet.value("status")) == (
        "policies-live-org-alpha",
        "From here",
        "DONE",
    )


def test_the_longest_texts_fit(shared: People) -> None:
    sheet = Sheet(shared["editor"].get(new_of(Task)), new_of(Task))
    long = "\U0001f469" * 100_000
    answer = sheet.send(shared["editor"], title="Long", description=long, instructions=long)
    assert answer.status_code == 303, answer.text[:500]
    assert stored(shared, Task, answer.headers["location"].split("/")[-2])["instructions"] == long


def test_a_slug_that_is_taken_is_told_where_it_is_not_hidden(shared: People) -> None:
    sheet = Sheet(shared["editor"].get(new_of(Label)), new_of(Label))
    answer = sheet.send(shared["editor"], name="Second", slug="labels-live")
    assert is_refused(answer, status=409)
    assert '<details class="fold" open><summary>Slug' in answer.text
    assert '<details class="fold" open><summary>More fields' not in answer.text
    assert "A live record has the same slug" in answer.text.partition('name="slug"')[2]


# --- Documents


@pytest.mark.parametrize(
    ("document", "shown", "written"),
    [
        ("# Text\n", "# Text\r\n", "text"),
        ("[1]", "[1]", "text"),
        (None, "", "text"),
        ([1, None], None, "json"),
        (CONTENT, None, "json"),
        (False, "false", "json"),
    ],
)
def test_a_document_is_written_as_text_or_as_json(
    document: Any, shown: str | None, written: str, shared: People
) -> None:
    record = made(shared, Policy, content=document)
    sheet = Sheet(shared["editor"].get(page_of(Policy, record, "edit")), "/edit/")
    assert sheet.value("as.content") == written
    assert shown is None or sheet.value("content") == shown
    assert shown is not None or json.loads(sheet.value("content")) == document
    # The same, as JSON: what it is, not what it looks like, counts.
    sheet.send(shared["editor"], content=json.dumps(document, ensure_ascii=False), **{"as.content": "json"})
    assert stored(shared, Policy, record)["content"] == document


def test_a_document_becomes_what_was_written(shared: People) -> None:
    """Members that were taken out are gone, also within others: a change is a merge patch."""
    record = made(shared, Policy, content={"a": {"b": 1, "c": [1, {"d": None}]}, "e": "x"})
    edit = page_of(Policy, record, "edit")
    documents: list[Any] = [{"a": {"c": [2]}, "f": {}}, {"f": {"g": True}}, [], {"h": 1}, "text"]
    for document in documents:
        sheet = Sheet(shared["editor"].get(edit), "/edit/")
        sheet.send(shared["editor"], content=json.dumps(document), **{"as.content": "json"})
        assert stored(shared, Policy, record)["content"] == document


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("{", "is not valid JSON"),
        ("NaN", "is not valid JSON"),
        ('{"a": null}', "contains a null within an object"),
        ('{"a":' * 900 + "1" + "}" * 900, "is nested too deeply"),
        ("[" * 100_000, "is not valid JSON"),
    ],
    ids=["cut off", "no number", "null", "deep", "very deep"],
)
def test_what_is_no_document_is_told_along_with_all_other_faults(typed: str, told: str, shared: People) -> None:
    record = made(shared, Policy)
    sheet = Sheet(shared["editor"].get(page_of(Policy, record, "edit")), "/edit/")
    answer = sheet.send(shared["editor"], content=typed, order="x", **{"as.content": "json"})
    assert is_refused(answer, status=400)
    assert told in text_of(answer)
    assert "Position : must be an integer" in text_of(answer)
    assert Sheet(answer, "/edit/").value("content") == typed


@pytest.mark.parametrize("is_new", [True, False], ids=["new", "changed"])
def test_nothing_runs_for_a_form_that_has_faults(is_new: bool, shared: People, monkeypatch: pytest.MonkeyPatch) -> None:
    page = new_of(Policy) if is_new else page_of(Policy, made(shared, Policy), "edit")
    sheet = Sheet(shared["editor"].get(page), page if is_new else "/edit/")
    ran: list[str] = []
    for name in ("make", "dry_run"):
        monkeypatch.setattr(Changes, name, lambda *_, name=name, **__: ran.append(name))
    assert is_refused(sheet.send(shared["editor"], content="{", **{"as.content": "json"}), status=400)
    assert ran == []


@pytest.mark.parametrize("marks", ["[" * 100_000, "{", "7"], ids=["deep", "cut off", "no object"])
def test_marks_that_are_none_are_as_good_as_none(marks: str, shared: People) -> None:
    record = made(shared, Policy)
    sheet = Sheet(shared["editor"].get(page_of(Policy, record, "edit")), "/edit/")
    assert sheet.send(shared["editor"], title="Another title", marks=marks).status_code == 303
    assert stored(shared, Policy, record)["title"] == "Another title"


# --- Two people


def test_who_saves_second_is_told_what_changed_and_loses_nothing(shared: People) -> None:
    record = made(shared, Vendor, description="At first.", website="https://a.example", contactName="A")
    edit = page_of(Vendor, record, "edit")
    first, second = (Sheet(shared[user].get(edit), "/edit/") for user in ("editor", "admin"))
    assert first.send(shared["editor"], description="By the first.", website="https://b.example").status_code == 303

    answer = second.send(shared["admin"], description="By the second.", contactName="B")

    assert is_refused(answer, status=412)
    said = text_of(answer)
    assert "Somebody else has changed this in the meantime" in said
    assert 'id="now-description">Current value: <span class="whole">By the first.' in answer.text
    again = Sheet(answer, "/edit/")
    assert again.value("description") == "By the second."
    assert again.value("contactName") == "B"
    assert again.value("website") == "https://b.example"  # nobody else has touched it
    assert stored(shared, Vendor, record)["description"] == "By the first."

    assert again.send(shared["admin"]).status_code == 303
    found = stored(shared, Vendor, record)
    assert (found["description"], found["website"], found["contactName"]) == (
        "By the second.",
        "https://b.example",
        "B",
    )


def test_a_conflict_is_told_after_a_fault_too(shared: People) -> None:
    record = made(shared, Audit, notes="At first.")
    edit = page_of(Audit, record, "edit")
    sheet = Sheet(shared["editor"].get(edit), "/edit/")
    faulty = Sheet(sheet.send(shared["editor"], started="never"), "/edit/")
    Sheet(shared["admin"].get(edit), "/edit/").send(shared["admin"], notes="By the first.")
    assert is_refused(faulty.send(shared["editor"], started="", notes="By the second."), status=412)


def test_an_archived_record_is_read_only(shared: People) -> None:
    record = made(shared, Label)
    sheet = Sheet(shared["editor"].get(page_of(Label, record, "edit")), "/edit/")
    shared.instance.client.post(f"/labels/{record}/archive/", headers=bearer(shared, "editor"))
    answer = shared["editor"].get(page_of(Label, record, "edit"))
    assert (answer.status_code, answer.headers["location"]) == (303, page_of(Label, record))
    answer = sheet.send(shared["editor"], name="Typed")
    assert is_refused(answer, status=409)
    assert "read-only" in text_of(answer)
    assert Sheet(answer, "/edit/").value("name") == "Typed"


# --- Choosing


def test_where_there_is_much_to_choose_from_one_looks_for_it(shared: People) -> None:
    """Without script: the form comes back with what was found, and with all that was typed."""
    for number in range(101):
        made(shared, Policy, title=f"Policy of {number:03}")
    sheet = Sheet(shared["editor"].get(new_of(Task)), new_of(Task))
    assert "find.policyId" in sheet.fields
    assert "find.assetId" not in sheet.fields

    answer = sheet.send(shared["editor"], title="Typed", step="find", **{"find.policyId": "POLICY 099"})

    assert answer.status_code == 200
    assert "Policy of 099" in answer.text
    assert "Policy of 098" not in answer.text
    found = Sheet(answer, new_of(Task))
    assert (found.value("title"), found.value("find.policyId")) == ("Typed", "POLICY 099")
    # Enter finds where there is something new to be found, and saves where there is not.
    again = found.send(shared["editor"], step="enter", **{"find.policyId": "policy 098"})
    assert (again.status_code, "Policy of 098" in again.text) == (200, True)
    assert Sheet(again, new_of(Task)).send(shared["editor"], step="enter").status_code == 303


@pytest.mark.parametrize("kind", [Task, Incident, Audit])
def test_references_offer_what_there_is_and_what_is_chosen(kind: type[Restorable], people_of_full: People) -> None:
    page = people_of_full["editor"].get(page_of(kind, f"full-{kind.path}", "edit"))
    record = stored(people_of_full, kind, f"full-{kind.path}")
    for field in fields_of(kind):
        if field.sort == "reference":
            assert Sheet(page, "/edit/").value(field.name) == record[field.name]
            if field.target in ("policies", "assets", "vendors"):
                assert f"{field.target}-archived-org-alpha" not in page.text
    assert "member-foreigner" not in page.text


# --- Who may


@pytest.mark.parametrize("kind", KINDS)
def test_a_viewer_is_refused_the_form_and_its_change(kind: type[Restorable], shared: People) -> None:
    record = record_id(kind, "live")
    before = stored(shared, kind, record)
    forged: Any = {kind.title_column(): "Forged"}
    for path in (new_of(kind), page_of(kind, record, "edit")):
        for answer in (shared["viewer"].get(path), shared["viewer"].post(path, **forged)):
            assert is_refused(answer, status=403)
            assert "takes the role editor" in text_of(answer)
    assert stored(shared, kind, record) == before


def test_a_record_may_be_called_new(people: People) -> None:
    """Whatever a load calls it, it has a page and a form."""
    people.instance.load({"tasks": [{"id": "new", "organizationId": ALPHA_ID, "title": "The task with that id"}]})
    page = people["editor"].get(page_of(Task, "new"))
    assert "The task with that id" in text_of(page)
    assert page_of(Task, "new", "edit") in Parsed(page).links
    assert Sheet(people["editor"].get(page_of(Task, "new", "edit")), "/new/edit/").value("title")


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_of_another_organization_is_not_there(kind: type[Restorable], shared: People) -> None:
    theirs = record_id(kind, "live", "org-beta")
    for path in (page_of(kind, theirs), page_of(kind, theirs, "edit")):
        assert is_refused(shared["editor"].get(path), status=404)
    forged: Any = {kind.title_column(): "Forged"}
    answer = shared["editor"].post(page_of(kind, theirs, "edit"), **forged)
    assert is_refused(answer, status=404)
    assert is_refused(shared["foreigner"].get(page_of(kind, record_id(kind, "live"))), status=404)


def test_a_reference_to_another_organization_is_refused(shared: People) -> None:
    sheet = Sheet(shared["editor"].get(new_of(Task)), new_of(Task))
    answer = sheet.send(shared["editor"], title="Reaching over", policyId="policies-live-org-beta")
    assert is_refused(answer, status=400)
    assert 'id="fault-policyId">names no policy that exists' in answer.text
