"""A control whose assessment cannot be right: its page says beside what, and offers each way out."""

from __future__ import annotations

from typing import Any

import pytest

from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA, Form, Parsed, send
from tests.console.browser import is_refused, text_of
from tests.databases import on_both
from tests.world import ALPHA as ALPHA_ID

ONE = f"{ALPHA}controls/moon.A.1/"
SUN = f"{ALPHA}controls/sun.A.1/"
SAID = "Our assessment is lower than what follows from these matches."


@pytest.fixture
def disputed(people: People) -> People:
    """Moon A.1 is assessed PARTIAL, and a match of a mapping from sun A.1 makes it FULL."""
    people.instance.load(
        {
            "mappingDocuments": [{"id": "doc", "document": "sun-to-moon", "name": "Sun to moon", "version": "3"}],
            "controlMatches": [{"id": "sun.A.1->moon.A.1", "mappingDocumentId": "doc"}],
            "controlCoverages": [
                {"id": "say-moon", "organizationId": ALPHA_ID, "controlId": "moon.A.1", "coverageStatus": "PARTIAL"}
            ],
        }
    )
    return people


def aside_forms(page: Any) -> list[Form]:
    """The forms of a page that set matches aside, or have them count again."""
    return [form for form in Parsed(page).forms if form.action.endswith("set-aside/")]


@on_both
def test_each_way_out_is_offered_to_those_who_may(disputed: People) -> None:
    page = disputed["editor"].get(ONE)
    said = text_of(page)
    assert SAID in said
    assert "A.1 sun control 1 SUN-2 match of Sun to moon 3" in said
    assert "It is based on the assessment of A.1 sun control 1" in said
    assert {"#assessment", SUN, f"{SUN}#assessment"} <= set(Parsed(page).links)
    [form] = aside_forms(page)
    done = send(disputed["editor"], form, justification="Our premises differ.")
    assert (done.status_code, done.headers["location"]) == (303, f"{ONE}?done=set_aside")
    page = disputed["editor"].get(done.headers["location"])
    assert SAID not in text_of(page)
    assert "The match was set aside." in text_of(page)
    assert "Our premises differ." in text_of(page)
    assert "Our premises differ." in text_of(disputed["editor"].get(SUN)), "at its other end, too"
    [form] = aside_forms(page)
    assert send(disputed["editor"], form, step="take_up").headers["location"] == f"{ONE}?done=taken_up"
    page = disputed["editor"].get(ONE)
    assert SAID in text_of(page)
    assert "Our premises differ." not in text_of(page)


def test_a_viewer_reads_what_is_in_conflict_and_is_offered_nothing(disputed: People) -> None:
    page = disputed["viewer"].get(ONE)
    assert SAID in text_of(page)
    assert SUN in Parsed(page).links
    assert not [link for link in Parsed(page).links if "#assessment" in link]
    assert aside_forms(page) == []
    answer = disputed["viewer"].post(f"{ONE}set-aside/", match="sun.A.1->moon.A.1", justification="No.")
    assert is_refused(answer)


def test_it_takes_a_justification(disputed: People) -> None:
    [form] = aside_forms(disputed["editor"].get(ONE))
    for typed in ("", "   "):
        answer = send(disputed["editor"], form, justification=typed)
        assert is_refused(answer, status=400)
        assert SAID in text_of(answer)
        assert 'id="fault-justification"' in answer.text
        assert len(aside_forms(answer)) == 1
    assert disputed["editor"].post(f"{ONE}set-aside/", match="nothing", justification="No.").status_code == 404


def test_a_group_names_the_requirements_below_it_that_are_less(people: People) -> None:
    browser = people["editor"]
    for control, status in (("own.A", "FULL"), *((f"own.A.{number}", "PARTIAL") for number in range(1, 13))):
        assert browser.post(f"{ALPHA}controls/{control}/coverage/", coverageStatus=status).status_code == 303
    page = browser.get(f"{ALPHA}controls/own.A/")
    assert "Our assessment is full, but these requirements below it are assessed lower." in text_of(page)
    assert "2 more requirements below it are assessed lower" in text_of(page)
    assert f"{ALPHA}controls/own.A.10/#assessment" in Parsed(page).links
    assert aside_forms(page) == []


def test_reports_and_the_overview_lead_to_conflicts(disputed: People) -> None:
    """The gaps list them apart: what a match makes full is no gap."""
    moon = f"{ALPHA}frameworks/fw-moon/"
    browser = disputed["editor"]
    assert browser.post(f"{ALPHA}controls/moon.A/coverage/", coverageStatus="FULL").status_code == 303
    page = browser.get(f"{moon}gaps/")
    said = text_of(page)
    assert "Conflicts: assessments that cannot be right 2" in said
    assert "A moon category ◐ Partial" not in said
    assert "Partial ● Full Matches, which make it full" in said
    assert "● Full ● Full What is assessed below it" in said
    assert {f"{ONE}#conflict", f"{ALPHA}controls/moon.A/#conflict"} <= set(Parsed(page).links)
    said = text_of(browser.get(f"{moon}statement-of-applicability/"))
    assert "5 not assessed, 1 in conflict with what matches or other assessments say." in said
    assert "◐ Partly Conflict" in said
    home = browser.get(ALPHA)
    assert "1 assessment of SUN-10 is in conflict with what matches or other assessments say." in text_of(home)
    assert f"{moon}gaps/#conflicts" in Parsed(home).links


def test_where_nothing_is_in_conflict_nothing_says_so(readers: People) -> None:
    for page in (
        ALPHA,
        f"{ALPHA}frameworks/fw-moon/gaps/",
        f"{ALPHA}frameworks/fw-moon/statement-of-applicability/",
        ONE,
    ):
        assert "onflict" not in text_of(readers["viewer"].get(page))


def test_a_mandatory_requirement_that_is_excluded_is_marked(people: People) -> None:
    out = {"id": "out", "organizationId": ALPHA_ID, "controlId": "moon.A.2", "isApplicable": False}
    people.instance.load({"controlCoverages": [out | {"justification": "By an older version."}]})
    said = text_of(people["viewer"].get(f"{ALPHA}frameworks/fw-moon/statement-of-applicability/"))
    assert "1 mandatory, and excluded nevertheless." in said
    assert "Mandatory, and excluded nevertheless" in said
    assert "⊘ Excluded" in said
