"""Records of every kind on their pages, what they refer to and what people wrote; and lists with filters."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic.alias_generators import to_camel

from normata.records.base import Restorable, text_columns
from normata.records.fields import referring_to
from normata.records.kinds import Asset, Audit, Finding, Policy, Task
from normata.records.writing import writable
from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA, Parsed
from tests.console.app.records.recording import Sheet, bearer, made, new_of, page_of
from tests.console.browser import text_of
from tests.core.http.counting import counting
from tests.records.shapes import KINDS

# What people write, and what must never be anything but text; the last has no place to break.
HOSTILE = " ".join(
    (
        "<img src=x onerror=alert(1)>'\"&amp;&lt;b&gt; {{ 7*7 }}",
        "<script>alert(1)</script>",
        "=HYPERLINK(1+1)",
        "+cmd|' /C calc'!A0",
        "\u202egnissim\u202c \u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627",
        "\U0001f469\u200d\U0001f4bb\U0001f4a5 été",
    )
)
LONG = "W" * 10_000


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("status=DONE", {"one"}),
        ("status=DONE&status=TODO", {"one", "two"}),
        ("policyId=policies-live-org-alpha&archived=include", {"one", "three"}),
        ("assigneeMemberId=member-owner", {"two"}),
        ("search=task+TWO", {"two"}),
        ("trainingId=t-1", {"two"}),
        ("status=UNHEARD_OF", set()),
    ],
)
def test_filters(query: str, found: set[str], filtered: People) -> None:
    page = filtered["viewer"].get(page_of(Task, query=f"{query}&createdAt="))
    links = {link.split("/")[-2] for link in Parsed(page).links if link.startswith(page_of(Task))}
    assert {one for one in ("one", "two", "three") if one in links} == found
    if not found:
        assert "No tasks match these filters. Show all" in text_of(page)


@pytest.fixture(scope="module")
def filtered(shared: People) -> People:
    """People over a world with three tasks to filter."""
    rows: list[dict[str, Any]] = [
        {"id": "one", "title": "Task one", "status": "DONE", "policyId": "policies-live-org-alpha"},
        {"id": "two", "title": "Task two", "status": "TODO", "assigneeMemberId": "member-owner", "trainingId": "t-1"},
        {"id": "three", "title": "Three", "policyId": "policies-live-org-alpha", "archivedAt": "2026-01-01"}
        | {"status": "CANCELLED"},
    ]
    shared.instance.load({"tasks": [{"organizationId": "org-alpha", **row} for row in rows]})
    return shared


def test_a_chosen_filter_is_told_by_name(filtered: People) -> None:
    page = filtered["viewer"].get(page_of(Task, query="policyId=policies-archived-org-alpha"))
    assert '<option value="policies-archived-org-alpha" selected>policy archived' in page.text


def test_order_and_pages_stay_in_the_links(filtered: People) -> None:
    for number in range(7):
        made(filtered, Task, title=f"Ordered {number}", priority="LOW")
    page = filtered["viewer"].get(page_of(Task, query="limit=5&sortColumn=title&sortDirection=desc&priority=LOW"))
    assert 'aria-sort="descending"' in page.text
    following = next(link for link in Parsed(page).links if "page=2" in link)
    assert {"sortColumn=title", "sortDirection=desc", "priority=LOW", "limit=5"} <= set(
        following.split("?")[1].split("&")
    )
    assert "Ordered 6" in page.text
    assert "Ordered 6" not in filtered["viewer"].get(following).text


@pytest.mark.parametrize("kind", [kind for kind in Restorable.kinds if referring_to(kind.path)])
def test_references_are_links_both_ways(kind: type[Restorable], shared: People) -> None:
    target = made(shared, kind)
    for one, field in referring_to(kind.path):
        source = made(shared, one, **{field.name: target})
        there = page_of(one, source)
        page = shared["editor"].get(page_of(kind, target))
        assert there in Parsed(page).links
        assert f"{new_of(one)}?{field.name}={target}" in Parsed(page).links
        assert page_of(kind, target) in Parsed(shared["viewer"].get(there)).links


def test_controls_frameworks_and_statements_are_links(shared: People) -> None:
    task = made(shared, Task, controlCoverageId="say-sun.A.1", assigneeMemberId="member-admin")
    finding = made(shared, Finding, controlId="moon.A.1")
    audit = made(shared, Audit, frameworkId="fw-moon")
    page = shared["viewer"].get(page_of(Task, task))
    assert f"{ALPHA}controls/sun.A.1/" in Parsed(page).links
    assert "Assignee A Admin" in text_of(page)
    assert f"{ALPHA}controls/moon.A.1/" in Parsed(shared["viewer"].get(page_of(Finding, finding))).links
    assert f"{ALPHA}frameworks/fw-moon/" in Parsed(shared["viewer"].get(page_of(Audit, audit))).links


def test_the_links_of_other_pages_lead_to_records(shared: People) -> None:
    finding = made(shared, Finding, controlId="moon.A.2")
    control = Parsed(shared["viewer"].get(f"{ALPHA}controls/moon.A.2/"))
    assert page_of(Finding, finding) in control.links
    assert shared["viewer"].get(page_of(Finding, finding)).status_code == 200


def test_more_than_a_few_that_refer_to_it_are_counted(shared: People) -> None:
    policy = made(shared, Policy)
    for _ in range(12):
        made(shared, Task, policyId=policy)
    page = shared["viewer"].get(page_of(Policy, policy))
    assert "Tasks 12" in text_of(page)
    everything = next(link for link in Parsed(page).links if f"policyId={policy}" in link)
    assert "Tasks 12" in text_of(shared["viewer"].get(everything))


def test_the_history_says_who_and_what_by_name(shared: People) -> None:
    asset = made(shared, Asset, ownerId="member-owner")
    edit = Sheet(shared["admin"].get(page_of(Asset, asset, "edit")), "/edit/")
    edit.send(shared["admin"], ownerId="member-editor", status="RETIRED")
    said = text_of(shared["viewer"].get(page_of(Asset, asset)))
    assert "Admin changed status, owner" in said
    assert "Status: ● Active → ⊘ Retired" in said
    assert "Owner: O Owner → E Editor" in said


def test_the_history_shows_the_difference_of_texts(shared: People) -> None:
    policy = made(shared, Policy, content="The list is renewed each autumn, by the board.")
    edit = Sheet(shared["editor"].get(page_of(Policy, policy, "edit")), "/edit/")
    edit.send(shared["editor"], content="The list is renewed each spring, by the <b>board</b>.")
    page = shared["viewer"].get(page_of(Policy, policy)).text
    assert "<del>autumn</del><ins>spring</ins>" in page
    assert "<ins>&lt;b&gt;</ins>board<ins>&lt;/b&gt;</ins>" in page


# --- What people wrote


@pytest.mark.parametrize("kind", KINDS)
def test_what_people_wrote_is_shown_as_written(kind: type[Restorable], shared: People) -> None:
    """In every text of every kind: in its list, on its page, in its form, and in the archive."""
    lengths = {column.name: getattr(column.type, "length", None) for column in kind.sql().c}
    for hostile in (HOSTILE, LONG):
        texts = {name: hostile[: lengths[name] or len(hostile)] for name in text_columns(kind) if name != "slug"}
        # A request may not write such a text.
        loaded = {name for name in texts if {"written", "set_by"} & kind.sql().c[name].info.keys()}
        wire = {to_camel(name): written for name, written in texts.items() if name not in loaded}
        record = made(shared, kind, **wire)
        if loaded:
            row = {to_camel(name): texts[name] for name in loaded}
            shared.instance.load({kind.path: [{"id": record, "organizationId": "org-alpha", **row}]})
        title = texts[kind.title_column()]
        pages = {
            "list": page_of(kind, query="limit=5"),
            "page": page_of(kind, record),
            "form": page_of(kind, record, "edit"),
        }
        for name, address in pages.items():
            answer = shared["editor"].get(address)
            assert answer.status_code == 200
            parsed = Parsed(answer)
            _is_harmless(parsed)
            values = {value for _, _, value in parsed.attributes}
            typed = {column: written for column, written in texts.items() if column in writable(kind)}
            for column, written in (typed if name == "form" else texts).items():
                shown = column == kind.title_column() or name == "page"
                if name == "form" and lengths[column] is not None:
                    assert written in values, (column, written)
                elif name == "form" or shown:
                    assert written in parsed.text, (name, column, written)
        shared.instance.client.post(
            f"/{kind.path}/{record}/archive/", json={"reason": hostile[:1000]}, headers=bearer(shared, "editor")
        )
        for address in (pages["page"], f"{ALPHA}archive/?limit=5"):
            parsed = Parsed(shared["editor"].get(address))
            _is_harmless(parsed)
            assert title in parsed.text
            assert hostile[:1000] in parsed.text


def _is_harmless(parsed: Parsed) -> None:
    assert "img" not in parsed.tags
    assert not [name for _, name, _ in parsed.attributes if name.startswith("on") or name == "style"]
    assert all(
        value.startswith("/static/") for tag, name, value in parsed.attributes if (tag, name) == ("script", "src")
    )


@pytest.mark.parametrize(
    ("written", "markup"),
    [
        ("# Title\n\ntext *here*", "<h3>Title</h3>\n<p>text <em>here</em></p>"),
        ("## Second\n\n### Third", "<h3>Second</h3>\n<h4>Third</h4>"),
        ("[evil](javascript:alert(1))", "<p>[evil](javascript:alert(1))</p>"),
        ("[site](https://a.example/)", '<a href="https://a.example/" rel="noopener noreferrer nofollow">site</a>'),
        ("![a](https://a.example/p.png)", '!<a href="https://a.example/p.png"'),
        ("<b onclick=x>bold</b> &amp;", "&lt;b onclick=x&gt;bold&lt;/b&gt; &amp;amp;"),
        ("one\ntwo", "one<br>\ntwo"),
        ("| a | b |\n|---|---|\n| 1 | 2 |", "<th>a</th>"),
    ],
)
def test_long_texts_and_contents_are_markdown(written: str, markup: str, shared: People) -> None:
    policy = made(shared, Policy, content=written)
    asset = made(shared, Asset, description=written)
    for address in (page_of(Policy, policy), page_of(Asset, asset)):
        assert markup in shared["viewer"].get(address).text


def test_a_text_that_is_too_long_for_markdown_is_shown_as_it_is(shared: People) -> None:
    record = made(shared, Policy, content="**long** " * 15_000)
    page = shared["viewer"].get(page_of(Policy, record))
    assert page.text.count("**long**") == 15_000
    assert "<strong>" in shared["viewer"].get(page_of(Policy, made(shared, Policy, content="**long** " * 1_000))).text


def test_a_document_is_shown_as_what_it_is(shared: People) -> None:
    policy = made(shared, Policy, content={"type": "doc", "content": [{"text": "<b>Über</b>"}]})
    parsed = Parsed(shared["viewer"].get(page_of(Policy, policy)))
    assert '"text": "<b>Über</b>"' in parsed.text


# --- What there is not, and what it costs


def test_an_id_may_be_anything(shared: People) -> None:
    odd = "a/b?c#d é:%2F"
    shared.instance.load({"tasks": [{"id": odd, "organizationId": "org-alpha", "title": "Odd"}]})
    page = shared["editor"].get(page_of(Task, odd))
    assert page.status_code == 200
    assert page_of(Task, odd) in Parsed(shared["editor"].get(page_of(Task, query="search=Odd"))).links
    answer = Sheet(page, "/archive/").send(shared["editor"], step="archive")
    assert answer.status_code == 303
    assert "Archived: Odd" in text_of(shared["editor"].get(answer.headers["location"]))


@pytest.mark.parametrize("page", ["list", "whole list", "page", "form", "archive"])
def test_a_page_makes_as_many_statements_whatever_there_is(
    page: str, shared: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with more records, which refer to more."""
    asset = made(shared, Asset, ownerId="member-owner")
    address = {
        "list": page_of(Asset),
        "whole list": page_of(Asset, query="filters=all"),
        "page": page_of(Asset, asset),
        "form": page_of(Asset, asset, "edit"),
        "archive": f"{ALPHA}archive/",
    }[page]
    counts = []
    for _ in range(3):
        with counting(shared.instance.app.services.database, monkeypatch) as asked:
            assert shared["editor"].get(address).status_code == 200
        counts.append(len(asked.statements))
        for owner in ("member-admin", "member-editor"):
            made(shared, Asset, parentId=asset, ownerId=owner)
            made(shared, Task, assetId=asset, assigneeMemberId=owner)
    # One more where there is something to read, and not only to count.
    assert max(counts[1:]) == counts[1] <= counts[0] + 2
    assert counts[-1] <= 20
