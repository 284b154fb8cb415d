"""What the palette finds by what people type; the page behind it finds the same."""

from __future__ import annotations

import pytest

from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA
from tests.world import ALPHA as ALPHA_ID

NEW_TASK, INVITATIONS = ("New task", f"{ALPHA}new/tasks/"), ("Invitations", f"{ALPHA}settings/invitations/")

SOA = f"{ALPHA}frameworks/fw-moon/statement-of-applicability/"


def found(people: People, user: str, typed: str) -> list[tuple[str, str]]:
    """Labels and addresses of what a user is offered."""
    browser = people[user]
    answer = browser.client.get(f"{ALPHA}find/", params={"search": typed}, headers={"Accept": "application/json"})
    return [(item["label"], item["address"]) for group in answer.json() for item in group["items"]]


@pytest.mark.parametrize(
    ("typed", "first"),
    [
        ("new task", NEW_TASK),
        ("invitations", INVITATIONS),
        ("invite", INVITATIONS),
        ("suppliers", ("Vendors", f"{ALPHA}records/vendors/")),
        ("policy", ("New policy", f"{ALPHA}new/policies/")),
        ("password", ("Your account", "/account/")),
        ("import framework", ("Upload your own framework", f"{ALPHA}upload/")),
        ("overdue", ("Due", f"{ALPHA}due/")),
        ("adopt", ("Frameworks", f"{ALPHA}frameworks/")),
        ("soa sun-10", ("SUN-10: Statement of Applicability", SOA)),
        ("rename", ("Your account", "/account/")),
        ("rename", ("Organization", f"{ALPHA}settings/")),
        ("name", ("Your account", "/account/")),
        ("invite two people", INVITATIONS),
        ("assign", ("Tasks", f"{ALPHA}records/tasks/")),
        ("overdue tasks", ("Tasks", f"{ALPHA}records/tasks/")),
        ("service acc", ("Service accounts", f"{ALPHA}settings/service-accounts/")),
    ],
)
def test_pages_forms_and_controls_come_first(readers: People, typed: str, first: tuple[str, str]) -> None:
    assert first in found(readers, "admin", typed)[:2]


def test_members_are_found_by_name(readers: People) -> None:
    assert ("Editor", f"{ALPHA}settings/members/member-editor/") in found(readers, "viewer", "edit")


def test_what_one_may_not_do_is_not_offered(readers: People) -> None:
    assert NEW_TASK not in found(readers, "viewer", "new task")
    assert NEW_TASK in found(readers, "editor", "new task")
    assert INVITATIONS not in found(readers, "editor", "invitations")


def test_an_identifier_is_found_without_what_is_between_its_letters_and_digits(people: People) -> None:
    controls = [
        {"id": f"c{number}", "frameworkId": "fw-moon", "type": "CONTROL", "identifier": identifier, "name": identifier}
        for number, identifier in enumerate(["A.5.15", "A.51.5", "PR.AC-01", "AC-22"])
    ]
    people.instance.load({"controls": controls})
    expected = {"a515": {"A.5.15", "A.51.5"}, "A5.15": {"A.5.15"}, "prac1": {"PR.AC-01"}, "ac22": {"AC-22"}}
    for typed, identifiers in expected.items():
        assert {label.split()[0] for label, _ in found(people, "viewer", typed)} == identifiers, typed


def test_a_page_comes_before_a_saved_view_with_the_same_words(people: People) -> None:
    pages = [("Crosswalk", f"{ALPHA}crosswalk/"), ("Tasks", f"{ALPHA}records/tasks/")]
    for name, _ in pages:
        view = {"organizationId": ALPHA_ID, "kind": "tasks", "name": name, "query": {"status": ["DONE"]}}
        people.instance.client.post("/views/", json=view, headers=people.instance.bearer("viewer"))
    for name, address in pages:
        offered = [one for one in found(people, "viewer", name) if one[0] == name]
        assert offered[0] == (name, address)
        assert offered[1][1].startswith(f"{ALPHA}records/tasks/?status=DONE&view=")
