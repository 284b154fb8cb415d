"""Sessions: how long they last, what ends them, and what they are good for."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from httpx2 import Response

from normata.core.db.types import format_timestamp
from normata.core.http.operation import Operation
from normata.identity.last_use import SessionUse
from tests import stored
from tests.console.browser import Browser, is_refused, new_link, text_of
from tests.core.http.samples import all_operations, sample
from tests.databases import on_both
from tests.served import Served, refused, run_sql, served

SignIn = Callable[[Browser, str], None]
MakeLink = Callable[[str], str]

COOKIE = "normata-session"


def before(**ago: float) -> str:
    """A moment some time ago, as SQL has it."""
    return f"'{format_timestamp(datetime.now(UTC) - timedelta(**ago))}'"


def is_sent_away(answer: Response) -> bool:
    """Whether the page is only for people who have signed in, and this browser has not."""
    return answer.status_code == 303 and answer.headers["location"].startswith("/sign-in/")


def test_the_cookie_is_out_of_reach(browser: Browser, link_of: MakeLink) -> None:
    answer = browser.post("/sign-in/link/", secret=link_of("editor"))
    name, _, rest = answer.headers.get_list("set-cookie")[0].partition("=")
    secret, *attributes = rest.split("; ")
    assert name == COOKIE  # plain, for the address is http://localhost
    assert sorted(attributes) == ["HttpOnly", "Max-Age=604800", "Path=/", "SameSite=Lax"]
    assert len(secret) == 43


def test_over_tls_the_cookie_is_bound_to_host_and_tls(sqlite_url: str) -> None:
    with served(sqlite_url, public_url="https://normata.example.org/compliance") as instance:
        browser = Browser(instance, "https://normata.example.org")
        answer = browser.post("/sign-in/link/", secret=new_link(instance, "editor"))
        cookie = answer.headers.get_list("set-cookie")[0]
        assert cookie.startswith("__Host-normata-session=")
        assert cookie.endswith("; Secure")
        assert "; Path=/;" in cookie
        assert browser.get("/account/").status_code == 200
        # A cookie of the plain name can be set by whoever is on the way to http://normata.example.org.
        secret = browser.cookies["__Host-normata-session"]
        browser.client.cookies.clear()
        browser.client.cookies.set(COOKIE, secret)
        assert is_sent_away(browser.get("/account/"))


@pytest.mark.parametrize("url", ["http://normata.example.org", "http://192.0.2.7:8000", "http://localhost.example.org"])
def test_nobody_signs_in_where_the_cookie_could_be_read(sqlite_url: str, url: str) -> None:
    with served(sqlite_url, public_url=url) as instance:
        browser = Browser(instance, url)
        for answer in (browser.get("/sign-in/"), browser.post("/sign-in/link/", secret=new_link(instance, "editor"))):
            assert is_refused(answer)
            assert "HTTPS" in text_of(answer)
            assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("url", ["http://127.0.0.1:8000", "http://[::1]:8000", "http://localhost"])
def test_on_this_machine_one_can(sqlite_url: str, url: str) -> None:
    with served(sqlite_url, public_url=url) as instance:
        assert Browser(instance, url).get("/sign-in/").status_code == 200


def test_a_session_that_was_prepared_is_worth_nothing(browser: Browser, instance: Served, link_of: MakeLink) -> None:
    # Session fixation: the attacker puts a secret that they know into the victim's browser.
    known = "A" * 43
    browser.client.cookies.set(COOKIE, known, domain="localhost.local")
    browser.post("/sign-in/link/", secret=link_of("editor"))
    assert browser.get("/account/").status_code == 200
    assert known not in browser.cookies.values()
    attacker = Browser(instance)
    attacker.client.cookies.set(COOKIE, known)
    assert is_sent_away(attacker.get("/account/"))


@on_both
def test_signing_in_again_rotates_the_session(browser: Browser, instance: Served, link_of: MakeLink) -> None:
    browser.post("/sign-in/link/", secret=link_of("editor"))
    first = browser.cookies[COOKIE]
    browser.post("/sign-in/link/", secret=link_of("viewer"))
    assert browser.cookies[COOKIE] != first
    thief = Browser(instance)
    thief.client.cookies.set(COOKIE, first)
    assert is_sent_away(thief.get("/account/"))
    assert "Viewer" in text_of(browser.get("/account/"))


def test_signing_out_ends_the_session(browser: Browser, sign_in: SignIn) -> None:
    sign_in(browser, "editor")
    secret = browser.cookies[COOKIE]
    assert browser.post("/sign-out/").headers["location"] == "/sign-in/"
    assert COOKIE not in browser.cookies
    browser.client.cookies.set(COOKIE, secret)
    assert is_sent_away(browser.get("/account/"))
    assert browser.post("/sign-out/").status_code == 303  # twice is harmless


@pytest.mark.parametrize(
    ("moment", "is_good"),
    [
        (("last_used_at", {"hours": 11.9}), True),
        (("last_used_at", {"hours": 12.1}), False),
        (("expires_at", {"minutes": -10}), True),
        (("expires_at", {"seconds": 1}), False),
        (("ended_at", {"seconds": 1}), False),
    ],
    ids=["used", "idle", "young", "old", "ended"],
)
def test_a_session_lasts_no_longer(
    browser: Browser, instance: Served, sign_in: SignIn, moment: tuple[str, dict[str, float]], is_good: bool
) -> None:
    sign_in(browser, "editor")
    column, ago = moment
    run_sql(instance.database, f"UPDATE session SET {column} = {before(**ago)}")
    assert is_sent_away(browser.get("/account/")) is not is_good


def test_a_session_lasts_seven_days_at_most(browser: Browser, instance: Served, sign_in: SignIn) -> None:
    sign_in(browser, "editor")
    (session,) = stored.sessions(instance.database)
    lasts = datetime.fromisoformat(session["expires_at"]) - datetime.fromisoformat(session["created_at"])
    assert lasts == timedelta(days=7)


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE user_account SET removed_at = {} WHERE id = 'user-editor'",
        "UPDATE user_account SET organization_id = 'org-alpha' WHERE id = 'user-editor'",
    ],
    ids=["removed", "service account"],
)
def test_who_is_nobody_any_more_has_no_session(browser: Browser, instance: Served, sign_in: SignIn, sql: str) -> None:
    sign_in(browser, "editor")
    run_sql(instance.database, sql.format(before(seconds=1)))
    assert is_sent_away(browser.get("/account/"))


def test_a_removed_member_sees_the_organization_no_more(browser: Browser, instance: Served, sign_in: SignIn) -> None:
    sign_in(browser, "editor")
    assert "Alpha" in text_of(browser.get("/account/"))
    run_sql(instance.database, f"UPDATE membership SET removed_at = {before(seconds=1)} WHERE id = 'member-editor'")
    assert "Alpha" not in text_of(browser.get("/account/"))


@on_both
def test_people_see_their_sessions_and_end_them(browser: Browser, instance: Served, sign_in: SignIn) -> None:
    other, stranger = Browser(instance), Browser(instance)
    other.client.headers["User-Agent"] = "An old <browser>"
    for one, user in ((browser, "editor"), (other, "editor"), (stranger, "viewer")):
        sign_in(one, user)
    page = browser.get("/account/")
    assert "An old <browser>" in text_of(page)
    assert "<browser>" not in page.text
    ids = {row["user_agent"]: row["id"] for row in stored.sessions(instance.database, user_id="user-editor")}

    assert stranger.post("/account/sessions/", session=ids["An old <browser>"]).status_code == 404
    assert other.get("/account/").status_code == 200
    assert browser.post("/account/sessions/", session=ids["An old <browser>"]).status_code == 303
    assert is_sent_away(other.get("/account/"))
    assert "An old <browser>" not in text_of(browser.get("/account/"))


@on_both
def test_last_use_is_stored_once_a_minute(browser: Browser, instance: Served, sign_in: SignIn) -> None:
    sign_in(browser, "editor")
    run_sql(instance.database, f"UPDATE session SET last_used_at = {before(hours=1)}")
    browser.get("/account/")
    browser.client.portal.call(instance.app.services.means[SessionUse].store)  # type: ignore[union-attr]
    (session,) = stored.sessions(instance.database)
    assert f"'{session['last_used_at']}'" > before(minutes=1)


@pytest.fixture(scope="module")
def holder(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser in which the owner has signed in."""
    path = tmp_path_factory.mktemp("cookies") / "normata.db"
    shutil.copy(sqlite_template, path)
    with served(f"sqlite:///{path}") as instance:
        browser = Browser(instance)
        browser.post("/sign-in/link/", secret=new_link(instance, "owner"))
        assert browser.get("/account/").status_code == 200
        yield browser


@all_operations()
def test_a_cookie_is_no_good_for_the_api(holder: Browser, operation: Operation) -> None:
    answer = sample(operation).send(holder.client, {"Sec-Fetch-Site": "same-origin"})
    refused(answer, 401, "unauthenticated")
