"""The pages of the console as links lead to them, so that whatever page there will be is looked at, too."""

from __future__ import annotations

import re
from collections import deque
from urllib.parse import urlsplit

import httpx2
import pytest

from normata.console.app.routes import PAGES
from normata.console.page_request import SESSION_COOKIE
from tests.browser.demonstrated import PLACE
from tests.console.app.pages import Parsed
from tests.server import PLAIN

Addresses = dict[str, str]

# Those of every organization; a file is no page.
ROUTES = tuple(page.path for page in PAGES if page.get is not None and not page.path.endswith("/file/"))
OTHERS = (
    "/account/",
    "/sign-in/",
    f"{PLACE}find/?search=supplier",
    f"{PLACE}frameworks/iso-27001-2022/?asOf=2026-05-20",
    f"{PLACE}records/tasks/?filters=all",
    f"{PLACE}records/tasks/?group=status&open=task-restore-telemetry-database",
    f"{PLACE}records/policies/policy-information-security/",
    f"{PLACE}records/policies/policy-cryptography/",
    f"{PLACE}records/risks/risk-single-maker-of-lidar-modules/",
    f"{PLACE}records/incidents/incident-phished-purchasing-account/",
    f"{PLACE}records/vendors/vendor-nimbusgrid/",
    f"{PLACE}records/vendor-assessments/vendor-assessment-brightdesk-2026/",
)
# The demo has adopted all frameworks, so none is there to be adopted. Few records have the others.
_UNLINKED = {
    "frameworks/{id}/adoption/": f"{PLACE}frameworks/iso-27001-2022/adoption/",
    "audits/{id}/": f"{PLACE}audits/audit-internal-csf-profile/",
    "comments/{id}/": f"{PLACE}comments/comment-lidar-maker/",
    "standard-questionnaire/": f"{PLACE}standard-questionnaire/",
    **{
        f"entitlement-reviews/{{id}}/{page}": f"{PLACE}entitlement-reviews/entitlement-review-build-system-first/{page}"
        for page in ("", "upload/")
    },
    **{
        f"policies/{{id}}/{page}/": f"{PLACE}policies/policy-cryptography/{page}/"
        for page in ("draft", "versions", "acknowledgements")
    },
}
_MOST_LOOKED_AT = 6  # addresses of one route, where that leads to a page that is still missing


def every_page(name: str = "route") -> pytest.MarkDecorator:
    """Run a test once for each page, and for some that have more to show than the one that links lead to."""
    return pytest.mark.parametrize(name, [*ROUTES, *OTHERS])


def route_of(path: str) -> str | None:
    """The route of a path within the organization; null where none has it."""
    found = [route for route in ROUTES if re.fullmatch(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(route)), path)]
    return min(found, key=lambda route: (route.count("{"), route), default=None)


def addresses_of(base: str, secret: str) -> Addresses:
    """An address of every route, as links lead there from home and the others. Fails where no link leads to one."""
    found: Addresses = {other: other for other in OTHERS} | {"": PLACE} | _UNLINKED
    seen = {PLACE}
    first, more = deque([PLACE, *OTHERS]), deque[str]()
    counts = dict.fromkeys(ROUTES, 0)
    with httpx2.Client(base_url=base, cookies={SESSION_COOKIE: secret}, verify=PLAIN, timeout=30) as client:
        while first or (more and found.keys() < {*ROUTES, *OTHERS}):
            address = first.popleft() if first else more.popleft()
            answer = client.get(address)
            if answer.status_code != 200 or not answer.headers["content-type"].startswith("text/html"):
                continue
            for link in Parsed(answer).links:
                path = urlsplit(link).path
                route = route_of(path.removeprefix(PLACE)) if path.startswith(PLACE) else None
                if route is None or path in seen:
                    continue
                seen.add(path)
                counts[route] += 1
                if route not in found:
                    found[route] = path
                    first.append(path)
                elif counts[route] <= _MOST_LOOKED_AT:
                    more.append(path)
    missing = [route for route in ROUTES if route not in found]
    assert not missing, f"no link leads to {missing}"
    return found
