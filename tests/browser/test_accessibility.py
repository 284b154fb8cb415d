"""What people with disabilities would stumble over, as far as a program can tell: axe, WCAG 2.2 AA."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
_OPTIONS: dict[str, Any] = {"runOnly": {"type": "tag", "values": _TAGS}, "resultTypes": ["violations"]}
# Light and dark, phone and wide: each has been seen once, and none changes what the other does.
_VARIANTS: dict[str, dict[str, Any]] = {
    "light": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"},
    "dark phone": {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark", "is_mobile": True}
    | {"has_touch": True},
}

Pages = Mapping[str, Page]


@pytest.fixture(scope="module")
def pages(chromium: Browser, shared_base: str, demo: Demo) -> Iterator[Pages]:
    """A page of each variant, for all tests. Their policy lets nobody add a script, not even this one."""
    contexts = {
        variant: chromium.new_context(base_url=shared_base, bypass_csp=True, **options)
        for variant, options in _VARIANTS.items()
    }
    for context in contexts.values():
        context.add_cookies([demo.cookie(demo.user, shared_base)])
    yield {variant: context.new_page() for variant, context in contexts.items()}
    for context in contexts.values():
        context.close()


@every_page()
def test_no_page_keeps_anybody_out(route: str, pages: Pages, addresses: Addresses) -> None:
    """And none is wider than the window."""
    found = {}
    for variant, page in pages.items():
        page.goto(addresses[route])
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        page.evaluate(_WITHOUT_REPEATS)
        found[variant] = [*([f"wider by {wide}"] if wide > 0 else []), *_violations(page)]
    assert {variant: told for variant, told in found.items() if told} == {}


def test_neither_does_what_opens_over_a_page(pages: Pages) -> None:
    found = {}
    for variant, page in pages.items():
        for name, key in (("palette", "Control+k"), ("keys", "?")):
            page.goto(f"{PLACE}frameworks/")
            page.keyboard.press(key)
            if name == "palette":
                page.keyboard.type("access")
                page.get_by_role("option").nth(5).wait_for()
            found[name, variant] = _violations(page)
    assert {name: told for name, told in found.items() if told} == {}


def test_keys_lead_through_a_page_in_order(look: Open) -> None:
    page = look()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def _violations(page: Page) -> list[str]:
    page.evaluate(_AXE)
    return [
        f"{one['id']}: {node['html'][:160]} {node.get('failureSummary', '')[:200]}"
        for one in page.evaluate(_RUN, _OPTIONS)
        for node in one["nodes"][:3]
    ]
