"""What people with disabilities would stumble over, as far as a program can tell: axe, WCAG 2.2 AA."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page

from normata.console.pages import environment
from tests.browser import components
from tests.browser.conftest import Open
from tests.browser.demonstrated import PLACE, Demo
from tests.browser.pages import Addresses, every_page

_AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
_RUN = "([within, options]) => axe.run(within ?? document, options).then((found) => found.violations)"
# Of rows of the same tags, classes and attributes one is enough: a list has a hundred, and the sidebar twenty.
_WITHOUT_REPEATS = """() => {
  const seen = new Set();
  const shape = (part) => [part.tagName, part.className, ...part.getAttributeNames()].join(" ");
  for (const row of document.querySelectorAll("tbody tr, li")) {
    const shapes = [row, ...row.querySelectorAll("*")].map(shape).join();
    if (seen.has(shapes)) { row.remove(); }
    seen.add(shapes);
  }
}"""
_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# What axe looks at in a scheme: the dark one differs from the light one in its colours alone.
_RULES: dict[Literal["light", "dark"], dict[str, Any]] = {
    "light": {"type": "tag", "values": _TAGS},
    "dark": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]},
}
_RAIL = (720, 900)  # widths where the sidebar has room for icons alone
_SIZES: dict[str, dict[str, Any]] = {
    "wide": {"viewport": {"width": 1280, "height": 900}},
    "phone": {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True},
}

Pages = Mapping[str, Page]


@pytest.fixture(scope="module")
def pages(chromium: Browser, shared_base: str, demo: Demo) -> Iterator[Pages]:
    """A page of each size, for all tests. Their policy lets nobody add a script, not even this one."""
    contexts = {
        size: chromium.new_context(base_url=shared_base, bypass_csp=True, **options) for size, options in _SIZES.items()
    }
    for context in contexts.values():
        context.add_cookies([demo.cookie(demo.user, shared_base)])
    yield {size: context.new_page() for size, context in contexts.items()}
    for context in contexts.values():
        context.close()


@every_page()
def test_no_page_keeps_anybody_out(route: str, pages: Pages, addresses: Addresses) -> None:
    """And none is wider than the window."""
    found = {}
    for size, page in pages.items():
        page.goto(addresses[route])
        if size == "wide":
            for width in _RAIL:
                page.set_viewport_size({"width": width, "height": 900})
                found[str(width)] = _wider(page)
            page.set_viewport_size(_SIZES[size]["viewport"])
        found[size] = _wider(page)
        page.evaluate(_WITHOUT_REPEATS)
        found[size] += _violations(page)
    assert {size: told for size, told in found.items() if told} == {}


def test_the_pages_of_a_vendor_keep_nobody_out(pages: Pages) -> None:
    """Who comes by a link has no account, and no other page."""
    wide = pages["wide"]
    wide.goto(f"{PLACE}records/vendor-assessments/vendor-assessment-lumenaxis-2026/")
    wide.get_by_role("button", name="Link for the vendor…").click()
    wide.locator("#linking").get_by_role("button", name="Link for the vendor").click()
    link = urlsplit(wide.locator("code.secret").inner_text())
    found = {}
    for size, page in pages.items():
        page.goto(f"{link.path}?{link.query}")
        for address in ("/vendor/?part=3", "/vendor/finish/", "/vendor/open/"):
            page.goto(address)
            found[f"{size} {address}"] = [*_wider(page), *_violations(page)]
    assert {place: told for place, told in found.items() if told} == {}


def test_no_component_keeps_anybody_out(chromium: Browser, tmp_path: Path) -> None:
    """Each is on the page of all components, in every size and both schemes."""
    address, found = components.written(tmp_path), {}
    for size, options in _SIZES.items():
        context = chromium.new_context(**options)
        page = context.new_page()
        page.goto(address)
        found[size] = [*_wider(page), *_violations(page)]
        context.close()
    assert {size: told for size, told in found.items() if told} == {}


def test_the_page_of_components_has_them_all() -> None:
    shown = set(re.findall(r"\bui\.(\w+)\(", components.TEMPLATE.read_text("utf-8")))
    inner = {"below", "beside", "described", "icon", "mark"}  # what other components, and their addresses, are made of
    assert shown | inner >= set(vars(environment().globals["ui"]))


def test_neither_does_what_opens_over_a_page(pages: Pages) -> None:
    found = {}
    for size, page in pages.items():
        for name, key in (("palette", "Control+k"), ("keys", "?")):
            page.goto(f"{PLACE}frameworks/")
            page.keyboard.press(key)
            if name == "palette":
                page.keyboard.type("access")
                page.get_by_role("option").nth(5).wait_for()
            found[name, size] = _violations(page)
        page.goto(f"{PLACE}records/tasks/?status=TODO")
        for menu in page.locator("main details.menu:visible > summary").all():
            menu.click()
            # The page behind it is partly out of sight, and so are links on it.
            found[menu.inner_text(), size] = _violations(page, "main details.menu[open]")
            page.keyboard.press("Escape")
    assert len(found) >= len(_SIZES) * 5
    assert {name: told for name, told in found.items() if told} == {}


def test_keys_lead_through_a_page_in_order(look: Open) -> None:
    page = look()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def _wider(page: Page) -> list[str]:
    by = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    return [f"wider by {by}"] if by > 0 else []


def _violations(page: Page, within: str | None = None) -> list[str]:
    """In light and in dark colours, of the page or of a part of it: the page stays as it is loaded."""
    page.evaluate(_AXE)
    found = []
    for scheme, rules in _RULES.items():
        page.emulate_media(color_scheme=scheme)
        found += [
            f"{scheme}: {one['id']}: {node['html'][:160]} {node.get('failureSummary', '')[:200]}"
            for one in page.evaluate(_RUN, [within, {"runOnly": rules, "resultTypes": ["violations"]}])
            for node in one["nodes"][:3]
        ]
    return found
