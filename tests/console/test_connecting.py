"""Connecting a provider with one's account, signed in by other means, and disconnecting it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html import unescape

import pytest

from normata.identity.sign_in_model import ExternalIdentity
from tests import stored, world
from tests.console.browser import Browser, is_refused, text_of
from tests.console.single_sign_on import back, instance_of, logged
from tests.console.single_sign_on import sign_in as sign_in_by_provider
from tests.databases import on_both
from tests.identity.openid.forging import Forger, running_forger
from tests.served import Served

SignIn = Callable[[Browser, str], None]


@pytest.fixture
def forger() -> Iterator[Forger]:
    """The provider, where somebody has another address than here."""
    with running_forger() as running:
        running.person = {"sub": "ada", "email": "ada@elsewhere.example", "email_verified": True}
        yield running


@pytest.fixture
def instance(database_url: str, forger: Forger) -> Iterator[Served]:
    """The shipped application with this provider."""
    with instance_of(database_url, forger.issuer, oidc_name="Example") as application:
        yield application


@pytest.fixture
def operator(instance: Served, browser: Browser, sign_in: SignIn) -> Browser:
    """The browser of an operator, who has signed in with a link."""
    instance.sql("INSERT INTO operator (user_id, since) VALUES ('user-editor', '2026-01-02 00:00:00.000')")
    sign_in(browser, "editor")
    return browser


def asked(browser: Browser) -> str:
    """The address at the provider that the person is sent to, to connect it."""
    page = browser.post("/account/provider/")
    assert page.status_code == 200, page.text
    found = re.search(r'<a class="btn main" href="([^"]*)"', page.text)
    assert found is not None
    return unescape(found[1])


@on_both
def test_an_operator_connects_and_disconnects(operator: Browser, instance: Served, forger: Forger) -> None:
    assert "Connect with Example" in text_of(operator.get("/account/"))
    answer = back(operator, forger.authorize(asked(operator)))
    assert (answer.status_code, answer.headers["location"]) == (303, "/account/")
    assert forger.issuer in text_of(operator.get("/account/"))

    other = Browser(instance)
    assert sign_in_by_provider(other, forger).status_code == 303
    assert "Editor" in text_of(other.get("/account/"))

    (identity,) = stored.rows(instance.database, ExternalIdentity)
    assert operator.post("/account/provider/remove/", identity=identity["id"]).status_code == 303
    assert stored.rows(instance.database, ExternalIdentity) == []
    assert is_refused(sign_in_by_provider(Browser(instance), forger))
    assert operator.post("/account/provider/remove/", identity=identity["id"]).status_code == 404


def test_an_answer_connects_the_one_who_has_asked(
    operator: Browser, instance: Served, forger: Forger, sign_in: SignIn
) -> None:
    """An attacker who has begun it cannot have the victim's browser finish it, nor the other way round."""
    attacker = Browser(instance)
    sign_in(attacker, "viewer")
    with logged() as log:
        assert is_refused(back(operator, forger.authorize(asked(attacker))))
    assert [cause for cause, _ in log.causes()] == ["other_browser"]

    answer = forger.authorize(asked(operator))  # and then somebody else signs in with this browser
    sign_in(operator, "viewer")
    assert is_refused(back(operator, answer))
    operator.client.cookies.delete("normata-session")
    assert stored.rows(instance.database, ExternalIdentity) == []


def test_it_takes_a_session_and_a_page_of_ours(operator: Browser, instance: Served, forger: Forger) -> None:
    for path in ("/account/provider/", "/account/provider/remove/"):
        assert Browser(instance).post(path).headers["location"].startswith("/sign-in/")
        assert is_refused(operator.post(path, headers={"Sec-Fetch-Site": "cross-site"}))
        assert operator.get(path).status_code == 405
    answer = forger.authorize(asked(operator))
    operator.client.cookies.delete("normata-session")
    assert back(operator, answer).headers["location"].startswith("/sign-in/")
    assert stored.rows(instance.database, ExternalIdentity) == []


def test_it_takes_a_sign_in_of_a_short_while_ago(operator: Browser, instance: Served) -> None:
    instance.sql("UPDATE session SET created_at = '2026-01-02 00:00:00.000'")
    with logged() as log:
        assert is_refused(operator.post("/account/provider/"))
    assert [cause for cause, _ in log.causes()] == ["not_fresh"]


@on_both
def test_a_person_is_one_user_and_a_user_one_person(operator: Browser, instance: Served, forger: Forger) -> None:
    forger.person = {"sub": "ann", "email": world.USERS["admin"], "email_verified": True}
    assert sign_in_by_provider(Browser(instance), forger).status_code == 303
    with logged() as log:
        assert is_refused(back(operator, forger.authorize(asked(operator))))  # she is the admin already
        forger.person = {"sub": "ada"}
        assert back(operator, forger.authorize(asked(operator))).status_code == 303
        forger.person = {"sub": "eve"}
        assert is_refused(back(operator, forger.authorize(asked(operator))))
    assert [cause for cause, _ in log.causes()] == ["identity_taken", "other_identity"]
    assert {row["subject"] for row in stored.rows(instance.database, ExternalIdentity)} == {"ann", "ada"}


def test_nobody_disconnects_others(operator: Browser, instance: Served, forger: Forger, sign_in: SignIn) -> None:
    assert back(operator, forger.authorize(asked(operator))).status_code == 303
    (identity,) = stored.rows(instance.database, ExternalIdentity)
    other = Browser(instance)
    sign_in(other, "owner")
    assert other.post("/account/provider/remove/", identity=identity["id"]).status_code == 404
    assert len(stored.rows(instance.database, ExternalIdentity)) == 1
