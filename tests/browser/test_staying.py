"""A page stays where it is when something is done in one of its rows, and what decides a long page is in sight."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.browser.demonstrated import PLACE

SMALL = {"width": 1280, "height": 480}
GAPS = f"{PLACE}frameworks/iso-27001-2022/gaps/"
WINS = "section[aria-labelledby=wins] tbody tr"


@pytest.mark.parametrize(("path", "rows"), [(GAPS, WINS), (f"{PLACE}due/", "main tbody tr")])
def test_the_next_row_is_where_the_last_one_was(path: str, rows: str, open_page: Open) -> None:
    page = open_page(path=path, viewport=SMALL)
    button = page.locator(rows).locator("button[form]").nth(2)
    button.evaluate("button => scrollBy(0, button.getBoundingClientRect().top - 240)")
    before, place = page.evaluate("scrollY"), button.bounding_box()
    assert before > 0
    assert place is not None
    button.focus()
    button.press("Enter")
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    assert page.evaluate("scrollY") == pytest.approx(before, abs=1)
    after = page.locator(rows).locator("button[form]").nth(2)
    expect(after).to_be_focused()
    there = after.bounding_box()
    assert there is not None
    if path == GAPS:  # under Due other records than tasks stand between
        assert there["y"] == pytest.approx(place["y"], abs=1)


def test_without_script_the_row_before_is_in_sight(open_page: Open) -> None:
    page = open_page(path=GAPS, viewport=SMALL, java_script_enabled=False)
    before = page.locator(WINS).nth(2).locator(".id").inner_text()
    page.locator(WINS).nth(3).get_by_role("button").click()
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    row = page.locator(WINS).nth(2)
    expect(row).to_contain_text(before)
    expect(row).to_be_in_viewport()


@pytest.mark.parametrize("width", [1280, 390])
def test_what_applies_a_long_preview_is_in_sight(width: int, open_page: Open) -> None:
    page = open_page(path=f"{PLACE}controls/", viewport={"width": width, "height": 640})
    if width < 700:
        page.get_by_text("Select", exact=True).click()
    for box in page.locator("tbody .pickbox input").all()[:30]:
        box.check()
    page.get_by_role("button", name="Full").last.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("30")
    apply = page.get_by_role("button", name="Apply")
    expect(apply).to_be_in_viewport(ratio=1)
    apply.click()
    expect(page.get_by_role("status")).to_contain_text("Saved for all selected controls")
