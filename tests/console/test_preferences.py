"""Preferences of people: how the pages write times, and in which colours they are."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from normata.identity.model import User
from tests import stored
from tests.console.app.pages import Parsed
from tests.console.browser import Browser, text_of
from tests.databases import on_both
from tests.served import Served

SignIn = Callable[[Browser, str], None]

ACCOUNT, PREFERENCES = "/account/", "/account/preferences/"
_TIME = re.compile(r'<time datetime="([^"]+)" title="([^"]+)">([^<]+)</time>')


def times(browser: Browser, path: str = ACCOUNT) -> list[tuple[str, str, str]]:
    """All times of a page: as the wire has them, their titles, and what people read."""
    found = _TIME.findall(browser.get(path).text)
    assert found
    return found


def shown(at: str, zone: str, date_format: str) -> str:
    """A moment as it should be written."""
    local = datetime.fromisoformat(at).astimezone(ZoneInfo(zone))
    if date_format == "YEAR_MONTH_DAY":
        return local.strftime("%Y-%m-%d %H:%M")
    if date_format == "MONTH_DAY_YEAR":
        return re.sub(r"(?<![0-9:])0", "", local.strftime("%m/%d/%Y %I:%M %p"))
    return re.sub(r"^0", "", local.strftime("%d %b %Y, %H:%M"))


@on_both
@pytest.mark.parametrize("date_format", ["DAY_MONTH_YEAR", "YEAR_MONTH_DAY", "MONTH_DAY_YEAR"])
def test_times_are_written_as_the_person_prefers(browser: Browser, sign_in: SignIn, date_format: str) -> None:
    sign_in(browser, "editor")
    browser.client.cookies.set("normata-zone", "Europe%2FBerlin")
    for at, title, words in times(browser):
        assert (title, words) == (f"{at[:10]} {at[11:16]} UTC", shown(at, "Europe/Berlin", "DAY_MONTH_YEAR"))

    answer = browser.post(PREFERENCES, timeZone="Asia/Kolkata", dateFormat=date_format, theme="")

    assert (answer.status_code, answer.headers["location"]) == (303, "/account/?done=preferences#preferences")
    for at, title, words in times(browser):
        assert (title, words) == (f"{at[:10]} {at[11:16]} UTC", shown(at, "Asia/Kolkata", date_format))
    assert 'value="Asia/Kolkata"' in browser.get(ACCOUNT).text

    browser.post(PREFERENCES, timeZone="")
    for at, _, words in times(browser):
        assert words == shown(at, "Europe/Berlin", date_format)


@on_both
def test_the_theme_is_chosen_and_taken_back(browser: Browser, sign_in: SignIn) -> None:
    sign_in(browser, "editor")
    assert '<html lang="en">' in browser.get("/app/alpha/").text
    answer = browser.post(PREFERENCES, theme="DARK", return_to="/app/alpha/controls/?page=2")
    assert answer.headers["location"] == "/app/alpha/controls/?page=2"
    for path in (ACCOUNT, "/app/alpha/", "/app/alpha/nothing/"):
        page = browser.get(path).text
        assert '<html lang="en" data-theme="dark">' in page
        assert '<meta name="color-scheme" content="dark">' in page
    browser.post(PREFERENCES, theme="")
    assert '<html lang="en">' in browser.get("/app/alpha/").text


def test_what_is_no_preference_is_refused_and_changes_nothing(
    instance: Served, browser: Browser, sign_in: SignIn
) -> None:
    sign_in(browser, "editor")
    for name, value in (("timeZone", "Berlin"), ("dateFormat", "%c"), ("theme", "BLUE")):
        fields: dict[str, Any] = {"timeZone": "Asia/Kolkata", name: value}
        answer = browser.post(PREFERENCES, **fields)
        assert answer.status_code == 400
        assert "Nothing was changed." in text_of(answer)
    row = stored.row(instance.database, User, "user-editor")
    assert (row["time_zone"], row["date_format"], row["theme"]) == (None, None, None)


def test_nobody_is_sent_elsewhere(browser: Browser, sign_in: SignIn) -> None:
    sign_in(browser, "editor")
    answer = browser.post(PREFERENCES, theme="", return_to="https://elsewhere.example/")
    assert answer.headers["location"] == "/account/?done=preferences#preferences"


def test_dates_of_records_are_written_as_the_person_prefers(browser: Browser, sign_in: SignIn) -> None:
    sign_in(browser, "editor")
    fields: dict[str, Any] = {"title": "Test the alarm", "deadline": "2026-01-05", "assigneeMemberId": "member-editor"}
    made = browser.post("/app/alpha/new/tasks/", **fields)
    assert made.status_code == 303
    browser.post(PREFERENCES, dateFormat="MONTH_DAY_YEAR")
    assert "1/5/2026" in text_of(browser.get(made.headers["location"]))


@pytest.mark.parametrize(
    ("path", "fields", "says"),
    [
        ("/account/name/", {"name": "Kim Lee"}, "Name saved."),
        (PREFERENCES, {"timeZone": "Asia/Kolkata"}, "Preferences saved."),
    ],
)
def test_what_was_saved_is_said_and_the_organization_is_near(
    path: str, fields: dict[str, Any], says: str, browser: Browser, sign_in: SignIn
) -> None:
    sign_in(browser, "editor")
    page = browser.get(browser.post(path, **fields).headers["location"])
    assert says in text_of(page)
    assert "/app/alpha/" in Parsed(page).links
