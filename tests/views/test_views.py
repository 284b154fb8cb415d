"""Views that people save: each for themselves, and those that are shared with the organization."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from httpx2 import Response

from tests import stored
from tests.served import Served, served
from tests.world import ALPHA, BETA

SHARED, OF_EDITOR = f"view-1-{ALPHA}", f"view-2-{ALPHA}"


@pytest.fixture
def service(database_url: str) -> Iterator[Served]:
    """The application over a fresh copy of the test world."""
    with served(database_url) as opened:
        yield opened


def asking(service: Served) -> Callable[..., Response]:
    """Asks as one of the world's users, with one token; of alpha, where it does not say otherwise."""
    bearers = {user: service.bearer(user) for user in ("owner", "admin", "editor", "viewer", "foreigner")}

    def ask(user: str, method: str, path: str = "/views/", **body: Any) -> Response:
        names = {"organizationId": ALPHA}
        return service.client.request(
            method,
            path,
            params=names | body if method == "GET" else {},
            json=(names if method == "POST" else {}) | body if method in ("POST", "PATCH") else None,
            headers=bearers[user],
        )

    return ask


def test_a_view_is_ones_own_until_an_editor_shares_it(service: Served) -> None:
    ask = asking(service)

    def seen(user: str) -> list[str]:
        return [view["id"] for view in ask(user, "GET").json()["items"]]

    assert seen("editor") == [SHARED, OF_EDITOR]
    assert seen("viewer") == seen("owner") == [SHARED]

    query = {"status": ["TODO", "BLOCKED"], "search": ["Größe & Maß"], "sortColumn": ["deadline"]}
    made = ask("viewer", "POST", kind="tasks", name="An own one", query=query)
    assert made.status_code == 201
    own = made.json()["id"]
    assert ask("viewer", "GET", made.headers["location"]).json() == made.json()
    assert (made.json()["query"], made.json()["isShared"], made.json()["userId"]) == (query, False, "user-viewer")
    assert seen("viewer") == [own, SHARED]

    # Nobody else knows of it, whatever their role; and a viewer shares nothing.
    before = stored.everything(service.database)
    for user in ("owner", "foreigner"):
        for method in ("GET", "PATCH", "DELETE"):
            assert ask(user, method, f"/views/{own}/").status_code == 404
    for refused in (
        ask("viewer", "POST", kind="tasks", name="For all", isShared=True),
        ask("viewer", "PATCH", f"/views/{own}/", isShared=True),
        ask("viewer", "PATCH", f"/views/{SHARED}/", name="Mine"),
        ask("viewer", "DELETE", f"/views/{SHARED}/"),
    ):
        assert refused.status_code == 403
        assert "takes the role editor" in refused.json()["detail"]
    assert stored.everything(service.database) == before

    # An editor shares, and whoever stops sharing has it for themselves.
    assert ask("editor", "PATCH", f"/views/{OF_EDITOR}/", isShared=True, name="For all").json()["isShared"]
    assert OF_EDITOR in seen("viewer")
    taken = ask("admin", "PATCH", f"/views/{OF_EDITOR}/", isShared=False).json()
    assert (taken["userId"], taken["isShared"], taken["name"]) == ("user-admin", False, "For all")
    assert seen("editor") == seen("owner") == [SHARED]

    # A viewer changes and removes what is theirs.
    changed = ask("viewer", "PATCH", f"/views/{own}/", query={"status": ["DONE"]})
    assert (changed.json()["query"], changed.json()["name"]) == ({"status": ["DONE"]}, "An own one")
    assert ask("viewer", "DELETE", f"/views/{own}/").json() is None
    assert ask("viewer", "GET", f"/views/{own}/").status_code == 404
    actions = [event["action"] for event in stored.events(service.database) if event["entity_id"] == own]
    assert actions == ["create", "update", "delete"]


def test_what_is_no_view_is_refused(service: Served) -> None:
    ask = asking(service)
    before = stored.everything(service.database)
    cases: dict[str, dict[str, Any]] = {
        "kind": {"kind": "members"},
        "name": {"name": " "},
        "query/a b": {"query": {"a b": ["x"]}},
        "query/status": {"query": {"status": []}},
        "query": {"query": {"search": ["x" * 900] * 5}},
        "isShared": {"isShared": "yes"},
    }
    for fault, body in cases.items():
        answer = ask("owner", "POST", **{"kind": "tasks", "name": "A view"} | body)
        assert answer.status_code == 400, body
        assert answer.json()["errors"][0]["name"].startswith(fault), answer.text
    assert ask("owner", "POST", organizationId=BETA, kind="tasks", name="Theirs").status_code == 404
    assert stored.everything(service.database) == before
