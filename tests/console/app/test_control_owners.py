"""Whose controls are: shown, filtered by, and stored again by forms, however many members there are."""

from __future__ import annotations

import re
from typing import Any

import pytest

from normata.console.app import controls
from normata.console.app.api_calls import ApiQuery
from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA, Parsed, send
from tests.console.browser import text_of
from tests.world import ALPHA as ALPHA_ID

LIST, CONTROL = f"{ALPHA}controls/", "sun.A.1"


@pytest.fixture(autouse=True)
def owner(people: People) -> str:
    """The editor, who is made the owner of a control by its form."""
    member = "member-editor"
    form = Parsed(people["owner"].get(f"{LIST}{CONTROL}/")).form("/coverage/")
    assert send(people["owner"], form, ownerId=member).status_code == 303
    return member


def identifiers(page: Any) -> list[str]:
    """The controls of a list."""
    return re.findall(r'<span class="id">([^<]*)</span>', page.text.partition("<table")[2])


def test_ones_own_controls_are_a_view_and_others_a_filter(people: People) -> None:
    editor = people["editor"]
    assert f"{LIST}?ownerId=me" in Parsed(editor.get(ALPHA)).links
    assert f"{LIST}?ownerId=me" in Parsed(editor.get(LIST)).links
    for user, query, found in (
        ("editor", "ownerId=me", ["A.1"]),
        ("viewer", "ownerId=me", []),
        ("viewer", "ownerId=member-editor", ["A.1"]),
        ("viewer", "ownerId=me&ownerId=member-editor&frameworks=fw-sun", ["A.1"]),
        ("viewer", "ownerId=member-editor&frameworks=fw-moon", []),
        ("viewer", "ownerId=member-foreigner", []),
    ):
        page = people[user].get(f"{LIST}?{query}")
        assert identifiers(page) == found, (user, query)
        assert re.search(r"Owner (Me|Editor|member-foreigner)", text_of(page))
    assert "Owner Editor" in text_of(people["viewer"].get(f"{LIST}?ownerId=member-editor"))
    assert "Foreigner" not in people["viewer"].get(f"{LIST}?ownerId=member-foreigner").text
    searched = people["viewer"].get(f"{LIST}?find.ownerId=edit")
    assert '<option value="member-editor">Editor' in searched.text


def test_an_owner_beyond_the_first_members_stays_when_others_change_the_rest(
    owner: str, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controls, "PEOPLE", ApiQuery("listMembers", {"limit": "5", "removed": "exclude", "page": "2"}))
    query = {"organizationId": ALPHA_ID}
    for address in (f"{LIST}{CONTROL}/", f"{LIST}?open={CONTROL}"):
        page = people["admin"].get(address)
        assert f'<option value="{owner}" selected>Editor' in page.text
        kept = send(people["admin"], Parsed(page).form("/coverage/"), ownerId=owner, coverageGap=address)
        assert kept.status_code == 303
        read = people.instance.client.get(
            f"/controls/{CONTROL}/", params=query, headers=people.instance.bearer("viewer")
        )
        assert (read.json()["coverage"]["ownerId"], read.json()["coverage"]["coverageGap"]) == (owner, address)
    assert "Editor" in text_of(people["viewer"].get(f"{LIST}{CONTROL}/"))
