"""In the console an assessment of a vendor is sent, answered and reviewed, and its link is shown once."""

from __future__ import annotations

import re

from httpx2 import Response

from normata.records.assurance import VendorAssessment
from normata.records.kinds import Vendor
from tests import stored
from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA
from tests.console.browser import Browser, text_of
from tests.world import record_id

_SENT, _SUBMITTED = record_id(VendorAssessment, "sent"), record_id(VendorAssessment, "submitted")


def _post(people: People, path: str, user: str = "editor", **fields: str) -> Response:
    headers = {"Sec-Fetch-Site": "same-origin"}
    return people[user].client.post(f"{ALPHA}vendor-assessments/{path}", data=fields, headers=headers)


def test_a_link_is_shown_once_and_answers_come_by_it(people: People) -> None:
    made = _post(people, f"{_SENT}/link/", days="7")
    assert made.status_code == 200
    [link] = re.findall(r"/vendor/open/\?secret=[\w-]{43}", made.text)
    page = people["editor"].get(f"{ALPHA}records/vendor-assessments/{_SENT}/")
    assert "The vendor has a link until" in text_of(page)
    assert link not in page.text
    vendor = Browser(people.instance)
    assert vendor.get(link).status_code == 303
    fields = {"value.access-devices": "PARTLY", "remark.access-devices": "Half of them"}
    assert vendor.post("/vendor/?part=1", headers=None, **fields).status_code == 303
    answers = text_of(people["viewer"].get(f"{ALPHA}vendor-assessments/{_SENT}/answers/"))
    assert "Half of them The vendor, by a link" in answers
    assert "Access 50" in text_of(people["viewer"].get(f"{ALPHA}records/vendor-assessments/{_SENT}/"))
    assert _post(people, f"{_SENT}/link/", "viewer", days="7").status_code == 403
    assert _post(people, f"{_SENT}/link/", days="x").status_code == 400


def test_an_editor_answers_for_the_vendor_and_submits(people: People) -> None:
    page = people["editor"].get(f"{ALPHA}vendor-assessments/{_SENT}/answers/?part=2")
    assert 'name="value.where"' in page.text
    assert _post(people, f"{_SENT}/answers/?part=2", **{"value.where": "In Kiel"}).status_code == 303
    assert "In Kiel" in text_of(people["viewer"].get(f"{ALPHA}vendor-assessments/{_SENT}/answers/"))
    assert _post(people, f"{_SENT}/steps/", step="submit").status_code == 303
    assert _post(people, f"{_SENT}/answers/?part=2", **{"value.where": "Elsewhere"}).status_code == 409


def test_a_review_gives_the_vendor_its_values_and_scores(people: People) -> None:
    refused = _post(people, f"{_SUBMITTED}/steps/", step="review", residualImpact="6")
    assert refused.status_code == 400
    fields = {"residualProbability": "2", "residualImpact": "3", "residualReason": "Good.", "nextAssessmentAt": ""}
    made = _post(people, f"{_SUBMITTED}/steps/", step="review", **fields)
    assert made.headers["location"].endswith("?done=vendor_review")
    vendor = record_id(Vendor, "live")
    row = stored.row(people.instance.database, Vendor, vendor)
    assert (row["residual_probability"], row["last_assessment_id"]) == (2, _SUBMITTED)
    assert "Last assessment" in text_of(people["viewer"].get(f"{ALPHA}records/vendors/{vendor}/"))
