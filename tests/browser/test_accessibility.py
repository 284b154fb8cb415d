"""What people with disabilities would stumble over, as far as a program can tell: axe, WCAG 2.2 AA."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.conftest import Open
from tests.browser.demonstrated import PLACE, Demo
from tests.browser.pages import Addresses, every_page

_AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
_RUN = "(options) => axe.run(document, options).then((found) => found.violations)"
# Of rows of the same tags, classes and attributes one is enough: a list has a hundred.
_WITHOUT_REPEATS = """() => {
  const seen = new Set();
  const shape = (part) => [part.tagName, part.className, ...part.getAttributeNames()].join(" ");
  for (const row of document.querySelectorAll("main tbody tr, main li")) {
    const shapes = [row, ...row.querySelectorAll("*")].map(shape).join();
    if (seen.has(shapes)) { row.remove(); }
    seen.add(shapes);
  }
}"""
_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
_WIDE, _PHONE = (1280, 900), (390, 844)
_ALL: dict[str, Any] = {"runOnly": {"type": "tag", "values": _TAGS}, "resultTypes": ["violations"]}
_COLOURS: dict[str, Any] = {"runOnly": {"type": "rule", "values": ["color-contrast"]}, "resultTypes": ["violations"]}


@pytest.fixture(scope="module")
def page(chromium: Browser, shared_base: str, demo: Demo) -> Iterator[Page]:
    """One page for all tests. The policy of the pages lets nobody add a script, not even this one."""
    context = chromium.new_context(base_url=shared_base, bypass_csp=True)
    context.add_cookies([demo.cookie(demo.user, shared_base)])
    yield context.new_page()
    context.close()


@every_page()
def test_no_page_keeps_anybody_out(route: str, page: Page, addresses: Addresses) -> None:
    page.set_viewport_size({"width": _WIDE[0], "height": _WIDE[1]})
    page.emulate_media(color_scheme="light")
    page.goto(addresses[route])
    page.evaluate(_WITHOUT_REPEATS)
    page.evaluate(_AXE)
    found = {"light": _violations(page, _ALL)}
    page.emulate_media(color_scheme="dark")
    found["dark"] = _violations(page, _COLOURS)  # nothing else is different
    page.set_viewport_size({"width": _PHONE[0], "height": _PHONE[1]})
    found["dark phone"] = _violations(page, _COLOURS)
    page.emulate_media(color_scheme="light")
    found["phone"] = _violations(page, _ALL)
    assert {variant: told for variant, told in found.items() if told} == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_neither_does_what_opens_over_a_page(scheme: str, page: Page) -> None:
    page.set_viewport_size({"width": _WIDE[0], "height": _WIDE[1]})
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    found = {}
    for name, key in (("palette", "Control+k"), ("keys", "?")):
        page.goto(f"{PLACE}frameworks/")
        page.keyboard.press(key)
        if name == "palette":
            page.keyboard.type("access")
            page.get_by_role("option").nth(5).wait_for()
        page.evaluate(_AXE)
        found[name] = _violations(page, _ALL)
    assert {name: told for name, told in found.items() if told} == {}


def test_keys_lead_through_a_page_in_order(look: Open) -> None:
    page = look()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def _violations(page: Page, options: dict[str, Any]) -> list[str]:
    return [
        f"{one['id']}: {node['html'][:160]} {node.get('failureSummary', '')[:200]}"
        for one in page.evaluate(_RUN, options)
        for node in one["nodes"][:3]
    ]
