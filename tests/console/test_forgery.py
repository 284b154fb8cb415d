"""Requests that another site has a person's browser make."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from normata.console.page_request import Endpoint
from tests import stored
from tests.console.browser import Browser, is_refused, new_link
from tests.databases import on_both
from tests.served import Served, served

SignIn = Callable[[Browser, str], None]


def pages(instance: Served) -> list[str]:
    """Every page that changes something, also those that are added tomorrow; but no page for mail programs.

    These send what no page has sent (RFC 8058); the link in the mail has a signature.
    """
    endpoints = [getattr(route, "endpoint", None) for route in instance.app.router.routes]
    paths = {one.path for one in endpoints if isinstance(one, Endpoint) and "POST" in one.methods and not one.is_open}
    return sorted(re.sub(r"{\w+}", "x", path) for path in paths)


FORGED = {
    "another site": {"Sec-Fetch-Site": "cross-site", "Origin": "http://localhost:8000"},
    "another host of the domain": {"Sec-Fetch-Site": "same-site", "Origin": "http://localhost:8000"},
    "what no browser sends": {"Sec-Fetch-Site": "", "Origin": "http://localhost:8000"},
    "two headers": {"Sec-Fetch-Site": "same-origin, cross-site"},
    "another origin": {"Origin": "https://evil.example"},
    "another port": {"Origin": "http://localhost:8001"},
    "another scheme": {"Origin": "ftp://localhost:8000"},
    "no origin to tell": {"Origin": "null"},
    "an empty origin": {"Origin": ""},
    "the host within another": {"Origin": "http://localhost:8000.evil.example"},
    "the host as a user": {"Origin": "http://localhost:8000@evil.example"},
    "neither header": {},
    "neither header but a referrer": {"Referer": "http://localhost:8000/account/"},
}


@pytest.mark.parametrize("headers", [pytest.param(headers, id=name) for name, headers in FORGED.items()])
def test_a_forged_request_changes_nothing(sqlite_url: str, headers: dict[str, str]) -> None:
    with served(sqlite_url) as instance:
        browser = Browser(instance)
        assert browser.post("/sign-in/link/", secret=new_link(instance, "editor")).status_code == 303
        secret = new_link(instance, "viewer")
        (session,) = stored.sessions(instance.database)
        before = stored.everything(instance.database)
        for path in pages(instance):
            answer = browser.post(path, headers=headers, secret=secret, session=session["id"], password="x" * 20)
            assert is_refused(answer), path
            assert "set-cookie" not in answer.headers
        assert stored.everything(instance.database) == before
        assert browser.get("/account/").status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": "http://localhost:8000"},  # that of the setting
        {"Origin": "http://alias.example:81", "Host": "alias.example:81"},  # the host that it was sent to
    ],
    ids=["same origin", "typed", "the setting's origin", "the host's origin"],
)
def test_a_request_of_our_own_pages_is_served(
    browser: Browser, link_of: Callable[[str], str], headers: dict[str, str]
) -> None:
    assert browser.post("/sign-in/link/", headers=headers, secret=link_of("editor")).status_code == 303


def test_every_page_is_found(instance: Served) -> None:
    ours = {"/sign-in/password/", "/sign-in/passkey/", "/sign-in/link/", "/sign-in/invitation/", "/sign-out/"}
    assert ours | {"/account/password/", "/account/passkeys/", "/account/sessions/"} <= set(pages(instance))


def test_reading_changes_nothing(browser: Browser, instance: Served, link_of: Callable[[str], str]) -> None:
    secret = link_of("editor")
    before = stored.everything(instance.database)
    for path in (*pages(instance), "/sign-in/", "/account/"):
        for method in ("GET", "HEAD"):
            answer = browser.client.request(method, f"{path}?secret={secret}")
            assert answer.status_code < 500
            assert "set-cookie" not in answer.headers
    assert stored.everything(instance.database) == before


PUBLIC = "https://normata.example.org"
OF_ANOTHER_HOST = {
    "a name that leads here": {
        "Host": "evil.example",
        "Sec-Fetch-Site": "same-origin",
        "Origin": "https://evil.example",
    },
    "without Origin": {"Host": "evil.example", "Sec-Fetch-Site": "same-origin"},
    "without Fetch Metadata": {"Host": "evil.example", "Origin": "http://evil.example"},
    "our host within another": {"Host": "normata.example.org.evil.example", "Sec-Fetch-Site": "same-origin"},
    "our host, another page": {
        "Host": "normata.example.org",
        "Sec-Fetch-Site": "none",
        "Origin": "https://evil.example",
    },
    "another port": {"Host": "normata.example.org", "Sec-Fetch-Site": "same-origin", "Origin": f"{PUBLIC}:81"},
    "no TLS": {"Host": "normata.example.org", "Origin": "http://normata.example.org"},
}


@pytest.mark.parametrize("headers", OF_ANOTHER_HOST.values(), ids=OF_ANOTHER_HOST)
@on_both
def test_where_our_address_is_set_forms_of_another_host_are_refused(database_url: str, headers: dict[str, str]) -> None:
    with served(database_url, public_url=PUBLIC) as instance:
        browser = Browser(instance, PUBLIC)
        secret = new_link(instance, "editor")
        for path in pages(instance):
            assert is_refused(browser.post(path, headers=headers, secret=secret)), path
        for ours in ({"Host": "normata.example.org"}, {"Host": "normata.example.org:443", "Origin": "null"}):
            assert browser.post("/sign-out/", headers=ours | {"Sec-Fetch-Site": "same-origin"}).status_code == 303
        assert browser.post("/sign-in/link/", headers={"Origin": PUBLIC}, secret=secret).status_code == 303


def test_the_hosts_of_requests_can_be_limited(sqlite_url: str) -> None:
    with served(sqlite_url, allowed_hosts="normata.example.org,[::1]") as instance:
        headers = instance.bearer("viewer")
        for host in ("normata.example.org", "NORMATA.example.org:8000", "[::1]:8000"):
            assert instance.client.get("/me/", headers=headers | {"Host": host}).status_code == 200
        for host in ("evil.example", "normata.example.org.evil.example", "::1", "normata.example.org:x"):
            for path in ("/me/", "/sign-in/", "/nothing/", "/docs"):
                answer = instance.client.get(path, headers=headers | {"Host": host})
                assert answer.status_code == 400
                assert "Host" in answer.text
        for path in ("/livez", "/readyz", "/metrics"):
            assert instance.client.get(path, headers={"Host": "10.0.0.7"}).status_code == 200
