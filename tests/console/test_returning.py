"""Where one lands after signing in: never on another site."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from argon2 import PasswordHasher

from normata.console.return_path import safe_path
from normata.identity.sign_in import passwords
from tests.console.browser import Browser
from tests.databases import change
from tests.served import Served, served

SAFE = ["/app/", "/account/", "/account/sessions/", "/app/controls/?search=a%20b&page=2", "/app/~dana/a_b-c.d/100%25"]

ELSEWHERE = [
    "https://evil.example/",
    "//evil.example/",
    "///evil.example/",
    "/\\evil.example/",
    "\\\\evil.example",
    "/account//evil.example/",
    "/account/\\evil.example",
    "/account/../../evil",
    "/account/..%2f..%2fevil",
    "/account/%2e%2e/evil",
    "/account/%252e%252e/evil",
    "/account/%5c%5cevil.example",
    "/account/%2f/evil.example",
    "/account/./x",
    "/account",
    "/app",
    "/accounts/",
    "/apple/",
    "/sign-in/",
    "/docs/",
    "/controls/",
    "account/",
    " /account/",
    "/account/ ",
    "/account/\r\nSet-Cookie: a=b",
    "/account/%0d%0aSet-Cookie:%20a=b",
    "/account/\t",
    "/account/\x00",
    "/account/é",
    "javascript:alert(1)",
    "data:text/html,x",
    "http:/account/",
    "@evil.example/account/",
    '/account/?next="onload=x',
    "/account/" + "a" * 1_000,
    "",
]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hash with little memory: these tests are not about Argon2id."""
    monkeypatch.setattr(passwords, "PasswordHasher", lambda: PasswordHasher(1, 1024, 1))


@pytest.mark.parametrize("path", SAFE)
def test_a_path_of_ours_is_kept(path: str) -> None:
    assert safe_path(path) == path


@pytest.mark.parametrize("path", ELSEWHERE)
def test_whatever_else_is_dropped(path: str) -> None:
    assert safe_path(path) == ""


def test_one_returns_to_where_one_wanted(browser: Browser, instance: Served) -> None:
    password = "a heron stands in the reeds"
    hashed = PasswordHasher(1, 1024, 1).hash(password)
    change(instance.database, lambda unit: passwords.store(unit, "user-editor", hashed))
    page = browser.get("/sign-in/?return_to=/app/controls/")
    assert 'name="return_to" value="/app/controls/"' in page.text
    answer = browser.post(
        "/sign-in/password/", email="editor@alpha.example", password=password, return_to="/app/controls/"
    )
    assert answer.headers["location"] == "/app/controls/"


def test_nobody_is_sent_elsewhere(sqlite_url: str) -> None:
    with served(sqlite_url, sign_in_limit=0) as instance:
        browser, email, password = Browser(instance), "editor@alpha.example", "a heron stands in the reeds"
        hashed = PasswordHasher(1, 1024, 1).hash(password)
        change(instance.database, lambda unit: passwords.store(unit, "user-editor", hashed))
        for target in ELSEWHERE:
            page = browser.get(f"/sign-in/?return_to={quote(target)}")
            assert 'name="return_to" value=""' in page.text, target
            answer = browser.post("/sign-in/password/", email=email, password=password, return_to=target)
            assert answer.headers["location"] in ("/app/", "/account/"), target


def test_who_has_to_sign_in_first_comes_back(browser: Browser) -> None:
    assert browser.get("/account/").headers["location"] == "/sign-in/?return_to=%2Faccount%2F"
    assert browser.post("/account/password/", password="x" * 20).headers["location"] == "/sign-in/"
