"""Passwords: choosing one, signing in with it, and guessing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from argon2 import PasswordHasher
from sqlalchemy import select

from normata.core.schema.table import sql_table
from normata.identity.sign_in import passwords
from normata.identity.sign_in.passwords import UnfitPassword, require_fit
from normata.identity.sign_in_model import Password
from tests.console.browser import Browser, is_refused, text_of
from tests.databases import change, on_both
from tests.served import Served, run_sql, served

SignIn = Callable[[Browser, str], None]

GOOD, OTHER = "a heron stands in the reeds", "two herons stand in the reeds"
EMAIL = "editor@alpha.example"


def stored_hash(instance: Served) -> str:
    """What is kept of the only password."""
    column = sql_table(Password).c.hash
    return str(instance.database.read_now(lambda transaction: transaction.scalar(select(column))))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hash with little memory: these tests are not about Argon2id."""
    monkeypatch.setattr(passwords, "PasswordHasher", lambda: PasswordHasher(1, 1024, 1))


@pytest.fixture
def has_password(instance: Served) -> None:
    """The editor has a password."""
    hashed = PasswordHasher(1, 1024, 1).hash(GOOD)
    change(instance.database, lambda unit: passwords.store(unit, "user-editor", hashed))


@on_both
def test_a_password_is_chosen_used_and_changed(browser: Browser, instance: Served, sign_in: SignIn) -> None:
    sign_in(browser, "editor")
    assert browser.post("/account/password/", password=GOOD).headers["location"] == "/account/"
    assert stored_hash(instance).startswith("$argon2id$v=19$")
    browser.post("/sign-out/")

    answer = browser.post("/sign-in/password/", email="  Editor@ALPHA.example ", password=GOOD)
    assert (answer.status_code, answer.headers["location"]) == (303, "/app/")

    other = Browser(instance)
    other.post("/sign-in/password/", email=EMAIL, password=GOOD)
    assert other.get("/account/").status_code == 200
    wrong = browser.post("/account/password/", current=OTHER, password=OTHER)
    assert is_refused(wrong)
    assert other.get("/account/").status_code == 200
    assert browser.post("/account/password/", current=GOOD, password=OTHER).status_code == 303
    assert browser.get("/account/").status_code == 200
    assert other.get("/account/").status_code == 303  # a change of the password ends the other sessions
    assert is_refused(other.post("/sign-in/password/", email=EMAIL, password=GOOD))
    assert other.post("/sign-in/password/", email=EMAIL, password=OTHER).status_code == 303


@pytest.mark.usefixtures("has_password")
def test_who_has_no_account_is_told_the_same(browser: Browser) -> None:
    answers = [
        browser.post("/sign-in/password/", email=email, password=OTHER)
        for email in (EMAIL, "viewer@alpha.example", "stranger@alpha.example", "", "\0")
    ]
    assert all(is_refused(answer) for answer in answers)
    assert len({text_of(answer).replace(answer.headers["x-request-id"], "") for answer in answers}) == 1
    assert browser.cookies == {}


@pytest.mark.usefixtures("has_password")
def test_who_has_no_account_costs_as_much(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []
    verify = PasswordHasher.verify

    def noted(hasher: PasswordHasher, stored: str, password: str) -> bool:
        compared.append(stored)
        return verify(hasher, stored, password)

    monkeypatch.setattr(PasswordHasher, "verify", noted)
    for email in (EMAIL, "viewer@alpha.example", "stranger@alpha.example"):
        browser.post("/sign-in/password/", email=email, password=OTHER)
    assert len(compared) == 3
    assert len({stored.rpartition("$")[0].rpartition("$")[0] for stored in compared}) == 1  # of the same parameters


@pytest.mark.usefixtures("has_password")
def test_the_removed_cannot_sign_in(browser: Browser, instance: Served) -> None:
    moment = "'2026-01-01T00:00:00.000Z'"
    run_sql(instance.database, f"UPDATE user_account SET removed_at = {moment} WHERE id = 'user-editor'")
    assert is_refused(browser.post("/sign-in/password/", email=EMAIL, password=GOOD))


def test_guessing_is_slowed_down_by_account_and_by_address(sqlite_url: str) -> None:
    with served(sqlite_url, sign_in_limit=3) as instance:
        browser = Browser(instance)

        def guess(email: str) -> int:
            return browser.post("/sign-in/password/", email=email, password=OTHER).status_code

        assert [guess(EMAIL) for _ in range(4)] == [403, 403, 403, 429]
        refused = browser.post("/sign-in/password/", email=EMAIL.upper(), password=OTHER)
        assert is_refused(refused, status=429)
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        # Another account is not affected; the address is after twenty times as many.
        others = [guess(f"{number}@alpha.example") for number in range(60)]
        assert others[:5] == [403] * 5
        assert others[-1] == 429


def test_a_good_password_does_not_help_who_is_slowed_down(sqlite_url: str) -> None:
    with served(sqlite_url, sign_in_limit=1) as instance:
        hashed = PasswordHasher(1, 1024, 1).hash(GOOD)
        change(instance.database, lambda unit: passwords.store(unit, "user-editor", hashed))
        browser = Browser(instance)
        assert browser.post("/sign-in/password/", email=EMAIL, password=OTHER).status_code == 403
        assert browser.post("/sign-in/password/", email=EMAIL, password=GOOD).status_code == 429


def test_a_password_is_hashed_anew_when_the_parameters_change(browser: Browser, instance: Served) -> None:
    weaker = PasswordHasher(1, 512, 1).hash(GOOD)
    change(instance.database, lambda unit: passwords.store(unit, "user-editor", weaker))
    assert browser.post("/sign-in/password/", email=EMAIL, password=GOOD).status_code == 303
    assert "m=1024" in stored_hash(instance)
    assert browser.post("/sign-in/password/", email=EMAIL, password=GOOD).status_code == 303


def test_a_letter_may_be_composed_in_either_way(browser: Browser, sign_in: SignIn) -> None:
    sign_in(browser, "editor")
    assert browser.post("/account/password/", password="ein großer Bär im Öl").status_code == 303
    assert (
        browser.post("/sign-in/password/", email=EMAIL, password="ein großer Ba\u0308r im O\u0308l").status_code == 303
    )


@pytest.mark.parametrize(
    ("password", "fault"),
    [
        ("fourteen chars", "short"),
        ("a\u0308" * 3 + "eleven char", "short"),  # fourteen letters, of which three are of two parts
        ("long and longer " * 63, "long"),
        ("a" * 15, "obvious"),
        ("abababababababab", "obvious"),
        ("passwordpassword", "obvious"),
        ("PasswordPasswor", "obvious"),
        ("normata-password-1", "obvious"),
        ("123456789012345", "obvious"),
        ("98765432109876543", "obvious"),
        ("abcdefghijklmnopqr", "obvious"),
        ("qwertyuiopasdfgh", "obvious"),
        ("1qaz2wsx3edc4rfv", "obvious"),
        ("Editor@Alpha.Example", "obvious"),
        ("alpha editor alpha", "obvious"),
    ],
)
def test_a_password_that_is_short_or_obvious_is_refused(password: str, fault: str) -> None:
    with pytest.raises(UnfitPassword) as refused:
        require_fit(password, EMAIL, "Editor")
    assert refused.value.fault == fault


@pytest.mark.parametrize(
    "password", [GOOD, OTHER, "fifteen letters", "correct horse battery staple", "ü" * 8 + "1234567xyz"]
)
def test_any_other_is_taken(password: str) -> None:
    require_fit(password, EMAIL, "Editor")


def test_the_page_says_what_is_wrong_with_a_password(browser: Browser, sign_in: SignIn) -> None:
    sign_in(browser, "editor")
    answer = browser.post("/account/password/", password="short")
    assert answer.status_code == 400
    assert "at least 15 characters" in text_of(answer)
    assert "You have no password" in text_of(answer)


def test_a_first_password_takes_a_fresh_sign_in(browser: Browser, instance: Served, sign_in: SignIn) -> None:
    sign_in(browser, "editor")
    run_sql(instance.database, "UPDATE session SET created_at = '2026-01-01T00:00:00.000Z'")
    assert is_refused(browser.post("/account/password/", password=GOOD))
    assert instance.database.read_now(lambda transaction: transaction.rows(select(sql_table(Password).c.user_id))) == []


def test_local_sign_in_can_be_turned_off(sqlite_url: str) -> None:
    with served(sqlite_url, local_sign_in=False) as instance:
        browser = Browser(instance)
        page = text_of(browser.get("/sign-in/"))
        assert "Password" not in page
        assert "passkey" not in page
        for path in ("/sign-in/password/", "/sign-in/passkey/", "/sign-in/passkey/options/", "/sign-in/invitation/"):
            assert is_refused(browser.post(path, email=EMAIL, password=GOOD)), path
