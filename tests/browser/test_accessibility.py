"""What people with disabilities would stumble over, as far as a program can tell: axe, WCAG 2.2 AA."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.browser.conftest import Open

_PLACE = "/app/harbourlight-robotics/"
_ISO = f"{_PLACE}frameworks/iso-27001-2022/"
PAGES = (
    _PLACE,
    f"{_PLACE}controls/",
    f"{_PLACE}controls/iso-27001-2022%3AA.5.11/",
    f"{_PLACE}frameworks/",
    _ISO,
    f"{_ISO}adoption/",
    f"{_ISO}gaps/",
    f"{_ISO}statement-of-applicability/",
    f"{_ISO}work/",
    f"{_PLACE}crosswalk/",
    f"{_PLACE}records/",
    f"{_PLACE}records/tasks/?filters=all",
    f"{_PLACE}records/tasks/task-rotate-signing-keys/",
    f"{_PLACE}records/tasks/task-rotate-signing-keys/edit/",
    f"{_PLACE}records/policies/policy-information-security/",
    f"{_PLACE}records/policies/new/",
    f"{_PLACE}archive/",
)
_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@pytest.mark.parametrize(
    ("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light")], ids=["light", "dark", "phone"]
)
def test_no_page_keeps_anybody_out(open_page: Open, width: int, scheme: str) -> None:
    # The policy of the pages lets nobody add a script, not even this one.
    page = open_page(viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True)
    found = {path: _violations(page, path) for path in PAGES}
    assert {path: told for path, told in found.items() if told} == {}


def _violations(page: Page, path: str) -> list[str]:
    page.goto(path)
    results = Axe().run(page, options={"runOnly": {"type": "tag", "values": _TAGS}})
    return [
        f"{one['id']}: {node['html'][:160]} {node.get('failureSummary', '')[:200]}"
        for one in results.response["violations"]
        for node in one["nodes"][:3]
    ]
