"""Coverage over time in the console: of a framework, and what differs between two days."""

from __future__ import annotations

from tests.console.app.conftest import People
from tests.console.app.pages import ALPHA, Parsed
from tests.console.browser import text_of


def test_a_framework_is_shown_over_time_and_what_has_changed(people: People) -> None:
    browser = people["viewer"]
    assert f"{ALPHA}frameworks/fw-sun/over-time/" in Parsed(browser.get(f"{ALPHA}frameworks/fw-sun/")).links
    page = browser.get(f"{ALPHA}frameworks/fw-sun/over-time/?step=day")
    assert page.status_code == 200
    assert page.text.count("<polygon") == 3
    assert "The past is known since" in text_of(page)
    assert f"{ALPHA}coverage/changes/" in Parsed(page).links
    assert browser.get(f"{ALPHA}frameworks/fw-star/over-time/").status_code == 404
    assert "No control has another status." in text_of(browser.get(f"{ALPHA}coverage/changes/"))
    refused = browser.get(f"{ALPHA}coverage/changes/?from=2020-01-01")
    assert refused.status_code == 400
    assert "since when the past is known" in text_of(refused)
