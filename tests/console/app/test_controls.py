"""The list of controls, a control, and stating coverage on both."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest

from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA, Form, Parsed, send
from tests.console.browser import Browser, is_refused, text_of
from tests.served import Served
from tests.world import ALPHA as ALPHA_ID

LIST = f"{ALPHA}controls/"
ONE = f"{ALPHA}controls/moon.A.5/"


def _identifiers(page: Any) -> list[str]:
    return re.findall(r'<th scope="row"><a [^>]*><span class="id">([^<]*)</span>', page.text)


def _control(instance: Served, control: str) -> Any:
    query = {"organizationId": ALPHA_ID}
    return instance.client.get(f"/controls/{control}/", params=query, headers=instance.bearer("viewer")).json()


def _form_beside(browser: Browser, control_id: str) -> Form:
    """The form of a control beside the list, without what its second button sends."""
    return Parsed(browser.get(f"{LIST}?open={control_id}")).form(f"controls/{control_id}/coverage/")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("coverageStatus=FULL", {"sun": ["A.1", "A.3"]}),
        ("effectiveCoverageStatus=FULL&frameworks=sun-10", {"moon": ["A.1"]}),
        ("isIndirectlyCovered=true&frameworks=fw-moon", {"moon": ["A", "A.1", "A.3"]}),
        ("hasGap=true", {"sun": ["A.2"]}),
        ("isApplicable=false", {}),
        ("isAssessed=true&coverageStatus=PARTIAL", {"sun": ["A.2"]}),
        ("search=50%25_off&frameworks=SUN-2", {"sun": ["A.7"]}),
        ("type=CATEGORY&frameworks=SUN-2", {"sun": ["A"]}),
    ],
)
def test_filters(query: str, found: dict[str, list[str]], readers: People) -> None:
    page = readers["viewer"].get(f"{LIST}?{query}")
    names = [name for names in found.values() for name in names]
    assert sorted(_identifiers(page)) == sorted(names)
    assert f"Controls {len(names)} " in text_of(page)


def test_order_and_pages_stay_in_the_links(readers: People) -> None:
    page = readers["viewer"].get(f"{LIST}?limit=5&sortColumn=name&sortDirection=desc&type=CONTROL")
    assert len(_identifiers(page)) == 5
    following = next(link for link in Parsed(page).links if "page=2" in link)
    assert {"sortColumn=name", "sortDirection=desc", "type=CONTROL", "limit=5"} <= set(
        following.split("?")[1].split("&")
    )
    assert _identifiers(readers["viewer"].get(following)) != _identifiers(page)
    assert 'aria-sort="descending"' in page.text


def test_an_empty_list_says_what_to_do(readers: People) -> None:
    assert "No controls match these filters. Show all" in text_of(
        readers["viewer"].get(f"{LIST}?search=nothing+like+it")
    )


def test_state_in_the_row(people: People) -> None:
    page = people["editor"].get(f"{LIST}?frameworks=fw-moon&limit=50")
    [link] = [link for link in Parsed(page).links if "open=moon.A.5#" in link]
    beside = Parsed(people["editor"].get(link))
    form = beside.form("controls/moon.A.5/coverage/")
    (following, back) = (value for name, value in form.buttons if name == "return_to")
    assert back == f"{LIST}?frameworks=fw-moon&limit=50"
    assert following == f"{back}&open=moon.A.6"
    typed = {"coverageStatus": "PARTIAL", "coverageGap": "Line 1\r\nLine 2 <b>", "return_to": following}
    answer = send(people["editor"], form, **typed)
    assert answer.headers["location"].startswith(f"{following}&assessed=")
    said = text_of(people["editor"].get(answer.headers["location"]))
    assert "Saved." in said
    assert "A.6 moon control 6" in said
    control = _control(people.instance, "moon.A.5")
    assert control["coverage"]["coverageStatus"] == "PARTIAL"
    assert control["coverage"]["coverageGap"] == "Line 1\nLine 2 <b>"


def test_no_row_repeats_what_is_selected(readers: People) -> None:
    page = readers["editor"].get(f"{LIST}?search=moon&selected=moon.A.1&selected=moon.A.2")
    assert page.text.count(" checked") >= 2
    links = [link for link in Parsed(page).links if "open=" in link]
    assert links
    assert not [link for link in links if "selected" in link or "search=moon" not in link]


def test_what_the_row_does_not_show_stays(people: People) -> None:
    people["editor"].post(f"{ONE}coverage/", coverageStatus="FULL", hasReasons="1", reasons="LEGAL", applies="true")
    form = _form_beside(people["editor"], "moon.A.5")
    send(people["editor"], form, coverageStatus="NONE")
    coverage = _control(people.instance, "moon.A.5")["coverage"]
    assert (coverage["coverageStatus"], coverage["reasons"]) == ("NONE", ["LEGAL"])


def test_a_fault_is_told_at_its_field_and_nothing_typed_is_lost(people: People) -> None:
    form = Parsed(people["editor"].get(ONE)).form("moon.A.5/coverage/")
    form.fields["return_to"] = f"{LIST}?page=1#c5"
    answer = send(people["editor"], form, coverageStatus="EXCLUDED", coverageGap="Typed, and long.")
    assert is_refused(answer, status=400)
    assert 'id="fault-justification">is required where the control is not applicable' in answer.text
    assert Parsed(answer).form("moon.A.5/coverage/").fields["coverageGap"] == "Typed, and long."
    assert Parsed(answer).form("moon.A.5/coverage/").fields["coverageStatus"] == "EXCLUDED"
    assert Parsed(answer).form("moon.A.5/coverage/").fields["return_to"] == f"{LIST}?page=1#c5"
    assert _control(people.instance, "moon.A.5")["coverage"]["coverageGap"] is None


def test_who_saves_second_is_told_and_loses_nothing(people: People) -> None:
    forms = {user: Parsed(people[user].get(ONE)).form("moon.A.5/coverage/") for user in ("editor", "admin")}
    first = send(people["editor"], forms["editor"], coverageGap="The first.")
    assert first.status_code == 303

    typed = {"coverageStatus": "FULL", "coverageGap": "The second."}
    second = send(people["admin"], forms["admin"], **typed)

    assert is_refused(second, status=412)
    assert "Somebody else has changed this in the meantime" in text_of(second)
    assert "The first." in text_of(second)
    form = Parsed(second).form("moon.A.5/coverage/")
    assert form.fields["coverageGap"] == "The second."
    assert _control(people.instance, "moon.A.5")["coverage"]["coverageGap"] == "The first."
    again = send(people["admin"], form)
    assert again.status_code == 303
    assert _control(people.instance, "moon.A.5")["coverage"] | {"updatedAt": "", "assessedAt": ""} == {
        "coverageStatus": "FULL",
        "coverageGap": "The second.",
        "isApplicable": None,
        "justification": None,
        "reasons": [],
        "ownerId": None,
        "note": None,
        "reviewBy": None,
        "updatedAt": "",
        "assessedAt": "",
        "stale": [],
        "lapsedStatus": None,
        "lapsedAt": None,
    }


def test_who_saves_second_in_the_row_is_told(people: People) -> None:
    form = _form_beside(people["editor"], "moon.A.5")
    send(people["admin"], Parsed(people["admin"].get(ONE)).form("moon.A.5/coverage/"), coverageGap="The first.")
    second = send(people["editor"], form, coverageStatus="FULL", coverageGap="The second.")
    assert is_refused(second, status=412)
    assert "The first." in text_of(second)
    assert Parsed(second).form("moon.A.5/coverage/").fields["coverageGap"] == "The second."
    assert _control(people.instance, "moon.A.5")["coverage"]["coverageGap"] == "The first."


def test_nobody_takes_back_what_they_have_not_seen(people: People) -> None:
    first = Parsed(people["editor"].get(ONE)).form("moon.A.5/coverage/")
    send(people["editor"], first, coverageGap="The first.")
    form = Parsed(people["editor"].get(ONE)).form("moon.A.5/coverage/")
    send(people["admin"], Parsed(people["admin"].get(ONE)).form("moon.A.5/coverage/"), coverageGap="The second.")
    assert is_refused(send(people["editor"], form, step="take_back"), status=412)
    assert _control(people.instance, "moon.A.5")["coverage"]["coverageGap"] == "The second."


def test_a_statement_is_taken_back(people: People) -> None:
    answer = people["editor"].post(f"{ALPHA}controls/sun.A.1/coverage/", step="take_back")
    assert answer.status_code == 303
    assert _control(people.instance, "sun.A.1")["coverage"]["updatedAt"] is None


def test_all_selected_at_once_after_a_preview(people: People) -> None:
    browser = people["editor"]
    many: dict[str, Any] = {"selected": ["sun.A.4", "sun.A.5"], "coverageStatus": "FULL", "onlyFilled": "1"}
    many |= {"return_to": f"{LIST}?frameworks=fw-sun"}
    before = _control(people.instance, "sun.A.4")

    preview = browser.post(f"{ALPHA}coverage/", **many, step="preview")

    assert preview.status_code == 200
    assert "Nothing has been changed yet" in text_of(preview)
    assert "SUN-2 2 → 4" in text_of(preview)  # the leaves of the framework that are covered in full
    assert re.search(
        r"What follows [2-9] controls would have another effective status\. Show these controls"
        r" .*A\.4 sun control 4 . None → . Full A\.5 sun control 5 . None → . Full",
        text_of(preview),
    )
    assert f"{ALPHA}controls/sun.A.5/" in Parsed(preview).links
    assert _control(people.instance, "sun.A.4") == before

    done = browser.post(f"{ALPHA}coverage/", **many, step="do")

    assert (done.status_code, done.headers["location"].partition("&assessed=")[0]) == (303, f"{LIST}?frameworks=fw-sun")
    for control in ("sun.A.4", "sun.A.5"):
        assert _control(people.instance, control)["effectiveCoverageStatus"] == "FULL"

    noted = browser.get(done.headers["location"])
    assert "Saved for all selected controls" in text_of(noted)
    form = next(one for one in Parsed(noted).forms if one.fields.get("assessed"))
    assert "Undo" in noted.text
    assert "Undo" not in people["viewer"].get(done.headers["location"]).text  # nor is it their session's note
    undone = send(browser, form, step="undo")
    assert (undone.status_code, undone.headers["location"]) == (
        303,
        f"{LIST}?frameworks=fw-sun&done=assessments_undone",
    )
    assert "have their earlier assessments again" in text_of(browser.get(undone.headers["location"]))
    assert _control(people.instance, "sun.A.4") == before
    assert _control(people.instance, "sun.A.5")["coverage"]["updatedAt"] is None
    again = send(browser, form, step="undo")
    assert again.headers["location"] == f"{LIST}?frameworks=fw-sun&done=nothing_to_undo"


@pytest.mark.parametrize(("mandatory", "more"), [(range(2, 13, 2), " and 1 more"), ((4,), "")])
def test_a_preview_says_what_an_excluded_category_does_not_take_with_it(
    people: People, mandatory: Sequence[int], more: str
) -> None:
    controls = [{"id": f"sun.A.{number}", "isMandatory": number in mandatory} for number in range(1, 13)]
    people.instance.load({"controls": controls})
    fields: dict[str, Any] = {"selected": "sun.A", "coverageStatus": "EXCLUDED", "justification": "No premises."}
    preview = people["editor"].post(f"{ALPHA}coverage/", **fields, onlyFilled="1", step="preview")
    named = ", ".join(f"A.{number}" for number in mandatory[:5])
    words = (
        "requirement below excluded controls still applies"
        if len(mandatory) == 1
        else ("requirements below excluded controls still apply")
    )
    said = re.sub(r" (?=[,.])", "", text_of(preview))  # where a link ends
    assert f"{len(mandatory)} mandatory {words}: {named}{more}." in said
    assert f"{ALPHA}controls/sun.A.4/" in Parsed(preview).links
    fields["coverageStatus"] = "FULL"
    assert "mandatory requirement" not in text_of(people["editor"].post(f"{ALPHA}coverage/", **fields, step="preview"))


def test_a_preview_says_which_conflicts_appear_and_end(people: People) -> None:
    editor = people["editor"]
    editor.post(f"{ALPHA}controls/moon.A.2/coverage/", coverageStatus="NONE")
    fields: dict[str, Any] = {"selected": "sun.A.2", "coverageStatus": "FULL", "onlyFilled": "1"}
    said = text_of(editor.post(f"{ALPHA}coverage/", **fields, step="preview"))
    assert "1 conflict would appear." in said
    assert re.search(r"Show the new conflicts A\.2 moon control 2", said)
    editor.post(f"{ALPHA}coverage/", **fields, step="do")
    fields = {"selected": "moon.A.2", "coverageStatus": "FULL", "onlyFilled": "1"}
    said = text_of(editor.post(f"{ALPHA}coverage/", **fields, step="preview"))
    assert "No control would be covered further or less. 1 conflict would end." in said
    assert re.search(r"Show the conflicts that would end A\.2 moon control 2", said)


def test_nobody_makes_a_link_that_claims_something_was_assessed(people: People) -> None:
    forged = people["editor"].get(f"{LIST}?assessed=2026-01-01T00:00:00.000Z_x&proof=00")
    assert "Undo" not in forged.text


def test_a_preview_tells_what_is_wrong(people: People) -> None:
    fields: dict[str, Any] = {"selected": ["sun.A.4"], "applies": "false", "onlyFilled": "1"}
    answer = people["editor"].post(f"{ALPHA}coverage/", **fields, step="preview")
    assert is_refused(answer, status=400)
    assert "Justification: is required" in text_of(answer)
    none = people["editor"].post(f"{ALPHA}coverage/", coverageStatus="FULL")
    assert none.headers["location"] == f"{LIST}?done=none_selected"


@pytest.mark.parametrize("place", ["https://evil.example/", "//evil.example/app/", "/app/../account/", "/account/"])
def test_a_form_leads_back_to_pages_of_the_console_alone(place: str, people: People) -> None:
    answer = people["editor"].post(f"{ONE}coverage/", coverageStatus="FULL", return_to=place)
    assert answer.headers["location"].startswith(f"{ONE}?assessed=")


def test_what_a_category_takes_with_it_leads_to_the_category(people: People) -> None:
    browser = people["editor"]
    excluded: dict[str, Any] = {"coverageStatus": "EXCLUDED", "justification": "No premises."}
    assert browser.post(f"{ALPHA}controls/sun.A/coverage/", **excluded).status_code == 303
    category = f"{ALPHA}controls/sun.A/"
    page = browser.get(f"{ALPHA}controls/sun.A.3/")
    assert "Excluded with A sun category No premises." in text_of(page)
    beside = browser.get(f"{LIST}?frameworks=fw-sun&type=CONTROL&isApplicable=false&open=sun.A.3")
    assert text_of(beside).count("Excluded with A ") == text_of(beside).count("Excluded with A sun category") + 6
    report = browser.get(f"{ALPHA}frameworks/fw-sun/statement-of-applicability/")
    assert text_of(report).count("Excluded with A . No premises.") == 6
    for one in (page, beside, report):
        assert category in Parsed(one).links
    assert "Excluded with" not in text_of(browser.get(f"{ALPHA}controls/sun.A.2/"))
    assert "Excluded with" not in text_of(browser.get(f"{ALPHA}controls/moon.A.1/"))


def test_what_is_outside_of_the_baseline_says_so_in_its_row(people: People) -> None:
    people.instance.load(
        {
            "baselines": [{"id": "low", "frameworkId": "fw-sun", "identifier": "LOW", "name": "Low"}],
            "baselineControls": [{"id": "low-3", "baselineId": "low", "controlId": "sun.A.3"}],
            "frameworkAdoptions": [{"id": "adopt-sun", "organizationId": ALPHA_ID, "baselineId": "low"}],
        }
    )
    page = text_of(people["viewer"].get(f"{LIST}?frameworks=fw-sun&type=CONTROL"))
    assert page.count("Outside of the baseline Low") == 5
    within, outside = (
        text_of(people["editor"].post(f"{ALPHA}coverage/", selected=one, coverageStatus="FULL", step="preview"))
        for one in ("sun.A.3", "sun.A.5")
    )
    assert "Outside of the baseline Low" in outside
    assert "Outside of the baseline" not in within


def test_a_control_says_why_it_is_covered(readers: People) -> None:
    said = text_of(readers["viewer"].get(f"{ALPHA}controls/moon.A.1/"))
    assert re.search(
        r"A\.1 moon control 1 SUN-10 . Full is fully covered by A\.1 sun control 1 SUN-2 . Full is assessed", said
    )
    said = text_of(readers["viewer"].get(f"{ALPHA}controls/moon.A.2/"))
    assert re.search(r"What would raise its coverage A\.2 sun control 2 . Partial → . Full would make it . Full", said)


def test_a_description_that_is_the_name_is_told_once(people: People) -> None:
    control = {"id": "moon.A.5", "frameworkId": "fw-moon", "identifier": "A.5", "name": "Said once."}
    people.instance.load({"controls": [control | {"description": "Said once."}]})
    assert people["viewer"].get(ONE).text.count('class="prose">Said once.') == 0
    people.instance.load({"controls": [control | {"description": "Said in other words."}]})
    assert people["viewer"].get(ONE).text.count('class="prose">Said in other words.') == 1


def test_the_history_is_for_everybody_and_outlives_an_assessment(people: People) -> None:
    people["editor"].post(f"{ONE}coverage/", coverageStatus="FULL")
    for user in ("viewer", "auditor", "admin"):
        assert re.search(r"History 1 .* Editor Our assessment: . Full", text_of(people[user].get(ONE)))
    people["editor"].post(f"{ONE}coverage/", step="take_back")
    page = text_of(people["viewer"].get(ONE))
    assert re.search(r"History 2 .* Editor Cleared the assessment .* Editor Our assessment: . Full", page)


@pytest.fixture
def reworded(people: People) -> People:
    """Moon A.1 was assessed before its text changed, and its review has been missed besides."""
    rows = {
        "controls": [
            {"id": "moon.A.1", "description": "Tides are written down every day and shown to the crew of each boat."}
        ],
        "controlWordings": [
            {
                "id": "earlier",
                "controlId": "moon.A.1",
                "identifier": "A.1",
                "name": "moon  CONTROL 1",
                "description": "Tides are written down every week and shown to the crew of each boat.",
                "version": "7",
                "replacedAt": "2026-05-01T00:00:00.000Z",
                "staleSince": "2026-05-01T00:00:00.000Z",
            }
        ],
        "controlCoverages": [
            {
                "id": "say-moon",
                "organizationId": ALPHA_ID,
                "controlId": "moon.A.1",
                "coverageStatus": "FULL",
                "assessedAt": "2026-04-01",
                "reviewBy": "2026-04-30",
            }
        ],
    }
    people.instance.load(rows)
    return people


def test_a_stale_assessment_says_why_what_has_changed_and_is_confirmed(reworded: People) -> None:
    path = f"{ALPHA}controls/moon.A.1/"
    page = reworded["viewer"].get(path)
    said = text_of(page)
    assert "Its review has been due since" in said
    assert "An import changed the wording of the control on" in said
    assert "<del>week</del><ins>day</ins>" in page.text
    assert "CONTROL 1" not in said, "letter case and white space are no difference"
    assert not [form for form in Parsed(page).forms if form.action.endswith("confirm/")]
    editor = reworded["editor"]
    [form] = [form for form in Parsed(editor.get(path)).forms if form.action.endswith("confirm/")]
    refused = send(editor, form)
    assert is_refused(refused, status=400)
    assert "is required: the review was due by" in text_of(refused)
    done = send(editor, form, reviewBy="2031-01-01")
    assert (done.status_code, done.headers["location"]) == (303, f"{path}?done=confirmed")
    said = text_of(editor.get(done.headers["location"]))
    assert "The assessment is up to date." in said
    assert "An import changed the wording" not in said
    assert "moon.A.1" not in text_of(editor.get(f"{ALPHA}controls/?isStale=true"))


def test_the_history_has_a_blank_between_the_day_and_the_name(people: People) -> None:
    editor = people["editor"]
    editor.post(f"{ALPHA}controls/moon.A.5/coverage/", coverageStatus="FULL")
    history = Parsed(editor.get(f"{ALPHA}controls/moon.A.5/")).text.partition("History")[2]
    assert re.search(r"\d\d:\d\d\s+Editor", history)
