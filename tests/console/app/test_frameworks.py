"""Frameworks, reports, the crosswalk, and working through gaps."""

from __future__ import annotations

import csv
import io
import re
import threading
from typing import Any

import pytest

from normata.console.app import reports
from normata.console.pages import Pages
from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA, Parsed, send
from tests.console.browser import Browser, is_refused, text_of
from tests.oscal.rows import bare_document
from tests.world import ALPHA as ALPHA_ID

MOON = f"{ALPHA}frameworks/fw-moon/"


def test_home_tells_where_the_organization_stands(readers: People) -> None:
    said = text_of(readers["owner"].get(ALPHA))
    assert re.search(
        r"moon standard 8 % ready known since today 0 of 12 assessed .* 1 full . 1 partial . 10 none 11 gaps", said
    )
    assert "What changed" in said
    said = text_of(readers["editor"].get(ALPHA))
    assert re.search(r"My next five All \d+ .* Overdue", said)


def test_home_tells_what_was_changed_in_sentences(people: People) -> None:
    for control, level in (("moon.A.5", "FULL"), ("moon.A.4", "PARTIAL"), ("moon.A.3", "FULL")):
        people["owner"].post(f"{ALPHA}controls/{control}/coverage/", coverageStatus=level)
    people["editor"].post(f"{ALPHA}controls/moon.A.6/coverage/", coverageStatus="FULL")
    said = text_of(people["owner"].get(ALPHA))
    assert re.search(r"Today .* Editor assessed A.6 moon control 6 as . Full", said)
    assert re.search(r"Owner assessed 3 controls : 2 full, 1 partial", said)


def test_a_framework_is_adopted_and_left(people: People) -> None:
    browser = people["admin"]
    listed = text_of(browser.get(f"{ALPHA}frameworks/"))
    assert re.search(r"Étoile Straße STAR 13 No Preview", listed)
    preview = browser.get(f"{ALPHA}frameworks/fw-star/adoption/")
    assert "12 controls apply" in text_of(preview)
    form = Parsed(preview).form("fw-star/adoption/")
    answer = send(browser, form, step="adopt")
    assert (answer.status_code, answer.headers["location"]) == (303, f"{ALPHA}frameworks/fw-star/?done=adopted")
    assert "The framework was adopted." in text_of(browser.get(answer.headers["location"]))
    answer = browser.post(form.action, step="leave")
    assert (answer.status_code, answer.headers["location"]) == (303, f"{ALPHA}frameworks/?done=left")
    assert is_refused(browser.get(f"{ALPHA}frameworks/fw-star/"), status=404)


def test_an_unknown_step_adopts_nothing(people: People) -> None:
    assert is_refused(people["admin"].post(f"{ALPHA}frameworks/fw-star/adoption/", step="other"), status=400)
    assert is_refused(people["admin"].get(f"{ALPHA}frameworks/fw-star/"), status=404)


@pytest.mark.parametrize("step", ["adopt", "leave"])
def test_adoption_is_for_admins(step: str, people: People) -> None:
    editor = people["editor"]
    assert "Admins can adopt it." in text_of(editor.get(f"{ALPHA}frameworks/fw-star/adoption/"))
    assert is_refused(editor.post(f"{MOON}adoption/", step=step), status=403)
    assert editor.get(MOON).status_code == 200


def test_choosing_a_baseline_shows_what_follows(people: People) -> None:
    """As a dry run says it, to those who may adopt. Reports and controls name the baseline then."""
    people.instance.load(
        {
            "baselines": [{"id": "moon:few", "frameworkId": "fw-moon", "name": "Few rules"}],
            "baselineControls": [{"id": "moon:few:3", "baselineId": "moon:few", "controlId": "moon.A.3"}],
        }
    )
    admin, viewer = people["admin"], people["viewer"]
    assert "What follows" not in text_of(admin.get(f"{MOON}adoption/"))
    place = admin.post(f"{MOON}adoption/", step="preview", baseline="moon:few").headers["location"]
    said = text_of(admin.get(place))
    assert re.search(r"What follows \d+ controls? would have another effective status\.", said)
    assert re.search(r"A\.1 moon control 1 . Full → . None", said)
    assert "What follows" not in text_of(viewer.get(place))
    answer = admin.post(f"{MOON}adoption/", step="adopt", hasBaseline="1", baseline="moon:few")
    assert answer.headers["location"] == f"{MOON}?done=adopted"
    for report in ("", "gaps/", "plan/", "statement-of-applicability/"):
        assert "Few rules" in text_of(viewer.get(f"{MOON}{report}"))
    assert "Outside of the baseline Few rules" in text_of(viewer.get(f"{ALPHA}controls/moon.A.1/"))


def test_gaps_come_worst_first_with_what_would_close_them(readers: People) -> None:
    page = readers["viewer"].get(f"{MOON}gaps/")
    said = text_of(page)
    assert re.search(
        r"A\.2 moon control 2 Mandatory . None A\.2 A\.4 .* "
        r"A\.5 moon control 5 . None .* A\.3 moon control 3 . Partial",
        said,
    )
    assert f'<a class="link nb" href="{ALPHA}controls/sun.A.2/?gaps=fw-moon" title="sun control 2">A.2</a>' in page.text


def test_a_plan_says_what_to_assess_in_which_order(readers: People) -> None:
    """Each step leads to its control, and says what it closes elsewhere."""
    page = readers["viewer"].get(f"{MOON}plan/")
    links = Parsed(page).links
    plan = readers.instance.client.get(
        "/frameworks/fw-moon/gaps/plan/",
        params={"organizationId": ALPHA_ID},
        headers=readers.instance.bearer("viewer"),
    ).json()
    assert [step["control"]["id"] for step in plan["steps"]][:2] == ["sun.A.2", "moon.A.3"]
    for step in plan["steps"]:
        assert f"{ALPHA}controls/{step['control']['id']}/?gaps=fw-moon" in links
    said = text_of(page)
    assert re.search(r"A\.2 sun control 2 SUN-2 1 . SUN-10, full A\.2 SUN-2, full A\.2 \d+ % A\.3 moon", said)
    assert f"{MOON}plan/" in Parsed(readers["viewer"].get(f"{MOON}gaps/")).links
    assert f"{MOON}plan/?steps=25" in links
    longer = readers["viewer"].get(f"{MOON}plan/?steps=25")
    assert "25 steps" in text_of(longer)
    assert is_refused(readers["viewer"].get(f"{MOON}plan/?steps=51"), status=400)
    assert is_refused(readers["viewer"].get(f"{ALPHA}frameworks/fw-star/plan/"), status=404)


def test_the_statement_of_applicability_has_every_control(readers: People) -> None:
    """What is mandatory stands apart, and what applies of further frameworks follows if the address names them."""
    said = text_of(readers["viewer"].get(f"{MOON}statement-of-applicability/"))
    assert "Statement of Applicability 6" in said
    assert all(f"moon control {number} " in said for number in range(1, 13))
    assert "6 included without a reason, 6 not assessed" in said
    assert "Mandatory requirements 6" in said
    page = readers["viewer"].get(f"{MOON}statement-of-applicability/?otherFrameworkIds=fw-sun")
    assert "Statement of Applicability 12" in text_of(page)
    assert "A.3 SUN-2 sun control 3" in text_of(page)
    (pdf,) = (link for link in Parsed(page).links if "format=pdf" in link)
    assert readers["viewer"].get(pdf).content.startswith(b"%PDF")


def test_the_objections_to_a_statement_are_worked_through(people: People) -> None:
    statement = f"{MOON}statement-of-applicability/"
    editor = people["editor"]
    page = editor.get(statement)
    assert "6 included without a reason, 6 not assessed" in text_of(page)
    assert "Work through" not in people["viewer"].get(statement).text
    objected = {link for link in Parsed(page).links if "return_to=" in link}
    assert len(objected) == 6
    for left, link in zip((5, 4), sorted(objected), strict=False):
        form = Parsed(editor.get(link)).form("/coverage/")
        done = send(editor, form, coverageStatus="FULL", hasReasons="1", reasons="LEGAL")
        there = done.headers["location"]
        assert there.startswith(f"{statement}?objections=shown")
        again = editor.get(there)
        assert f"{left} included without a reason, {left} not assessed" in text_of(again)
        assert '<details class="fold" open>' in again.text


@pytest.mark.parametrize("report", ["gaps", "statement-of-applicability"])
def test_reports_are_files(report: str, readers: People) -> None:
    page = readers["viewer"].get(f"{MOON}{report}/")
    links = sorted(link for link in Parsed(page).links if "/file/" in link)
    names = ["csv", "json", *(["pdf"] if report != "gaps" else []), "xlsx"]
    assert [link.partition("=")[2] for link in links] == names
    api = readers.instance.client
    query = {"organizationId": ALPHA_ID}
    for link in links:
        answer = readers["viewer"].get(link)
        query["format"] = link.partition("=")[2]
        theirs = api.get(f"/frameworks/fw-moon/{report}/", params=query, headers=readers.instance.bearer("viewer"))
        assert answer.content == theirs.content
        assert answer.headers["content-disposition"] == theirs.headers["content-disposition"]
        assert answer.headers["content-type"] == theirs.headers["content-type"]
    rows = list(csv.reader(io.StringIO(readers["viewer"].get(links[0]).text)))
    assert len(rows) > 6
    assert is_refused(readers["viewer"].get(f"{MOON}{report}/file/?format=odt"), status=400)


def test_documents_of_oscal_are_files(people: People) -> None:
    models = ["catalog", "component-definition", "poam"]
    links = [link for link in Parsed(people["viewer"].get(MOON)).links if "/oscal/" in link]
    assert links == [f"{MOON}oscal/file/?model={model}" for model in models]
    service = people.instance
    query = {"organizationId": ALPHA_ID}
    for link, model in zip(links, models, strict=True):
        theirs = service.client.get(
            "/frameworks/fw-moon/oscal/", params=query | {"model": model}, headers=service.bearer("viewer")
        )
        assert people["viewer"].get(link).content == theirs.content
    assert is_refused(people["viewer"].get(f"{MOON}oscal/file/?original=true"), status=404)
    service.load(
        {"sourceDocuments": [{**bare_document("new", "fw-moon")["sourceDocuments"], "mediaType": "application/yaml"}]}
    )
    [last] = [link for link in Parsed(people["viewer"].get(MOON)).links if "original" in link]
    answer = people["viewer"].get(last)
    assert (answer.text, answer.headers["content-type"]) == ("{ }", "application/yaml")


def test_the_crosswalk_counts_both_ways(readers: People) -> None:
    page = readers["viewer"].get(f"{ALPHA}crosswalk/?from=sun-2&to=sun-10")
    said = text_of(page)
    assert "Of SUN-10, SUN-2 covers 25 % 2 fully and 1 partly, of 12" in said
    assert "Of SUN-2, SUN-10 covers 0 % 0 fully and 0 partly, of 12" in said
    assert "A and A: 3 matches" in said
    (cell,) = {link for link in Parsed(page).links if "row=sun.A" in link}
    matches = text_of(readers["viewer"].get(cell))
    assert re.search(r"A\.1 sun control 1 . Full Full match A\.1 moon control 1", matches)
    assert "A crosswalk needs two" in text_of(readers["viewer"].get(f"{ALPHA}crosswalk/?from=none&to=sun-2"))


@pytest.mark.parametrize("report", ["gaps", "statement-of-applicability"])
def test_nobody_waits_while_a_long_report_is_rendered(
    report: str, readers: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []
    render = Pages.render

    def noted(*given: Any, **values: Any) -> Any:
        threads.append(threading.get_ident())
        return render(*given, **values)

    monkeypatch.setattr(Pages, "render", noted)
    short = readers["viewer"].get(f"{MOON}{report}/")
    monkeypatch.setattr(reports, "_FEW", 0)
    long = readers["viewer"].get(f"{MOON}{report}/")
    assert text_of(short).partition("Request")[0] == text_of(long).partition("Request")[0]
    on_the_loop, beside_it = threads
    assert on_the_loop != beside_it


def test_working_through_goes_from_gap_to_gap(people: People) -> None:
    browser = people["editor"]
    page = browser.get(f"{MOON}work/")
    assert "Gap 1 of 11" in text_of(page)
    seen = []
    for left in range(11, 8, -1):
        form = Parsed(page).form("/work/")
        seen.append(form.fields["control"])
        assert f" of {left}" in text_of(page)
        answer = send(browser, form, coverageStatus="FULL")
        assert answer.status_code == 303
        page = browser.get(answer.headers["location"])
    assert len(set(seen)) == 3
    controls: Any = people.instance.listing("/controls/").get(organizationId=ALPHA_ID, frameworks="fw-moon").json()
    stated = {one["id"] for one in controls["items"] if one["coverage"]["coverageStatus"] == "FULL"}
    assert stated == set(seen)


def test_two_who_work_through_the_same_gap(people: People) -> None:
    """Who is second is told on the page of that control, also where it is no gap any more."""
    browser = people["editor"]
    form = Parsed(browser.get(f"{MOON}work/")).form("/work/")
    control, following = form.fields["control"], form.fields["next"]
    own = f"{ALPHA}controls/{control}/"
    theirs = Parsed(people["admin"].get(own)).form("/coverage/")
    assert send(people["admin"], theirs, coverageStatus="FULL", coverageGap="Theirs.").status_code == 303
    stale = {name: value for name, value in form.fields.items() if name != "assessed_at"}
    for sent, status in ((form.fields, 412), (stale | {"applies": "false"}, 400)):
        form.fields = sent
        answer = send(browser, form, coverageStatus="NONE", coverageGap="Mine.")
        assert is_refused(answer, status=status)
        again = Parsed(answer).form(f"{own.removeprefix('/app')}coverage/")
        assert again.fields["coverageGap"] == "Mine."
        assert again.fields["return_to"].startswith(f"{MOON}work/?at={following}")
    assert "Theirs." in text_of(browser.get(own))


def test_working_through_excludes_only_what_may_be(people: People) -> None:
    """The first of these controls is mandatory."""
    offered = ['name="applies"' in people["editor"].get(f"{MOON}work/{query}").text for query in ("", "?at=moon.A.9")]
    assert offered == [False, True]


def test_working_through_tells_what_is_wrong(people: People) -> None:
    browser = people["editor"]
    form = Parsed(browser.get(f"{MOON}work/?at=moon.A.9")).form("/work/")  # the first cannot be excluded
    answer = send(browser, form, coverageGap="Typed.", applies="false")
    assert is_refused(answer, status=400)
    assert 'id="fault-justification">is required' in answer.text
    again = Parsed(answer).form("/work/")
    assert (again.fields["control"], again.fields["coverageGap"]) == (form.fields["control"], "Typed.")
    answer = send(browser, again, justification="We have none.", applies="false")
    assert answer.status_code == 303
    assert "Gap 1 of 10" in text_of(browser.get(f"{MOON}work/"))


@pytest.mark.parametrize("query", ["at=none", "at=moon.A.1", "number=99999999999", "number=x", "at=&number=3"])
def test_working_through_begins_somewhere(query: str, readers: People) -> None:
    page = readers["viewer"].get(f"{MOON}work/?{query}")
    assert page.status_code == 200
    assert re.search(r"Gap \d+ of 11", text_of(page))


def test_the_way_in_offers_all_organizations(people: People) -> None:
    people.instance.load(
        {"memberships": [{"id": "m-both", "organizationId": "org-beta", "userId": "user-editor", "role": "viewer"}]}
    )
    browser: Browser = people["editor"]
    chosen = Parsed(browser.get("/app/"))
    assert [link for link in chosen.links if link.startswith("/app/")] == ["/app/", ALPHA, "/app/beta/"]
    assert "/app/beta/" in Parsed(browser.get(ALPHA)).links
    assert browser.get("/app/beta/controls/").status_code == 200
    assert is_refused(browser.post("/app/beta/controls/star.A.1/coverage/", coverageStatus="FULL"), status=403)
