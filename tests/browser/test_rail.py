"""The sidebar where it has room for icons alone: between a phone and a wide window."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.browser.demonstrated import PLACE


def test_every_place_is_an_icon_with_its_name(look: Open) -> None:
    page = look()
    places = page.get_by_role("navigation", name="Main")
    for width in (720, 900, 1023):
        page.set_viewport_size({"width": width, "height": 900})
        assert places.evaluate("(part) => part.offsetWidth") == 56
        for name in ("Overview", "Inbox", "Controls", "Tasks", "Vendors", "Organization", "Audit trail"):
            link = places.get_by_role("link", name=name)
            expect(link).to_be_visible()
            expect(link).to_have_attribute("title", name)
            assert link.evaluate("(part) => part.offsetWidth") == 36
        assert page.evaluate("document.documentElement.scrollWidth") == width
        unread = places.get_by_role("link", name="Inbox").locator(".n")
        expect(unread).to_be_visible()
        assert unread.evaluate("(part) => [part.offsetWidth, part.offsetHeight]") == [8, 8]
    page.set_viewport_size({"width": 719, "height": 900})
    expect(page.locator("#places")).to_be_hidden()
    page.set_viewport_size({"width": 1024, "height": 900})
    assert places.evaluate("(part) => part.offsetWidth") > 200
    page.set_viewport_size({"width": 900, "height": 900})
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
