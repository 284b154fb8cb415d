"""The links of a record and of a control: on their pages and in their panels, made, removed, and made again."""

from __future__ import annotations

import pytest

from normata.links.relations import TABLES, Suggestion, suggestions
from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA, Form, Parsed, send
from tests.console.app.test_cost import asked_by
from tests.console.browser import is_refused, text_of
from tests.world import ALPHA as ALPHA_ID

POLICY, TASK = f"policies-live-{ALPHA_ID}", f"tasks-live-{ALPHA_ID}"
PAGE = f"{ALPHA}records/policies/{POLICY}/"
CONTROL = f"{ALPHA}controls/sun.A.1/"
PLACES = (PAGE, f"{ALPHA}records/policies/?open={POLICY}", CONTROL, f"{ALPHA}controls/?open=sun.A.1")


def link_form(people: People, path: str) -> Form:
    """The form of a page that makes a link."""
    return next(
        form
        for form in Parsed(people["editor"].get(path)).forms
        if form.action.endswith("links/") and "kind" in form.fields
    )


def removal(people: People, path: str) -> tuple[Form, tuple[str, str]]:
    """The form of a page that removes links, and its first button."""
    form = next(form for form in Parsed(people["editor"].get(path)).forms if form.id == "unlink")
    return form, next(button for button in form.buttons if button[0] == "link")


def test_both_ends_show_a_link_until_it_is_removed_and_again_once_it_is_back(people: People) -> None:
    editor = people["editor"]
    made = send(editor, link_form(people, PAGE), other="controls:sun.A.1", note="Section 4")
    assert (made.status_code, made.headers["location"]) == (303, f"{PAGE}?done=linked")
    for path, words in zip(PLACES, ("Implements A.1",) * 2 + ("Implemented by policy live",) * 2, strict=True):
        said = text_of(editor.get(path))
        assert words in said, path
        assert "Section 4" in said
    assert "Editor linked: implements A.1" in text_of(editor.get(PAGE))
    assert "linked: implemented by policy live" in text_of(editor.get(CONTROL))
    assert "policy live \N{EN DASH} implements \N{EN DASH} A.1" in text_of(people["owner"].get(f"{ALPHA}events/"))
    for path in (PAGE, CONTROL):
        viewed = Parsed(people["viewer"].get(path))
        assert "policy live" in viewed.text
        assert not [form for form in viewed.forms if form.action.endswith("links/")]

    form, (name, value) = removal(people, CONTROL)
    removed = send(editor, form, **{name: value})
    page = editor.get(removed.headers["location"])
    assert "The link was removed." in text_of(page)
    assert "Implemented by policy live" not in text_of(editor.get(CONTROL))
    undo = next(one for one in Parsed(page).forms if "unlinked" in one.fields)
    assert send(editor, undo, step="undo").headers["location"] == f"{CONTROL}?done=linked_again"
    assert "Section 4" in text_of(editor.get(CONTROL))
    # Nobody else can make an address that says so.
    assert "The link was removed." not in text_of(editor.get(f"{CONTROL}?unlinked=x&proof=0"))
    broken = send(editor, undo, step="undo", unlinked="nothing of the sort")
    assert broken.status_code == 400


def test_what_to_link_is_found_without_a_script_and_with_one(people: People) -> None:
    editor = people["editor"]
    form = link_form(people, CONTROL)
    page = send(editor, form, step="find", **{"find.other": "live"})
    assert "policy live · Policy" in text_of(page)
    again = next(one for one in Parsed(page).forms if one.action.endswith("links/"))
    # A control is not meant to own anything, but the relation that was chosen is that of the link.
    made = send(editor, again, other=f"tasks:{TASK}", relation="FOLLOWS:back")
    assert made.headers["location"] == f"{CONTROL}?done=linked"
    assert "Followed by task live" in text_of(editor.get(CONTROL))
    asked = {"kind": "anything", "search": "task live"}
    found = editor.client.get(f"{ALPHA}find/", params=asked, headers={"Accept": "application/json"}).json()
    assert f"tasks:{TASK}" in [one["id"] for one in found[0]["items"]]


def test_what_cannot_be_linked_is_refused_with_what_was_entered(people: People) -> None:
    form = link_form(people, PAGE)
    refused = send(people["editor"], form, other="tasks:nothing", note="Typed before")
    assert refused.status_code == 400
    assert "names no task that exists" in text_of(refused)
    assert 'value="Typed before"' in refused.text
    nothing = send(people["editor"], form, other="")
    assert nothing.status_code == 200
    assert is_refused(send(people["viewer"], form))


def test_the_relation_that_fits_best_follows_from_the_kinds() -> None:
    for kind, other, relation, is_reversed in (
        ("policies", "controls", "IMPLEMENTS", False),
        ("controls", "evidence", "SUPPORTS", True),
        ("tasks", "memberships", "OWNS", True),
        ("incidents", "vendors", "AFFECTS", False),
        ("audits", "controls", "IN_SCOPE", True),
        ("labels", "labels", "FOLLOWS", False),
        ("labels", "acronyms", "RELATES", False),
    ):
        assert suggestions(kind, other)[0] == Suggestion(relation, is_reversed=is_reversed)
    for kind in TABLES:
        for other in TABLES:
            there = {one.relation for one in suggestions(kind, other)}
            assert there == {one.relation for one in suggestions(other, kind)}


def test_fifty_links_cost_as_many_statements_as_two(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(numbers: range) -> None:
        people.instance.load(
            {
                "tasks": [{"id": f"many-{one}", "organizationId": ALPHA_ID, "title": f"Many {one}"} for one in numbers],
                "links": [
                    {"id": f"many-{one}", "organizationId": ALPHA_ID, "fromKind": "tasks", "fromId": f"many-{one}"}
                    | {"toKind": "controls", "toId": "sun.A.1", "relation": "IMPLEMENTS"}
                    for one in numbers
                ],
            }
        )

    load(range(2))
    few = asked_by("controls/sun.A.1/", people, monkeypatch)
    load(range(2, 50))
    many = asked_by("controls/sun.A.1/", people, monkeypatch)
    assert "Many 49" in text_of(people["owner"].get(CONTROL))
    assert len(many.statements) == len(few.statements) + 1  # which counts more events than the page shows
