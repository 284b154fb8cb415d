"""Signing in by a provider, from the button to the session, and what of it can be forged."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from httpx2 import Response

from normata.console.sign_in.typed import PERSON_COOKIE
from normata.identity.sign_in_model import ExternalIdentity, SignInAttempt
from tests import stored, world
from tests.console.browser import Browser, is_refused, text_of
from tests.console.single_sign_on import SESSION, assert_refused, back, begun, instance_of, logged, sign_in
from tests.databases import on_both
from tests.identity.openid.forging import Forger, rsa_key, running_forger, unsigned
from tests.identity.openid.mock import Mock, running_mock
from tests.served import Served, served

EMAIL = world.USERS["editor"]


@pytest.fixture(scope="module")
def mock() -> Iterator[Mock]:
    """The provider of others, as a process."""
    with running_mock() as running:
        yield running


@pytest.fixture
def forger() -> Iterator[Forger]:
    """The provider that can forge. It knows the world's editor."""
    with running_forger() as running:
        running.person = {"sub": "ada", "email": EMAIL, "email_verified": True, "name": "Ada"}
        yield running


@pytest.fixture
def instance(database_url: str, forger: Forger) -> Iterator[Served]:
    """The shipped application with this provider."""
    with instance_of(database_url, forger.issuer) as application:
        yield application


def test_people_sign_in_by_a_provider_of_others(database_url: str, mock: Mock) -> None:
    mock.know("ada", email=EMAIL.upper(), email_verified=True)
    with instance_of(database_url, mock.issuer, oidc_name="Example") as instance:
        browser = Browser(instance)
        assert "Sign in with Example" in text_of(browser.get("/sign-in/"))

        answer = back(browser, mock.sign_in(begun(browser), "ada"))

        assert (answer.status_code, answer.headers["location"]) == (303, "/app/")
        page = browser.get("/account/")
        assert "Editor" in text_of(page)
        assert "the provider" in text_of(page)
        assert sorted(browser.cookies) == [PERSON_COOKIE, SESSION]

        mock.know("ada", email="another@example.org")  # a person is a subject, whatever their address
        again = Browser(instance)
        assert back(again, mock.sign_in(begun(again), "ada")).status_code == 303
        assert "Editor" in text_of(again.get("/account/"))
        assert len(stored.rows(instance.database, ExternalIdentity)) == 1

        with logged() as log:
            stranger = Browser(instance)
            answer = back(stranger, mock.deny(begun(stranger)))
            # It leaves the state out, so nobody can tell whose answer it is.
            assert_refused(stranger, answer, log, "oidc_answer")


@on_both
def test_any_process_takes_the_answer(database_url: str, forger: Forger) -> None:
    with instance_of(database_url, forger.issuer) as first, instance_of(database_url, forger.issuer) as second:
        browser, elsewhere = Browser(first), Browser(second)
        url = begun(browser)
        elsewhere.client.cookies = browser.client.cookies
        answer = back(elsewhere, forger.authorize(url))
        assert answer.status_code == 303
        browser.client.cookies = elsewhere.client.cookies
        assert "Editor" in text_of(browser.get("/account/"))


# --- Forged


class Scene(NamedTuple):
    """Who takes part."""

    browser: Browser
    forger: Forger
    instance: Served


Forge = Callable[[Scene], Response]


def other_state(scene: Scene) -> Response:
    answer = scene.forger.authorize(begun(scene.browser))
    state = parse_qs(urlsplit(answer).query)["state"][0]
    return back(scene.browser, answer.replace(state, "A" * 43))


def no_state(scene: Scene) -> Response:
    answer = scene.forger.authorize(begun(scene.browser))
    code = parse_qs(urlsplit(answer).query)["code"][0]
    return back(scene.browser, f"/sign-in/oidc/callback/?code={code}")


def replayed(scene: Scene) -> Response:
    answer = scene.forger.authorize(begun(scene.browser))
    assert back(scene.browser, answer).status_code == 303
    scene.browser.client.cookies.delete(SESSION)
    return back(scene.browser, answer)


def replayed_code(scene: Scene) -> Response:
    first = scene.forger.authorize(begun(scene.browser))
    assert back(scene.browser, first).status_code == 303
    scene.browser.client.cookies.delete(SESSION)
    code = parse_qs(urlsplit(first).query)["code"][0]
    state = parse_qs(urlsplit(begun(scene.browser)).query)["state"][0]
    return back(scene.browser, "/sign-in/oidc/callback/?" + urlencode({"code": code, "state": state}))


def code_of_another_sign_in(scene: Scene) -> Response:
    """A code that somebody has stolen: it takes the verifier of the sign-in that it was given for."""
    stolen = parse_qs(urlsplit(scene.forger.authorize(begun(Browser(scene.instance)))).query)["code"][0]
    state = parse_qs(urlsplit(begun(scene.browser)).query)["state"][0]
    return back(scene.browser, "/sign-in/oidc/callback/?" + urlencode({"code": stolen, "state": state}))


def other_browser(scene: Scene) -> Response:
    """An answer that an attacker has begun, and has the victim's browser bring: the victim would be the attacker."""
    answer = scene.forger.authorize(begun(Browser(scene.instance)))
    begun(scene.browser)
    return back(scene.browser, answer)


def browser_without_cookies(scene: Scene) -> Response:
    answer = scene.forger.authorize(begun(scene.browser))
    scene.browser.client.cookies.clear()
    return back(scene.browser, answer)


def too_late(scene: Scene) -> Response:
    answer = scene.forger.authorize(begun(scene.browser))
    scene.instance.sql("UPDATE sign_in_attempt SET expires_at = '2026-01-01 00:00:00.000'")
    return back(scene.browser, answer)


def other_issuer_beside(scene: Scene) -> Response:
    return back(scene.browser, scene.forger.authorize(begun(scene.browser)) + "&iss=https%3A%2F%2Felsewhere.example")


def repeated(scene: Scene) -> Response:
    return back(scene.browser, scene.forger.authorize(begun(scene.browser)) + "&code=another")


def no_code(scene: Scene) -> Response:
    answer = scene.forger.authorize(begun(scene.browser))
    return back(scene.browser, "/sign-in/oidc/callback/?state=" + parse_qs(urlsplit(answer).query)["state"][0])


def nothing_at_all(scene: Scene) -> Response:
    return scene.browser.get("/sign-in/oidc/callback/")


@pytest.mark.parametrize(
    ("forge", "cause"),
    [
        (other_state, "attempt_unknown"),
        (no_state, "oidc_answer"),
        (replayed, "attempt_unknown"),
        (replayed_code, "oidc_code"),
        (code_of_another_sign_in, "oidc_code"),
        (other_browser, "other_browser"),
        (browser_without_cookies, "other_browser"),
        (too_late, "attempt_unknown"),
        (other_issuer_beside, "oidc_issuer"),
        (repeated, "oidc_answer"),
        (no_code, "oidc_answer"),
        (nothing_at_all, "oidc_answer"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_forged_answer_is_refused(instance: Served, forger: Forger, forge: Forge, cause: str) -> None:
    browser = Browser(instance)
    with logged() as log:
        assert_refused(browser, forge(Scene(browser, forger, instance)), log, cause)


NOW = int(time.time())


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("forged", "cause"),
    [
        ({"claims": {"nonce": "another"}}, "id_token_nonce"),
        ({"claims": {"iss": "https://elsewhere.example"}}, "id_token_iss"),
        ({"claims": {"aud": "another"}}, "id_token_aud"),
        ({"claims": {"azp": "another"}}, "id_token_azp"),
        ({"claims": {"exp": NOW - 120}}, "id_token_expired"),
        ({"claims": {"at_hash": "AAAA"}}, "id_token_at_hash"),
        ({"key": rsa_key("second")}, "id_token_key"),
        ({"key": rsa_key("second"), "header": {"kid": "first"}}, "id_token_signature"),
        ({"sign": unsigned, "header": {"alg": "none"}}, "id_token_algorithm"),
        ({"person": {"sub": "ada", "email": EMAIL, "email_verified": False}}, "email_not_verified"),
        ({"person": {"sub": "ada", "email": EMAIL, "email_verified": "true"}}, "email_not_verified"),
        ({"person": {"sub": "ada", "email": EMAIL}}, "email_not_verified"),
        ({"person": {"sub": "ada"}}, "email_not_verified"),
        ({"person": {"sub": "eve", "email": "eve@example.org", "email_verified": True}}, "not_invited"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_forged_proof_is_refused(instance: Served, forger: Forger, forged: dict[str, Any], cause: str) -> None:
    for name, value in forged.items():
        setattr(forger, name, value)
    browser = Browser(instance)
    with logged() as log:
        assert_refused(browser, sign_in(browser, forger), log, cause)
    assert stored.rows(instance.database, ExternalIdentity) == []


# --- Errors of the provider


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("error", "cause", "told"),
    [
        ("access_denied", "provider_access_denied", "(access_denied)"),
        ("temporarily_unavailable", "provider_temporarily_unavailable", "(temporarily_unavailable)"),
        ("<script>alert(1)</script>", "provider_error", "returned an error"),
    ],
)
def test_what_the_provider_says_in_place_of_a_code_is_told(instance: Served, error: str, cause: str, told: str) -> None:
    browser = Browser(instance)
    state = parse_qs(urlsplit(begun(browser)).query)["state"][0]
    said = {"error": error, "error_description": "Call 555-0100 now", "state": state}
    with logged() as log:
        answer = back(browser, "/sign-in/oidc/callback/?" + urlencode(said))
        assert_refused(browser, answer, log, cause)
    assert told in text_of(answer)
    assert "script>" not in answer.text
    assert "555-0100" not in answer.text  # anybody can make an address with such a text


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("path", "answer", "told"),
    [
        ("/.well-known/openid-configuration", (503, b""), (503, "status_503")),
        ("/.well-known/openid-configuration", (200, b"{}"), (502, "metadata_issuer")),
        ("/token", (500, b""), (503, "status_500")),
        ("/token", (401, b'{"error": "invalid_client"}'), (502, "token_endpoint_invalid_client")),
        ("/keys", (404, b""), (502, "status_404")),
    ],
)
def test_a_provider_that_fails_is_a_page_that_says_so(
    instance: Served, forger: Forger, path: str, answer: tuple[int, bytes], told: tuple[int, str]
) -> None:
    forger.answers[path] = answer
    browser, (status, cause) = Browser(instance), told
    with logged() as log:
        page = browser.get("/sign-in/oidc/")
        if page.status_code == 303:
            page = back(browser, forger.authorize(page.headers["location"]))
    assert is_refused(page, status=status)
    assert "sign-in service" in text_of(page)
    assert ("retry-after" in page.headers) == (status == 503)
    assert log.causes("sign_in_provider_failed") == [(cause, page.headers["x-request-id"])]
    assert SESSION not in browser.cookies


# --- Where the browser is sent


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("return_to", "lands_at"),
    [
        ("/account/?a=b", "/account/?a=b"),
        ("https://evil.example/", "/app/"),
        ("//evil.example/account/", "/app/"),
        ("/account/..%2F%2Fevil.example", "/app/"),
    ],
)
def test_it_lands_where_it_was_going_to(instance: Served, forger: Forger, return_to: str, lands_at: str) -> None:
    browser = Browser(instance)
    url = begun(browser, urlencode({"": return_to})[1:])
    assert back(browser, forger.authorize(url)).headers["location"] == lands_at


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_addresses_and_cookies_follow_the_public_url(database_url: str, forger: Forger) -> None:
    with instance_of(database_url, forger.issuer, public_url="https://normata.example/base") as instance:
        browser = Browser(instance, "https://testserver")
        answer = browser.get("/sign-in/oidc/", Host="evil.example", **{"X-Forwarded-Host": "evil.example"})
        asked = parse_qs(urlsplit(answer.headers["location"]).query)
        assert asked["redirect_uri"] == ["https://normata.example/base/sign-in/oidc/callback/"]
        assert asked["response_type"] == ["code"]
        assert asked["code_challenge_method"] == ["S256"]
        cookie = answer.headers["set-cookie"]
        assert cookie.startswith("__Host-normata-oidc=")
        for part in ("Path=/", "Max-Age=600", "HttpOnly", "SameSite=Lax", "Secure"):
            assert f"; {part}" in cookie
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_nothing_secret_leaves_the_database(instance: Served) -> None:
    browser = Browser(instance)
    asked = parse_qs(urlsplit(begun(browser)).query)
    (attempt,) = stored.rows(instance.database, SignInAttempt)
    kept = json.loads(attempt["data"])
    assert kept["nonce"] == asked["nonce"][0]
    assert kept["verifier"] not in repr(asked)
    assert asked["state"][0] not in repr(attempt)
    assert browser.cookies["normata-oidc"] not in repr(attempt)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_without_a_provider_there_are_no_such_pages(database_url: str) -> None:
    with served(database_url) as instance:
        assert Browser(instance).get("/sign-in/oidc/").status_code == 404
