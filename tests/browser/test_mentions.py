"""Mentioning a member in a comment by what one types, in a real browser."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.browser.demonstrated import PLACE


def test_a_member_is_mentioned_with_keys_alone_and_by_touch(open_page: Open) -> None:
    page = open_page()
    page.goto(f"{PLACE}records/tasks/task-rotate-signing-keys/")
    area = page.get_by_label("Comment", exact=False).last
    options = page.get_by_role("listbox", name="Members to mention").get_by_role("option")
    area.fill("mail@tom")
    area.press_sequentially(" please, @tom")
    expect(options).to_have_count(1)
    expect(options.first).to_have_text(re.compile("^Tomasz Wierzbicki"))
    expect(area).to_have_attribute("aria-activedescendant", options.first.get_attribute("id") or "")
    area.press("Escape")
    expect(options).to_have_count(0)
    area.press("End")
    area.press("Backspace")
    area.press("Enter")  # writes a line, since no list is open
    area.fill("Please, @")
    area.press_sequentially("a")
    expect(options.nth(1)).to_be_visible()
    area.press("ArrowDown")
    area.press("ArrowUp")
    chosen = (options.first.locator("span").first.text_content() or "").strip()
    area.press("Enter")
    expect(area).to_have_value(f"Please, @{chosen} ")
    area.press_sequentially("and @tom")
    options.first.click()
    expect(area).to_have_value(f"Please, @{chosen} and @Tomasz Wierzbicki ")
    page.get_by_role("button", name="Comment", exact=True).click()
    expect(page.get_by_text(f"Please, @{chosen} and @Tomasz Wierzbicki")).to_be_visible()
