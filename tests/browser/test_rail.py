"""The sidebar where it has room for icons alone: between a phone and a wide window."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.browser.demonstrated import PLACE
from tests.browser.pages import Addresses


@pytest.mark.parametrize("width", [720, 900, 1023])
def test_every_place_is_an_icon_with_its_name(look: Open, width: int) -> None:
    page = look(viewport={"width": width, "height": 900})
    places = page.get_by_role("navigation", name="Main")
    assert places.evaluate("(part) => part.offsetWidth") == 56
    for name in ("Overview", "Inbox", "Controls", "Tasks", "Vendors", "Organization", "Audit trail"):
        link = places.get_by_role("link", name=name)
        expect(link).to_be_visible()
        expect(link).to_have_attribute("title", name)
        assert link.evaluate("(part) => part.offsetWidth") == 36
    assert page.evaluate("document.documentElement.scrollWidth") == width
    places.get_by_role("link", name="Controls").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Controls")
    expect(places.get_by_role("link", name="Controls")).to_have_attribute("aria-current", "page")


@pytest.mark.parametrize("with_script", [True, False])
def test_a_group_that_is_folded_opens(look: Open, with_script: bool) -> None:
    page = look(viewport={"width": 900, "height": 1000}, java_script_enabled=with_script)
    places = page.get_by_role("navigation", name="Main")
    expect(places.get_by_role("link", name="Acronyms")).to_be_hidden()
    places.locator("summary[title=Vocabulary]").click()
    places.get_by_role("link", name="Acronyms").click()
    page.wait_for_url(f"**{PLACE}records/acronyms/")


def test_what_is_unread_is_seen(look: Open) -> None:
    page = look(viewport={"width": 900, "height": 900})
    unread = page.get_by_role("navigation", name="Main").get_by_role("link", name="Inbox").locator(".n")
    expect(unread).to_be_visible()
    assert unread.evaluate("(part) => [part.offsetWidth, part.offsetHeight]") == [8, 8]


@pytest.mark.parametrize(("width", "has_words"), [(719, False), (1024, True)])
def test_beyond_there_is_no_rail(look: Open, width: int, has_words: bool) -> None:
    page = look(viewport={"width": width, "height": 900})
    places = page.locator("#places")
    if has_words:
        assert places.evaluate("(part) => part.offsetWidth") > 200
    else:
        expect(places).to_be_hidden()


@pytest.mark.parametrize("width", [720, 900])
def test_no_page_is_wider_than_the_window(look: Open, width: int, addresses: Addresses) -> None:
    page = look(viewport={"width": width, "height": 900})
    wider = {}
    for route, address in addresses.items():
        page.goto(address)
        by = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        if by > 0:
            wider[route] = by
    assert wider == {}
