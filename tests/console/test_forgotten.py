"""Mailing a link to who has forgotten their password, and saying what one is called."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

import pytest

from normata.identity.model import User
from normata.identity.sign_in_model import Password, SignInLink
from tests import stored
from tests.console.browser import Browser, is_refused, new_link, text_of
from tests.databases import on_both
from tests.identity.smtp_server import Inbox, mail_server
from tests.served import Served, served

SignIn = Callable[[Browser, str], None]

FORGOTTEN = "/sign-in/forgotten/"
PASSWORD, OTHER = "a heron stands in the reeds", "two herons stand in the reeds"
EDITOR = "editor@alpha.example"


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    with mail_server() as inbox:
        yield inbox


@pytest.fixture
def instance(database_url: str, inbox: Inbox) -> Iterator[Served]:
    """The application, with mail."""
    with served(database_url, smtp_url=inbox.url, public_url="http://localhost:8000") as opened:
        yield opened


def mailed(inbox: Inbox, count: int) -> None:
    """Wait until so many messages have arrived."""
    deadline = time.monotonic() + 10
    while len(inbox.messages) < count:
        assert time.monotonic() < deadline, "no mail has arrived"
        time.sleep(0.01)


@on_both
def test_the_link_signs_in_and_a_new_password_is_set(browser: Browser, instance: Served, inbox: Inbox) -> None:
    browser.post("/sign-in/link/", secret=new_link(instance, "editor"))
    assert browser.post("/account/password/", password=PASSWORD).status_code == 303
    browser.post("/sign-out/")
    assert FORGOTTEN in browser.get("/sign-in/").text
    assert "Enter your email address" in text_of(browser.get(FORGOTTEN))
    instance.sql("DELETE FROM sign_in_link")

    answer = browser.post(FORGOTTEN, email=f" {EDITOR} ")

    assert (answer.status_code, answer.headers["location"]) == (303, f"{FORGOTTEN}?sent=true")
    assert "the link is on its way" in text_of(browser.get(answer.headers["location"]))
    mailed(inbox, 1)
    assert inbox.recipients == [EDITOR]
    found = re.search(r"http://localhost:8000(\S+secret=([^&\s]+)\S*)", inbox.messages[0].get_content())
    assert found is not None
    page = browser.get(found[1])
    assert 'name="return_to" value="/account/"' in page.text
    signed_in = browser.post("/sign-in/link/", secret=found[2], return_to="/account/")
    assert (signed_in.status_code, signed_in.headers["location"]) == (303, "/account/")
    assert "Current password" not in text_of(browser.get("/account/"))
    assert browser.post("/account/password/", password=OTHER).status_code == 303
    browser.post("/sign-out/")
    assert browser.post("/sign-in/password/", email=EDITOR, password=PASSWORD).status_code == 403
    assert browser.post("/sign-in/password/", email=EDITOR, password=OTHER).status_code == 303
    # Whoever finds the browser open, signed in with a password, still needs that.
    assert "Current password" in text_of(browser.get("/account/"))
    assert browser.post("/account/password/", password=PASSWORD).status_code == 403


def test_an_old_session_of_a_link_needs_the_current_password(
    browser: Browser, instance: Served, sign_in: SignIn
) -> None:
    sign_in(browser, "editor")
    assert browser.post("/account/password/", password=PASSWORD).status_code == 303
    instance.sql("UPDATE session SET created_at = '2020-01-01T00:00:00.000Z'")
    assert "Current password" in text_of(browser.get("/account/"))
    assert browser.post("/account/password/", password=OTHER).status_code == 403


@on_both
def test_nobody_learns_who_has_an_account(browser: Browser, inbox: Inbox) -> None:
    known, unknown, robot = (
        browser.post(FORGOTTEN, email=email) for email in (EDITOR, "who@alpha.example", "robot-org-alpha")
    )
    for answer in (unknown, robot):
        assert (answer.status_code, answer.headers["location"], answer.content) == (
            known.status_code,
            known.headers["location"],
            known.content,
        )
    mailed(inbox, 1)
    assert inbox.recipients == [EDITOR]


def test_a_mailbox_is_not_filled(browser: Browser, instance: Served, inbox: Inbox) -> None:
    for _ in range(5):
        assert browser.post(FORGOTTEN, email=EDITOR).status_code == 303
    mailed(inbox, 1)
    browser.post(FORGOTTEN, email="viewer@alpha.example")
    mailed(inbox, 2)
    assert sorted(inbox.recipients) == [EDITOR, "viewer@alpha.example"]
    assert len(stored.rows(instance.database, SignInLink, user_id="user-editor")) == 1


def test_an_address_asks_for_a_bounded_number_of_links(database_url: str, inbox: Inbox) -> None:
    with served(database_url, smtp_url=inbox.url, sign_in_limit=1) as instance:
        browser = Browser(instance)
        answers = [browser.post(FORGOTTEN, email="who@alpha.example") for _ in range(21)]
        assert [answer.status_code for answer in answers] == [303] * 20 + [429]


def test_without_mail_the_page_says_whom_to_ask(database_url: str) -> None:
    with served(database_url) as instance:
        browser = Browser(instance)
        assert FORGOTTEN not in browser.get("/sign-in/").text
        assert "ask the operator" in text_of(browser.get("/sign-in/"))
        assert is_refused(browser.get(FORGOTTEN))
        assert is_refused(browser.post(FORGOTTEN, email=EDITOR))


@on_both
def test_a_person_says_what_they_are_called(browser: Browser, instance: Served, sign_in: SignIn) -> None:
    sign_in(browser, "viewer")
    assert 'name="name"' in browser.get("/account/").text
    assert browser.post("/account/name/", name=" Kim Lee ").status_code == 303
    assert stored.rows(instance.database, User, id="user-viewer")[0]["name"] == "Kim Lee"
    assert "Kim Lee" in text_of(browser.get("/account/"))
    assert "Kim Lee viewer@alpha.example" in text_of(browser.get("/app/alpha/settings/members/"))
    for name in ("", " ", "\u200b", "x" * 501):
        assert is_refused(browser.post("/account/name/", name=name), status=400)
    assert stored.rows(instance.database, User, id="user-viewer")[0]["name"] == "Kim Lee"
    assert not stored.rows(instance.database, Password)
