"""Signing in with a link."""

from __future__ import annotations

from collections.abc import Callable

from tests.console.browser import Browser, is_refused, text_of
from tests.databases import on_both

MakeLink = Callable[[str], str]


def test_a_link_signs_in_with_its_button_alone(browser: Browser, link_of: MakeLink) -> None:
    secret = link_of("editor")
    for _ in range(2):  # a scanner of mail opens it, too
        page = browser.get(f"/sign-in/link/?secret={secret}")
        assert page.status_code == 200
        assert "Sign in as Editor" in text_of(page)
    assert browser.cookies == {}

    answer = browser.post("/sign-in/link/", secret=secret)

    assert (answer.status_code, answer.headers["location"]) == (303, "/app/")
    page = browser.get("/account/")
    assert page.status_code == 200
    assert "Editor" in text_of(page)
    assert "Alpha" in text_of(page)


@on_both
def test_a_link_is_good_once(browser: Browser, link_of: MakeLink) -> None:
    secret = link_of("editor")
    assert browser.post("/sign-in/link/", secret=secret).status_code == 303
    browser.client.cookies.clear()

    for answer in (browser.post("/sign-in/link/", secret=secret), browser.get(f"/sign-in/link/?secret={secret}")):
        assert is_refused(answer)
        assert "already been used" in text_of(answer)
    assert browser.cookies == {}
