"""Passkeys: adding one, signing in with it, and everything that can be forged."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from normata.identity.sign_in_model import Passkey, SignInAttempt
from tests import stored
from tests.console.authenticator import Authenticator
from tests.console.browser import Browser, is_refused, new_link, text_of
from tests.databases import on_both
from tests.served import Served, run_sql, served

SignIn = Callable[[Browser, str], None]


def add(browser: Browser, authenticator: Authenticator, name: str = "Key in the drawer") -> Any:
    """The answer to a new passkey of whoever has signed in."""
    options = browser.post("/account/passkeys/options/").json()
    return browser.post("/account/passkeys/", credential=authenticator.create(options), name=name)


def use(browser: Browser, authenticator: Authenticator, return_to: str = "") -> Any:
    """The answer to a sign-in with a passkey."""
    options = browser.post("/sign-in/passkey/options/").json()
    return browser.post("/sign-in/passkey/", credential=authenticator.sign(options), return_to=return_to)


@pytest.fixture
def authenticator(browser: Browser, sign_in: SignIn) -> Authenticator:
    """An authenticator with a passkey of the editor; nobody is signed in."""
    sign_in(browser, "editor")
    authenticator = Authenticator(count=5)
    assert add(browser, authenticator).status_code == 303
    browser.post("/sign-out/")
    return authenticator


@on_both
def test_a_passkey_is_added_used_and_removed(browser: Browser, authenticator: Authenticator, instance: Served) -> None:
    authenticator.count += 1
    answer = use(browser, authenticator, return_to="/app/")
    assert (answer.status_code, answer.headers["location"]) == (303, "/app/")
    page = browser.get("/account/")
    assert "Editor" in text_of(page)
    assert "Key in the drawer" in text_of(page)
    (passkey,) = stored.rows(instance.database, Passkey)
    assert (passkey["sign_count"], passkey["last_used_at"] is None) == (6, False)
    assert [row["means"] for row in stored.sessions(instance.database, ended_at=None)] == ["passkey"]

    assert browser.post("/account/passkeys/remove/", passkey=passkey["id"]).status_code == 303
    assert "Key in the drawer" not in text_of(browser.get("/account/"))
    browser.post("/sign-out/")
    authenticator.count += 1
    assert is_refused(use(browser, authenticator))


@pytest.mark.usefixtures("authenticator")
def test_what_the_browser_is_asked_for(browser: Browser, sign_in: SignIn) -> None:
    asked = browser.post("/sign-in/passkey/options/").json()
    assert (asked["rpId"], asked["userVerification"]) == ("localhost", "required")
    assert not asked.get("allowCredentials")
    sign_in(browser, "editor")
    asked = browser.post("/account/passkeys/options/").json()
    assert asked["rp"]["id"] == "localhost"
    assert asked["authenticatorSelection"]["residentKey"] == "required"
    assert asked["authenticatorSelection"]["userVerification"] == "required"
    assert len(asked["excludeCredentials"]) == 1
    assert "editor" not in str(asked["user"]["id"])


FORGED: dict[str, dict[str, Any]] = {
    "another origin": {"origin": "http://evil.example"},
    "another port": {"origin": "http://localhost:8001"},
    "a host of the domain": {"origin": "http://a.localhost:8000"},
    "another relying party": {"host": "evil.example"},
    "a person who is not verified": {"verifies": False},
    "another key": {"key": ec.generate_private_key(ec.SECP256R1())},
    "an unknown key": {"credential_id": b"unknown"},
    "a lower counter": {"count": 4},
    "the same counter": {"count": 5},
    "no counter any more": {"count": 0},
    "another ceremony": {"kind": "webauthn.create"},
    "another person's handle": {"handle": b"somebody else"},
}


@pytest.mark.parametrize("change", [pytest.param(change, id=name) for name, change in FORGED.items()])
def test_a_forged_signature_is_refused(browser: Browser, authenticator: Authenticator, change: dict[str, Any]) -> None:
    assert is_refused(use(browser, replace(authenticator, **({"count": 6} | change))))
    assert "normata-session" not in browser.cookies
    assert use(browser, replace(authenticator, count=6)).status_code == 303


@on_both
def test_a_challenge_is_good_once(browser: Browser, authenticator: Authenticator) -> None:
    options = browser.post("/sign-in/passkey/options/").json()
    signed = replace(authenticator, count=6).sign(options)
    assert browser.post("/sign-in/passkey/", credential=signed).status_code == 303
    assert is_refused(browser.post("/sign-in/passkey/", credential=signed))
    # Neither after a refusal.
    options = browser.post("/sign-in/passkey/options/").json()
    assert is_refused(
        browser.post("/sign-in/passkey/", credential=replace(authenticator, verifies=False).sign(options))
    )
    assert is_refused(browser.post("/sign-in/passkey/", credential=replace(authenticator, count=8).sign(options)))


def test_a_challenge_is_good_for_ten_minutes(browser: Browser, authenticator: Authenticator, instance: Served) -> None:
    options = browser.post("/sign-in/passkey/options/").json()
    run_sql(instance.database, "UPDATE sign_in_attempt SET expires_at = '2026-01-01T00:00:00.000Z'")
    assert is_refused(browser.post("/sign-in/passkey/", credential=replace(authenticator, count=6).sign(options)))
    browser.post("/sign-in/passkey/options/")
    assert len(stored.rows(instance.database, SignInAttempt)) == 1  # what has expired is forgotten


def test_a_challenge_of_ones_own_making_is_refused(browser: Browser, authenticator: Authenticator) -> None:
    signed = replace(authenticator, count=6).sign({"challenge": "A" * 43})
    assert is_refused(browser.post("/sign-in/passkey/", credential=signed))


def test_a_challenge_is_good_for_its_purpose_and_person_alone(
    browser: Browser, authenticator: Authenticator, instance: Served, sign_in: SignIn
) -> None:
    to_sign_in = browser.post("/sign-in/passkey/options/").json()
    sign_in(browser, "editor")
    for_editor = browser.post("/account/passkeys/options/").json()
    assert is_refused(browser.post("/sign-in/passkey/", credential=replace(authenticator, count=6).sign(for_editor)))
    made = Authenticator().create(for_editor | {"challenge": to_sign_in["challenge"]})
    assert is_refused(browser.post("/account/passkeys/", credential=made))
    for_editor = browser.post("/account/passkeys/options/").json()
    other = Browser(instance)
    sign_in(other, "viewer")
    assert is_refused(other.post("/account/passkeys/", credential=Authenticator().create(for_editor)))
    assert len(stored.rows(instance.database, Passkey)) == 1


@pytest.mark.parametrize(
    "change",
    [{"origin": "http://evil.example"}, {"host": "evil.example"}, {"verifies": False}, {"kind": "webauthn.get"}],
    ids=str,
)
def test_a_forged_new_passkey_is_refused(
    browser: Browser, instance: Served, sign_in: SignIn, change: dict[str, Any]
) -> None:
    sign_in(browser, "editor")
    assert is_refused(add(browser, Authenticator(**change)))
    assert stored.rows(instance.database, Passkey) == []


@pytest.mark.parametrize(
    "credential",
    ["", "null", "[]", "{}", "{", '{"response": {}}', '{"response": {"clientDataJSON": "e30"}}', '{"response": 1}',
     json.dumps({"id": 1, "rawId": [], "type": "x", "response": {"clientDataJSON": "bm8", "signature": "%"}})],
)  # fmt: skip
def test_nonsense_is_refused(browser: Browser, sign_in: SignIn, credential: str) -> None:
    assert is_refused(browser.post("/sign-in/passkey/", credential=credential))
    sign_in(browser, "editor")
    assert is_refused(browser.post("/account/passkeys/", credential=credential))


def test_broken_parts_are_refused(sqlite_url: str) -> None:
    with served(sqlite_url, sign_in_limit=0) as instance:
        browser, authenticator = Browser(instance), Authenticator()
        browser.post("/sign-in/link/", secret=new_link(instance, "editor"))
        assert add(browser, authenticator).status_code == 303
        browser.post("/sign-out/")
        for part in ("rawId", "id", "clientDataJSON", "authenticatorData", "signature", "userHandle"):
            for value in (1, "%", "AAAA", {"a": []}, "é", *([None, ""] if part != "userHandle" else ())):
                signed = json.loads(authenticator.sign(browser.post("/sign-in/passkey/options/").json()))
                (signed if part in signed else signed["response"])[part] = value
                answer = browser.post("/sign-in/passkey/", credential=json.dumps(signed))
                assert is_refused(answer), (part, value)
        assert "normata-session" not in browser.cookies
        assert use(browser, authenticator).status_code == 303


def test_a_passkey_belongs_to_one_account(
    browser: Browser, authenticator: Authenticator, instance: Served, sign_in: SignIn
) -> None:
    sign_in(browser, "viewer")
    answer = add(browser, authenticator)
    assert is_refused(answer)
    assert "already registered here" in text_of(answer)
    (passkey,) = stored.rows(instance.database, Passkey)
    assert browser.post("/account/passkeys/remove/", passkey=passkey["id"]).status_code == 404


def test_a_new_passkey_takes_a_fresh_sign_in(browser: Browser, instance: Served, sign_in: SignIn) -> None:
    sign_in(browser, "editor")
    options = browser.post("/account/passkeys/options/").json()
    run_sql(instance.database, "UPDATE session SET created_at = '2026-01-01T00:00:00.000Z'")
    assert is_refused(browser.post("/account/passkeys/options/"))
    assert is_refused(browser.post("/account/passkeys/", credential=Authenticator().create(options)))


def test_the_removed_cannot_sign_in(browser: Browser, instance: Served, authenticator: Authenticator) -> None:
    run_sql(instance.database, "UPDATE user_account SET removed_at = '2026-01-01T00:00:00.000Z'")
    assert is_refused(use(browser, replace(authenticator, count=6)))


def test_there_are_none_for_an_address(sqlite_url: str) -> None:
    with served(sqlite_url, public_url="http://127.0.0.1:8000") as instance:
        browser = Browser(instance, "http://127.0.0.1:8000")
        assert "passkey" not in text_of(browser.get("/sign-in/"))
        assert is_refused(browser.post("/sign-in/passkey/options/"))


def test_challenges_are_limited_by_address(sqlite_url: str) -> None:
    with served(sqlite_url, sign_in_limit=1) as instance:
        browser = Browser(instance)
        statuses = [browser.post("/sign-in/passkey/options/").status_code for _ in range(22)]
        assert statuses == [200] * 20 + [429] * 2
