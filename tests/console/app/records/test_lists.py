"""The kinds of records, and their lists, over a world that nobody changes."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest

from normata.console.app.records.layout import first_of
from normata.console.filters import day, words
from normata.records.base import Restorable
from normata.records.fields import fields_of
from normata.records.kinds import Label, Task
from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA, Parsed
from tests.console.app.records.recording import bearer, new_of, page_of, stored
from tests.console.browser import is_refused, text_of
from tests.records.shapes import KINDS
from tests.world import ALPHA as ALPHA_ID
from tests.world import FURTHER, record_id


@pytest.mark.parametrize("kind", KINDS)
def test_a_list_says_how_many_and_links_to_each(kind: type[Restorable], readers: People) -> None:
    page = readers["viewer"].get(page_of(kind))
    live = (
        {record_id(kind, state) for state in ("live", "namesake")}
        if "slug" in kind.sql().c
        else {record_id(kind, "live")}
    )
    parsed = Parsed(page)
    assert {page_of(kind, one) for one in live} <= set(parsed.links)
    assert page_of(kind, record_id(kind, "archived")) not in parsed.links
    count = len(live) + len(FURTHER.get(kind, ()))
    assert f"{kind.plural().capitalize()} {count} " in text_of(page)
    assert new_of(kind) not in parsed.links
    assert new_of(kind) in Parsed(readers["editor"].get(page_of(kind))).links


@pytest.mark.parametrize("kind", KINDS)
def test_every_filter_of_the_interface_is_in_the_form(kind: type[Restorable], readers: People) -> None:
    page = Parsed(readers["viewer"].get(page_of(kind, query="filters=all")))
    named = {value for tag, name, value in page.attributes if name == "name" and tag in ("input", "select")}
    assert {field.name for field in fields_of(kind) if field.is_filter} | {"search", "archived"} <= named


def test_whoever_has_chosen_one_value_may_choose_another(readers: People) -> None:
    query = "assigneeMemberId=member-owner&assigneeMemberId=member-editor&status=TODO"
    page = readers["viewer"].get(page_of(Task, query=query))
    chosen = [value for tag, name, value in Parsed(page).attributes if tag == "select" and name == "name"]
    assert [chosen.count(name) for name in ("assigneeMemberId", "status", "type")] == [3, 2, 1]
    assert page.text.count('<option value="member-owner" selected>') == 1
    assert page.text.count('<option value="member-editor" selected>') == 1


@pytest.mark.parametrize("kind", KINDS)
def test_archived_ones_are_listed_where_they_are_asked_for(kind: type[Restorable], readers: People) -> None:
    page = readers["editor"].get(page_of(kind, query="archived=only&sortColumn=createdAt"))
    assert page_of(kind, record_id(kind, "archived")) in Parsed(page).links
    assert page_of(kind, record_id(kind, "live")) not in Parsed(page).links
    assert f'value="{kind.path}:' not in page.text  # nobody archives them again


def test_an_empty_list_says_what_to_do(readers: People) -> None:
    """To editors: make the first one. To viewers: who can."""
    beta = page_of(Label).replace("alpha", "beta")
    page = readers["foreigner"].get(f"{beta}?archived=only&search=nothing")
    assert "No labels match these filters." in text_of(page)


def test_what_is_overdue_is_marked(readers: People) -> None:
    page = text_of(readers["viewer"].get(page_of(Task)))
    assert "10 Feb 2026 Overdue" in page


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_shows_all_its_fields(kind: type[Restorable], readers: People) -> None:
    record = stored(readers, kind, record_id(kind, "live"))
    page = readers["viewer"].get(page_of(kind, record["id"]))
    said = text_of(page)
    assert re.search(rf"<h1>(<[^>]*>\d+</span> )?{record[kind.title_column()]}</h1>", page.text)
    for field in fields_of(kind):
        if field.sort == "moment" and record[field.name]:
            assert day(record[field.name]).striptags() in said
    assert "History" in said


@pytest.mark.parametrize("path", ["records/nothing/", "records/users/", "records/tasks/no-such/", "records/tasks/%00/"])
def test_what_is_not_there(path: str, readers: People) -> None:
    assert is_refused(readers["editor"].get(f"{ALPHA}{path}"), status=404)


def test_the_overview_counts_each_kind(readers: People) -> None:
    said = text_of(readers["viewer"].get(f"{ALPHA}records/"))
    assert "Risk reviews 1 1 " in said
    assert "Tasks 2 2 " in said
    assert f"{ALPHA}archive/?kind=tasks" in readers["viewer"].get(f"{ALPHA}records/").text


def test_columns_are_chosen_in_the_address(readers: People) -> None:
    page = readers["viewer"].get(page_of(Task, query="columns=frequency&columns=policyId&status=TODO"))
    heads = re.findall(r'<th scope="col"[^>]*>(?:<[^>]*>)*([^<]*)', page.text)
    assert heads == ["Title", "Policy", "Frequency", "Look at"]
    assert '<input type="hidden" name="columns" value="frequency">' in page.text  # whoever searches keeps them


def test_a_list_in_groups_counts_each(readers: People) -> None:
    """Also what is on other pages, and with the filters that there are."""
    everything = stored_all(readers, Task)
    page = readers["viewer"].get(page_of(Task, query="group=status&limit=5&columns=deadline"))
    groups = re.findall(r'<tr class="group">.*?</i>([^<]*)</span> <span class="small dim">(\d+)<', page.text)
    counts = Counter(task["status"] for task in everything)
    assert groups == [(words(value), str(counts[value])) for value in sorted(counts)]
    searched = readers["viewer"].get(page_of(Task, query="group=status&search=namesake"))
    assert re.findall(r'<span class="small dim">(\d+)<', searched.text) == ["1"]
    sorting = next(link for link in Parsed(page).links if "sortColumn=deadline" in link)
    assert "group=" not in sorting
    assert 'class="group"' not in readers["viewer"].get(page_of(Task, query="group=title")).text


def test_mine_is_a_view(readers: People) -> None:
    address = page_of(Task, query="assigneeMemberId=member-editor")
    page = readers["editor"].get(page_of(Task))
    assert address in Parsed(page).links
    assert f'<a href="{address}" aria-current="page">Mine</a>' in readers["editor"].get(address).text


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_opens_beside_the_list(kind: type[Restorable], readers: People) -> None:
    """With a form for editors, of what changes most; viewers read."""
    record = record_id(kind, "live")
    opening = next(link for link in Parsed(readers["viewer"].get(page_of(kind))).links if f"open={record}" in link)
    for user in ("viewer", "editor"):
        page = readers[user].get(opening.partition("#")[0])
        assert f"{kind.words()} live" in Parsed(page).text
        assert page_of(kind, record) in Parsed(page).links
        forms = [form for form in Parsed(page).forms if form.action == page_of(kind, record, "edit")]
        assert len(forms) == (user == "editor" and any(field.sort in _QUICK for field in first_of(kind)))


_QUICK = ("token", "reference", "moment")


def stored_all(people: People, kind: type[Restorable]) -> list[dict[str, Any]]:
    """The live records of a kind, as the interface has them."""
    answer = people.instance.client.get(
        f"/{kind.path}/", params={"organizationId": ALPHA_ID}, headers=bearer(people, "viewer")
    )
    found: list[dict[str, Any]] = answer.json()["items"]
    return found
