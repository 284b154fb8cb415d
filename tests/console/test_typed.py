"""What was typed into a form survives a session that has ended meanwhile, for its person alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from urllib.parse import urlencode

import pytest
from cryptography.fernet import Fernet
from httpx2 import Response

from normata.console.sign_in import typed
from normata.identity.sign_in_model import SignInAttempt
from normata.records.kinds import Task
from tests import stored
from tests.console.app.pages import ALPHA, Form, Parsed
from tests.console.browser import Browser, text_of
from tests.console.single_sign_on import back, instance_of
from tests.console.test_passwords import EMAIL, GOOD, has_password, quick  # noqa: F401 - fixtures
from tests.databases import on_both
from tests.identity.openid.forging import running_forger
from tests.served import Served
from tests.world import record_id

SignIn = Callable[[Browser, str], None]
TASK = f"{ALPHA}records/tasks/{record_id(Task, 'live')}/edit/"
WORDS = 'Größe & <Maß>\r\n\r\n"two lines"'


def sent(browser: Browser, form: Form, **fields: str) -> Response:
    """The answer to a form as browsers send it."""
    headers = {"Sec-Fetch-Site": "same-origin", "Content-Type": "application/x-www-form-urlencoded"}
    return browser.client.post(form.action, content=urlencode({**form.fields, **fields}), headers=headers)


def sealed_in(page: Response) -> str:
    """The sealed form that a page to sign in carries along; empty for none."""
    found = re.search(r'name="typed" value="([^"]*)"', page.text)
    return found[1] if found else ""


def forget_session(browser: Browser, instance: Served) -> None:
    """End the browser's session, past the browser."""
    del browser
    instance.sql("UPDATE session SET expires_at = '2020-01-01T00:00:00.000Z'")


@pytest.mark.usefixtures("has_password")
@on_both
def test_a_form_of_a_record_comes_back_with_what_was_typed(browser: Browser, instance: Served, sign_in: SignIn) -> None:
    sign_in(browser, "editor")
    form = Parsed(browser.get(TASK)).form("/edit/")
    forget_session(browser, instance)
    before = stored.everything(instance.database)
    page = sent(browser, form, title="Renamed", description=WORDS, step="save")
    assert page.status_code == 403
    assert "what you typed is still here" in text_of(page)
    assert "Renamed" not in page.text  # it is sealed, and the key is not on the page
    assert browser.cookies[typed.KEY_COOKIE] not in page.text
    assert stored.everything(instance.database) == before

    signing_in = Parsed(page).form("/sign-in/password/")
    wrong = sent(browser, signing_in, email=EMAIL, password="something else entirely")
    assert sealed_in(wrong) == sealed_in(page)
    again = sent(browser, signing_in, email=EMAIL, password=GOOD)
    assert (again.status_code, "Back to the form" in text_of(again)) == (200, True)
    assert typed.KEY_COOKIE not in browser.cookies
    shown = sent(browser, Parsed(again).form("/edit/"))
    assert "This has not been saved yet" in text_of(shown)
    mine = Parsed(shown).form("/edit/")
    assert (mine.fields["title"], mine.fields["description"]) == ("Renamed", WORDS.replace("\r\n", "\n"))
    assert stored.everything(instance.database)["task"] == before["task"]
    assert "done=record_saved" in sent(browser, mine, step="save").headers["location"]
    assert "Renamed" in repr(stored.everything(instance.database)["task"])


@pytest.mark.usefixtures("has_password")
def test_it_is_nobody_elses_and_not_for_long(
    browser: Browser, instance: Served, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_in(browser, "viewer")
    form = Form(f"{ALPHA}views/", "post", {"kind": "tasks", "name": "Of the viewer", "state": "status=TODO"})
    browser.post("/sign-out/")
    page = sent(browser, form)
    assert sealed_in(page)
    # Somebody else signs in, and gets nothing of it.
    other = sent(browser, Parsed(page).form("/sign-in/password/"), email=EMAIL, password=GOOD)
    assert (other.status_code, other.headers["location"]) == (303, "/app/")
    # Another browser has no key, and after an hour nobody has.
    sealed = sealed_in(page)
    sign_in(browser, "editor")
    browser.post("/sign-out/")
    page = sent(browser, form)
    assert (
        Browser(instance).post("/sign-in/password/", typed=sealed_in(page), email=EMAIL, password=GOOD).status_code
        == 303
    )
    assert browser.post("/sign-in/password/", typed=sealed, email=EMAIL, password=GOOD).status_code == 303
    browser.post("/sign-out/")
    page = sent(browser, form)
    monkeypatch.setattr(typed, "_LIFETIME", timedelta(seconds=-1))
    assert browser.post("/sign-in/password/", typed=sealed_in(page), email=EMAIL, password=GOOD).status_code == 303
    monkeypatch.undo()
    # Any other form is shown as it was typed, and sent by a button.
    browser.post("/sign-out/")
    found = sent(browser, Parsed(sent(browser, form)).form("/sign-in/password/"), email=EMAIL, password=GOOD)
    assert "Of the viewer" in text_of(found)
    assert "view_saved" in sent(browser, Parsed(found).form("/views/")).headers["location"]


def test_what_cannot_be_carried_along_is_said(browser: Browser, sign_in: SignIn) -> None:
    form = Form(TASK, "post", {"title": "A title"})
    stranger = sent(browser, form)  # nobody has signed in with this browser: whose would it be?
    assert (stranger.status_code, sealed_in(stranger)) == (403, "")
    assert "cannot be carried along" in text_of(stranger)
    sign_in(browser, "editor")
    browser.post("/sign-out/")
    noise = Fernet(Fernet.generate_key()).encrypt(b"\0" * 200_000).decode()
    assert "cannot be carried along" in text_of(sent(browser, form, description=noise))
    kept = sent(browser, form, new_password="not to be kept")
    key = browser.cookies[typed.KEY_COOKIE]
    assert "not to be kept" not in repr(Fernet(key).decrypt(sealed_in(kept)))
    # A form of one's account is not carried along: it may have a password.
    assert browser.post("/account/password/", password="a new one, and long enough").headers["location"] == "/sign-in/"


def test_it_waits_while_its_person_is_at_the_provider(database_url: str) -> None:
    with running_forger() as forger, instance_of(database_url, forger.issuer) as instance:
        forger.person = {"sub": "ada", "email": EMAIL, "email_verified": True, "name": "Ada"}
        browser = Browser(instance)
        back(browser, forger.authorize(browser.get("/sign-in/oidc/").headers["location"]))
        form = Parsed(browser.get(TASK)).form("/edit/")
        browser.post("/sign-out/")
        page = sent(browser, form, title="Typed at length")
        leaving = sent(browser, Parsed(page).form("/sign-in/oidc/"))
        assert "Typed at length" not in str(stored.rows(instance.database, SignInAttempt))
        (url,) = [link for link in Parsed(leaving).links if link.startswith(forger.issuer)]
        again = back(browser, forger.authorize(url))
        shown = sent(browser, Parsed(again).form("/edit/"))
        assert Parsed(shown).form("/edit/").fields["title"] == "Typed at length"
