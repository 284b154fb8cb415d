"""Versions of a statement in the console: made, approved by whom they name, compared, and with what proves them."""

from __future__ import annotations

import json
from hashlib import sha256

from normata.events.sealing import seal_all_now
from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA, Parsed, send
from tests.console.browser import is_refused, text_of

SUN = f"{ALPHA}frameworks/fw-sun/"


def test_a_version_is_made_approved_compared_and_proven(people: People) -> None:
    browser = people["admin"]
    assert f"{SUN}versions/" in Parsed(browser.get(f"{SUN}statement-of-applicability/")).links
    form = Parsed(browser.get(f"{SUN}versions/")).form("/versions/")
    refused = send(browser, form, title=" ", scope="Kept as it was typed.")
    assert refused.status_code == 400
    assert "Kept as it was typed." in refused.text
    typed = {"title": "For <the> audit", "scope": "All of it.", "approverId": "member-viewer"}
    made = send(browser, form, **typed, otherFrameworkIds="fw-own")
    place = made.headers["location"].partition("?")[0]
    assert "done=version_made" in made.headers["location"]
    assert send(browser, form, **typed, otherFrameworkIds="fw-own").headers["location"] == made.headers["location"]
    page = text_of(browser.get(place))
    for words in ("For <the> audit", "Version 1", "Draft", "Viewer", "All of it."):
        assert words in page
    assert not [one for one in Parsed(browser.get(place)).forms if one.action == place]
    assert is_refused(browser.post(place, step="approve"))

    approver = people["viewer"]
    answer = send(approver, Parsed(approver.get(place)).form(place), step="approve")
    assert answer.headers["location"] == f"{place}?done=version_approved"
    listed = text_of(approver.get(f"{SUN}versions/"))
    assert "For <the> audit" in listed
    assert "Approved" in listed

    assess = {"organizationId": "org-alpha", "coverageStatus": "NONE"}
    bearer = people.instance.bearer("editor")
    assert people.instance.client.put("/controls/sun.A.1/coverage/", json=assess, headers=bearer).status_code == 200
    compared = text_of(approver.get(f"{place}comparison/"))
    for words in ("A.1 sun control 1", "Implemented", "rows are the same."):
        assert words in compared
    seal_all_now(people.instance.database)
    proof = json.loads(approver.get(f"{place}proof/file/").content)
    file = approver.get(f"{place}file/?format=csv")
    assert file.headers["content-disposition"].startswith('attachment; filename="statement-of-applicability-version-1')
    made_event = json.loads(proof["events"][0]["event"])
    assert made_event["after"]["csvSha256"] == sha256(file.content).hexdigest()
    assert [one["action"] for one in proof["events"]] == ["create", "approve"]


def test_the_page_that_verifies_sends_nothing(people: People) -> None:
    """Its fields are in no form, and without script it names the command."""
    answer = people["viewer"].get(f"{ALPHA}verify/")
    parsed = Parsed(answer)
    assert "script-src 'self'" in answer.headers["content-security-policy"]
    assert ("div", "data-verify", "") in parsed.attributes
    assert "normata soa verify" in parsed.text
    assert "Without it, use the command below." in parsed.text
