"""A vendor answers by a link, without an account: it reaches one assessment, and its secret is in no log."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from httpx2 import Response

from normata.erasure.erasing import erase
from normata.erasure.person import ErasureRequest
from normata.events.keys import Signer
from normata.events.model import AuditEvent
from normata.events.sealing import seal_all_now
from normata.notifications.model import Notification
from normata.records.assurance import VendorAssessment
from normata.records.kinds import Vendor
from normata.settings import Settings
from normata.vendors.link_model import VendorLink
from normata.vendors.model import VendorAnswer
from tests import stored
from tests.console.browser import Browser, text_of
from tests.databases import change as alter
from tests.files.rows import contents
from tests.identity.smtp_server import mail_server
from tests.records.living import change
from tests.served import Served, refused, served
from tests.vendors.test_assessments import begin, read, step
from tests.world import ALPHA, BETA, record_id

VENDOR = record_id(Vendor, "live")


def make_link(service: Served, assessment: str, user: str = "editor", **body: Any) -> Response:
    return service.client.post(
        f"/vendor-assessments/{assessment}/link/", json=body or None, headers=service.bearer(user)
    )


def path_of(answer: Response) -> str:
    assert answer.status_code == 200, answer.text
    link: str = answer.json()["link"]
    return link[link.index("/vendor/") :]


def save(browser: Browser, part: int, **fields: str) -> Response:
    return browser.post(f"/vendor/?part={part}", headers=None, **fields)


def opened(service: Served, assessment: str) -> Browser:
    browser = Browser(service)
    answer = browser.get(path_of(make_link(service, assessment)))
    assert (answer.status_code, answer.headers["location"]) == (303, "/vendor/")
    return browser


def test_a_vendor_answers_part_by_part_and_submits(service: Served) -> None:
    assessment = begin(service, ownerId="member-viewer")
    path = path_of(make_link(service, assessment, days=7))
    browser = Browser(service)
    for _ in range(2):  # a scanner of mail opens it, too
        answer = browser.get(path)
        assert (answer.status_code, answer.headers["location"]) == (303, "/vendor/")
        cookie = answer.headers["set-cookie"]
        assert "Path=/vendor/;" in cookie
        assert cookie.endswith("HttpOnly; SameSite=Lax")
        assert answer.headers["referrer-policy"] == "no-referrer"
    page = browser.get("/vendor/")
    assert (page.status_code, page.headers["cache-control"]) == (200, "no-store")
    secret = path.partition("=")[2]
    assert secret not in page.text
    assert "Alpha asks you these questions" in text_of(page)
    assert "0 of 30 questions answered" in text_of(page)
    saved = save(browser, 1, **{"value.gov-policy": "YES", "remark.gov-risks": "Soon"})
    assert (saved.status_code, saved.headers["location"]) == (303, "/vendor/?part=2")
    first = browser.get("/vendor/?part=1").text
    assert 'value="YES" checked' in first
    assert "Soon</textarea>" in first
    found = read(service, assessment)["parts"][0]["questions"][0]
    assert (found["value"], found["answeredById"], found["isByLink"]) == ("YES", None, True)
    assert browser.post("/vendor/?part=5", unknown="1").headers["location"] == "/vendor/finish/"
    assert "5 open" in text_of(browser.get("/vendor/finish/"))
    assert browser.post("/vendor/finish/").status_code == 303
    assert "Thank you" in text_of(browser.get("/vendor/"))
    late = save(browser, 1, **{"value.gov-policy": "NO"})
    assert (late.status_code, browser.post("/vendor/finish/").status_code) == (409, 409)
    row = stored.row(service.database, VendorAssessment, assessment)
    assert (row["status"], row["score"], row["submitted_by_id"]) == ("SUBMITTED", 100, None)
    [event] = stored.rows(service.database, AuditEvent, entity_id=assessment, action="submit")
    assert event["user_id"] is None
    [note] = stored.rows(service.database, Notification, type="record.submitted")
    assert (note["user_id"], note["payload"]["params"]["submittedBy"]) == ("user-viewer", "The vendor")


def test_only_the_hash_of_its_secret_is_stored(service: Served) -> None:
    assessment = begin(service)
    secret = path_of(make_link(service, assessment)).partition("=")[2]
    assert len(secret) == 43
    assert secret not in repr(stored.everything(service.database))
    found = service.client.get(
        f"/vendor-assessments/{assessment}/link/", params={"organizationId": ALPHA}, headers=service.bearer("viewer")
    ).json()
    assert (found["createdById"], found["revokedAt"], "link" in found) == ("member-editor", None, False)
    trial = service.client.post(
        f"/vendor-assessments/{assessment}/link/?dryRun=true", headers=service.bearer("editor")
    ).json()
    assert trial["answer"]["link"] is None
    [row] = stored.rows(service.database, VendorLink, assessment_id=assessment)
    assert row["revoked_at"] is None


def test_a_link_ends(service: Served) -> None:
    """It shows one calm page for each way, and the page that is open ends as well."""
    assessment = begin(service)
    first = opened(service, assessment)
    second = path_of(make_link(service, assessment))
    page = first.get("/vendor/")
    assert (page.status_code, "replaced or withdrawn" in text_of(page)) == (410, True)
    assert save(first, 1, **{"value.gov-policy": "YES"}).status_code == 410
    browser = Browser(service)
    service.sql("UPDATE vendor_link SET expires_at = '2020-01-01T00:00:00.000Z' WHERE revoked_at IS NULL")
    expired = browser.get(second)
    assert (expired.status_code, "has expired" in text_of(expired), browser.cookies) == (410, True, {})
    third = opened(service, assessment)
    path = f"/vendor-assessments/{assessment}/link/"
    for _ in range(2):
        assert service.client.delete(path, headers=service.bearer("editor")).status_code == 200
    assert third.get("/vendor/").status_code == 410
    fourth = opened(service, assessment)
    vendor = f"/vendors/{VENDOR}"
    assert service.client.post(f"{vendor}/archive/", headers=service.bearer("editor")).status_code == 200
    assert (fourth.get("/vendor/").status_code, save(fourth, 1, **{"value.gov-policy": "YES"}).status_code) == (
        410,
        410,
    )
    refused(make_link(service, assessment), 409, "archived")
    assert service.client.post(f"{vendor}/restore/", headers=service.bearer("editor")).status_code == 200
    assert fourth.get("/vendor/").status_code == 200
    service.client.post(f"/vendor-assessments/{assessment}/archive/", headers=service.bearer("editor"))
    assert (fourth.get("/vendor/").status_code, fourth.post("/vendor/finish/").status_code) == (410, 410)
    assert stored.rows(service.database, VendorAnswer, assessment_id=assessment) == []


def test_a_page_saves_nothing_to_the_assessment_of_another_link(service: Served) -> None:
    """Both links are opened in one browser: it has the cookie of the second one on the pages of both."""
    first, second = begin(service), begin(service)
    browser = opened(service, first)
    forms = [
        unescape(re.findall(r'action="(/vendor/[^"]+)"', browser.get(path).text)[-1])
        for path in ("/vendor/?part=1", "/vendor/finish/")
    ]
    browser.get(path_of(make_link(service, second)))
    for form in forms:
        page = browser.post(form, headers=None, **{"value.gov-policy": "YES"})
        assert (page.status_code, "Another link was opened" in text_of(page)) == (409, True)
    assert stored.rows(service.database, VendorAnswer, assessment_id=second) == []
    assert stored.row(service.database, VendorAssessment, second)["status"] == "SENT"
    browser.get(path_of(make_link(service, first)))
    assert [browser.post(form, headers=None, **{"value.gov-policy": "YES"}).status_code for form in forms] == [303, 303]


@pytest.mark.parametrize("secret", ["", "short", "A" * 43, "A" * 5_000])
def test_a_secret_that_there_is_not(secret: str, service: Served) -> None:
    browser = Browser(service)
    assert browser.get(f"/vendor/open/?secret={secret}").status_code == 404
    assert browser.get("/vendor/").status_code == 404
    assert browser.post("/vendor/?part=1").status_code == 404
    assert browser.cookies == {}


def test_it_reaches_one_assessment_and_nothing_else(service: Served) -> None:
    others = [begin(service), record_id(VendorAssessment, "sent", BETA)]
    browser = opened(service, begin(service))
    for path in ("/app/", "/account/", f"/vendor-assessments/?organizationId={ALPHA}", "/me/"):
        assert browser.get(path).status_code in (303, 401), path
    assert save(browser, 1, **{"value.gov-policy": "YES", "value.access-devices": "YES"}).status_code == 303
    for other in others:
        assert stored.rows(service.database, VendorAnswer, assessment_id=other) == []
    cross = browser.post("/vendor/?part=1", headers={"Sec-Fetch-Site": "cross-site"}, value="NO")
    assert cross.status_code == 403
    assert save(browser, 1, **{"value.gov-policy": "MAYBE"}).status_code == 400


def test_who_may_make_one(service: Served) -> None:
    assessment = begin(service)
    refused(make_link(service, assessment, "viewer"), 403, "forbidden")
    refused(make_link(service, record_id(VendorAssessment, "sent", BETA)), 404, "not_found")
    refused(make_link(service, record_id(VendorAssessment, "submitted")), 409, "wrong_state")
    refused(make_link(service, record_id(VendorAssessment, "archived")), 409, "archived")
    refused(make_link(service, assessment, days=91), 400, "validation")
    assert step(service, assessment, "send").status_code == 200
    assert make_link(service, assessment).json()["mail"] == "off"


def test_it_is_mailed_to_the_contact_of_the_vendor(database_url: str) -> None:
    with (
        mail_server() as inbox,
        served(database_url, smtp_url=inbox.url, public_url="https://n.example.org") as service,
    ):
        assessment = begin(service)
        assert make_link(service, assessment, mails=True).json()["mail"] == "off"  # it has no address
        found = change(service, Vendor, VENDOR, service.bearer("editor"), contactEmail="Kim@vendor.example")
        assert found.status_code == 200
        assert make_link(service, assessment).json()["mail"] == "off"
        assert inbox.messages == []
        made = make_link(service, assessment, mails=True).json()
        assert (made["mail"], inbox.recipients) == ("sent", ["Kim@vendor.example"])
        assert made["link"].startswith("https://n.example.org/vendor/open/?secret=")
        assert made["link"] in inbox.messages[0].get_content()
        inbox.refuses = True
        assert make_link(service, assessment, mails=True).json()["mail"] == "failed"


def test_answers_and_remarks_are_erased_with_a_person(service: Served) -> None:
    assessment = begin(service)
    browser = opened(service, assessment)
    assert save(browser, 1, **{"remark.gov-responsible": "It is Viewer, viewer@alpha.example."}).status_code == 303
    seal_all_now(service.database)
    request = ErasureRequest("viewer@alpha.example")
    key = Signer(Settings().event_key_file)
    alter(service.database, lambda unit: erase(unit, request, key, contents()))
    assert "viewer@alpha.example" not in repr(stored.rows(service.database, VendorAnswer))


def test_requests_with_a_link_are_limited(database_url: str) -> None:
    with served(database_url, sign_in_limit=1) as service:
        path = path_of(make_link(service, begin(service)))
        found = [Browser(service).get(path) for _ in range(4)]
        assert [one.status_code for one in found] == [303, 303, 303, 429]
        assert found[-1].headers["retry-after"]


def test_no_line_of_the_log_and_no_figure_has_the_secret(database_url: str, capfd: pytest.CaptureFixture[str]) -> None:
    with served(database_url, log_level="debug", tracing=True) as service:
        path = path_of(make_link(service, begin(service)))
        browser = Browser(service)
        assert browser.get(path).status_code == 303
        assert browser.get("/vendor/").status_code == 200
        assert save(browser, 1, **{"value.gov-policy": "YES"}).status_code == 303
        figures = service.client.get("/metrics").text
    out, error = capfd.readouterr()
    secret = path.partition("=")[2]
    assert 'route="/vendor/' in figures
    assert secret not in figures
    assert "/vendor/" in out + error
    assert secret not in out + error
