"""Every tool gives everybody what the operation gives them over HTTP, with tokens of every scope."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import cache
from typing import Any, NamedTuple

import pytest

from normata.core.http.roles import SCOPES
from normata.mcp.server import TOOLS
from normata.records.assurance import Risk
from tests import stored
from tests.mcp.raw import Outcome, RawClient
from tests.served import Headers, Served
from tests.world import ALPHA, BETA, USERS, record_id

CONTROL, FRAMEWORK = "own.A.1", "fw-own"


class Same(NamedTuple):
    """A call of a tool, and the same request over HTTP."""

    tool: str
    arguments: dict[str, Any]
    method: str
    path: str
    query: dict[str, str] | None = None
    body: Any = None


@cache
def requests() -> list[Same]:
    """A request for each tool."""
    live, archived = record_id(Risk, "live"), record_id(Risk, "archived")
    own, about = {"organizationId": ALPHA}, {"kind": "risks", "id": live}
    dry_run = {"dryRun": "true"}
    values = {"name": "Changed"}
    assessment = {"controlId": CONTROL, "note": "At the gate."}
    return [
        Same("search", own | {"search": "live"}, "GET", "/search/", own | {"search": "live"}),
        Same("read", own | about, "GET", f"/risks/{live}/", own),
        Same("read", own | {"kind": "events"}, "GET", "/events/", own),
        Same("read", own | {"kind": "invitations"}, "GET", "/invitations/", own),
        Same("explain_coverage", own | {"controlId": CONTROL}, "GET", f"/controls/{CONTROL}/coverage/", own),
        Same("gaps", own | {"frameworkId": FRAMEWORK}, "GET", f"/frameworks/{FRAMEWORK}/gaps/", own),
        Same(
            "gaps",
            own | {"frameworkId": FRAMEWORK, "steps": 2},
            "GET",
            f"/frameworks/{FRAMEWORK}/gaps/plan/",
            own | {"steps": "2"},
        ),
        Same("due", own | {"within": 7}, "GET", "/due/", own | {"within": "7d", "limit": "25"}),
        Same("events_since", own | {"limit": 5}, "GET", "/events/log/", own | {"limit": "5"}),
        Same("assess", own | assessment, "PATCH", "/controls/coverage/", dry_run, own | {"assessments": [assessment]}),
        Same("create", own | {"kind": "risks", "values": values}, "POST", "/risks/", dry_run, own | values),
        Same("change", own | about | {"values": values}, "PATCH", f"/risks/{live}/", dry_run, values),
        Same("archive", own | about, "POST", f"/risks/{live}/archive/", dry_run, {}),
        Same("restore", own | about | {"id": archived}, "POST", f"/risks/{archived}/restore/", dry_run),
        Same(
            "comment",
            own | about | {"text": "Well."},
            "POST",
            "/comments/",
            dry_run,
            own | {"about": about, "text": "Well."},
        ),
    ]


def test_every_tool_is_tried() -> None:
    assert {one.tool for one in requests()} == {tool.name for tool in TOOLS}


@pytest.fixture(scope="module")
def callers(shared: Served) -> dict[str, Headers]:
    """Everybody, with a token of every scope, one for another organization, and what is no valid token."""
    found = {f"{user} {scope}": shared.bearer(user, scope=scope) for user in USERS for scope in SCOPES}
    found["narrowed"] = shared.bearer("owner", organization=ALPHA)
    found["narrowed to another"] = shared.bearer("foreigner", organization=BETA)
    found["scim"] = shared.bearer("owner", scope="scim", organization=ALPHA)
    found["expired"] = shared.bearer("owner", lifetime=timedelta(seconds=-1))
    revoked = shared.token("owner")
    shared.revoke(revoked)
    found["revoked"] = {"Authorization": f"Bearer {revoked}"}
    return found | {"anonymous": {}, "malformed": {"Authorization": "Bearer nonsense"}}


@pytest.fixture(autouse=True, scope="module")
def unchanged(shared: Served, callers: dict[str, Headers]) -> Iterator[None]:
    """Nothing is changed here: without a confirmation, a tool only shows."""
    del callers  # they come first
    before = stored.everything(shared.database)
    yield
    assert stored.everything(shared.database) == before


@pytest.mark.parametrize("same", requests(), ids=lambda one: f"{one.tool} {one.method} {one.path}")
def test_a_tool_gives_what_http_gives(same: Same, shared: Served, callers: dict[str, Headers]) -> None:
    wrong, statuses = [], set()
    for caller, headers in callers.items():
        over_http = shared.client.request(same.method, same.path, params=same.query, json=same.body, headers=headers)
        expected: tuple[int, str] = over_http.status_code, over_http.json().get("code", "")
        statuses.add(over_http.status_code)
        client = RawClient(shared.client, headers)
        response = client.send(same.tool, same.arguments)
        if response.status_code == 200:
            outcome = Outcome.of(response)
            found = outcome.code
            if over_http.status_code == 200 and same.method == "GET":
                assert outcome.data == over_http.json()
        else:  # the token is none for any tool
            found = response.status_code, response.json()["code"]
            if response.status_code == 401:
                assert response.headers["www-authenticate"] == over_http.headers["www-authenticate"]
        if found != expected:
            wrong.append((caller, found, expected))
    assert wrong == []
    assert {200, 401, 404} <= statuses
