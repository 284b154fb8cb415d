"""Matches that an organization sets aside: they count for it no more, and for others as before."""

from __future__ import annotations

from typing import Any

import pytest

from normata.core.db.database import Database
from normata.frameworks.model import ControlMatch, SetAsideMatch
from tests import stored
from tests.databases import on_both
from tests.own_frameworks.conftest import Asked
from tests.own_frameworks.test_controls import is_current
from tests.own_frameworks.test_matches import WHY, body, match, status
from tests.world import BETA


def published(ask: Asked, source: str, target: str) -> dict[str, Any]:
    items = ask.done("GET", "/matches/", published="true", limit="100", control=source)["items"]
    return next(item for item in items if item["targetControl"]["id"] == target)


def sources(ask: Asked, control: str) -> list[str]:
    items = ask.done("GET", "/controls/", limit="100")["items"]
    item = next(item for item in items if item["id"] == control)
    return [match["matchedControl"]["id"] for match in item["sourceMatches"]]


@on_both
def test_it_counts_no_more_and_again(ask: Asked, database: Database) -> None:
    found = published(ask, "sun.A.1", "moon.A.1")
    path = f"/matches/{found['id']}/set-aside/"
    before = status(ask, "moon.A.1")
    assert before != "NONE"
    assert "sun.A.1" in sources(ask, "moon.A.1")
    for why in (WHY, "Another reason."):
        made = ask.done("PUT", path, {"justification": why}, user="editor")
        assert made["setAside"]["justification"] == why
        assert status(ask, "moon.A.1") == "NONE"
        assert "sun.A.1" not in sources(ask, "moon.A.1")
        assert is_current(database)
    counting = ask.done("GET", "/matches/", published="true", counts="true", limit="100")["items"]
    others = ask.done("GET", "/matches/", published="true", counts="false", limit="100")["items"]
    assert found["id"] not in {one["id"] for one in counting}
    assert [one["id"] for one in others] == [found["id"]]
    for _ in range(2):
        assert ask.done("DELETE", path, user="editor")["setAside"] is None
        assert status(ask, "moon.A.1") == before
        assert is_current(database)
    assert [event["action"] for event in stored.events(database, entity_type="SetAsideMatch")] == [
        "create",
        "update",
        "delete",
    ]


def test_it_says_nothing_of_its_other_direction_either(ask: Asked, database: Database) -> None:
    """That the source of a match lies within its target is known by the match back, if that counts."""
    forward, back = match("moon.A.3", "moon.A.9", "PARTIAL"), match("moon.A.9", "moon.A.3")
    assert status(ask, "moon.A.3") == "PARTIAL"
    made = ask.done("POST", "/matches/", body(forward, back))["items"]
    assert status(ask, "moon.A.9") == "PARTIAL"
    ask.done("PUT", f"/matches/{made[1]['id']}/set-aside/", {"justification": WHY})
    assert status(ask, "moon.A.9") == "NONE"
    assert is_current(database)
    assert ask.done("DELETE", f"/matches/{made[1]['id']}/") is None
    assert stored.rows(database, SetAsideMatch) == []


def test_it_is_for_one_organization_alone(ask: Asked, database: Database) -> None:
    found = published(ask, "sun.A.1", "moon.A.1")
    ask.done("PUT", f"/matches/{found['id']}/set-aside/", {"justification": WHY})
    theirs = {"user": "foreigner", "organizationId": BETA}
    listed = ask.done("GET", "/matches/", published="true", limit="100", **theirs)["items"]
    assert {one["setAside"] for one in listed if one["id"] == found["id"]} <= {None}
    assert is_current(database, BETA)


@pytest.mark.parametrize(("user", "code"), [("viewer", 403), ("foreigner", 404)])
def test_viewers_and_strangers_may_not(ask: Asked, user: str, code: int) -> None:
    path = f"/matches/{published(ask, 'sun.A.1', 'moon.A.1')['id']}/set-aside/"
    assert ask.refused("PUT", path, {"justification": WHY}, user=user) == code
    assert ask.refused("DELETE", path, user=user) == code


def test_what_is_wrong_is_reported(ask: Asked, database: Database) -> None:
    path = f"/matches/{published(ask, 'sun.A.1', 'moon.A.1')['id']}/set-aside/"
    assert [name for name, _ in ask.faults("PUT", path, {"justification": " "})] == ["justification"]
    assert [name for name, _ in ask.faults("PUT", path, {})] == ["justification"]
    assert ask.refused("PUT", "/matches/nothing/set-aside/", {"justification": WHY}) == 404
    foreign = stored.rows(database, ControlMatch, source_control_id="foreign.A.1")[0]["id"]
    assert ask.refused("PUT", f"/matches/{foreign}/set-aside/", {"justification": WHY}) == 404
    assert stored.rows(database, SetAsideMatch) == []
