"""Frameworks that an organization makes and changes for itself."""

from __future__ import annotations

from typing import Any

import pytest

from normata.core.db.database import Database
from normata.frameworks.model import Framework
from tests import stored
from tests.databases import on_both
from tests.own_frameworks.conftest import Asked
from tests.world import ALPHA, BETA

BOAT = {"organizationId": ALPHA, "name": "Boat Rules"}


def test_a_new_one_belongs_to_its_organization_and_gets_what_it_lacks(ask: Asked) -> None:
    response = ask("POST", "/frameworks/", BOAT)
    made = response.json()
    assert response.status_code == 201
    assert response.headers["location"] == f"/frameworks/{made['id']}/"
    assert ask.done("GET", f"/frameworks/{made['id']}/") == made
    assert made in ask.done("GET", "/frameworks/")["items"]
    expected = {
        "organizationId": ALPHA,
        "name": "Boat Rules",
        "identifier": "Boat Rules",
        "slug": "boat-rules",
        "isCentralized": False,
        "isActive": True,
        "createdBy": "Admin",
        "_count": {"controls": 0},
        "adoption": None,
    }
    assert {name: made[name] for name in expected} == expected
    assert made["createdAt"] == made["updatedAt"]
    assert ask.refused("GET", f"/frameworks/{made['id']}/", user="foreigner", organizationId=BETA) == 404


@on_both
def test_it_takes_every_field_that_can_be_written(ask: Asked) -> None:
    given = {
        "identifier": "BOAT",
        "slug": "boat",
        "version": "2",
        "identifierColor": "#123456",
        "publishedAt": "2026-01-02",
        "deprecatedAt": "2027-01-02T03:04:05+01:00",
        "description": "What is on board.",
    }
    made = ask.done("POST", "/frameworks/", BOAT | given)
    times = {"publishedAt": "2026-01-02T00:00:00.000Z", "deprecatedAt": "2027-01-02T02:04:05.000Z"}
    assert {name: made[name] for name in given} == given | times


def test_the_organization_may_be_named_by_its_slug(ask: Asked) -> None:
    made = ask.done("POST", "/frameworks/", BOAT | {"organizationId": "alpha"})
    assert made["organizationId"] == ALPHA
    changed = ask.done("PATCH", f"/frameworks/{made['id']}/", {"version": "3"}, organizationId="alpha")
    assert changed["version"] == "3"


@on_both
def test_a_patch_changes_what_it_has_and_leaves_an_event(ask: Asked, database: Database) -> None:
    before = ask.done("GET", "/frameworks/fw-own/")
    given = {"name": "Ours", "version": "2", "description": "All of it."}
    after = ask.done("PATCH", "/frameworks/fw-own/", given)
    assert after == before | given | {"updatedAt": after["updatedAt"]}
    assert after["updatedAt"] > before["updatedAt"]
    assert ask.done("PATCH", "/frameworks/fw-own/", {"description": None})["description"] is None
    events = stored.events(database, entity_id="fw-own")
    assert [(event["action"], event["entity_type"], event["user_id"]) for event in events] == [
        ("update", "Framework", "user-admin")
    ] * 2


def test_a_patch_that_changes_nothing_writes_nothing(ask: Asked, database: Database) -> None:
    before = stored.everything(database)
    assert ask.done("PATCH", "/frameworks/fw-own/", {}) == ask.done("GET", "/frameworks/fw-own/")
    ask.done("PATCH", "/frameworks/fw-own/", {"name": "Alpha's own"})
    assert stored.everything(database) == before


def test_the_kept_lists_show_the_change_at_once(ask: Asked) -> None:
    for _ in range(2):
        assert "Ours" not in [one["name"] for one in ask.done("GET", "/frameworks/")["items"]]
    ask.done("PATCH", "/frameworks/fw-own/", {"name": "Ours"})
    assert "Ours" in [one["name"] for one in ask.done("GET", "/frameworks/")["items"]]
    assert {one["framework"]["name"] for one in ask.done("GET", "/controls/", frameworks="fw-own")["items"]} == {"Ours"}


@pytest.mark.parametrize(
    ("body", "faults"),
    [
        ({"isCentralized": True}, [("isCentralized", "is not a known field")]),
        (
            {"id": "x", "organizationId": BETA, "colour": "red"},
            [(name, "is not a known field") for name in ("id", "organizationId", "colour")],
        ),
        ({"name": None, "version": 2}, [("version", "must be a string"), ("name", "must be a string")]),
        ({"name": ""}, [("name", "must have at least 1 character")]),
        (
            {"publishedAt": "soon"},
            [("publishedAt", "must be a date, such as 2026-11-20, or an RFC 3339 date-time with an offset")],
        ),
    ],
)
def test_what_a_patch_must_not_say(ask: Asked, body: dict[str, Any], faults: list[tuple[str, str]]) -> None:
    assert sorted(ask.faults("PATCH", "/frameworks/fw-own/", body)) == sorted(faults)


def test_what_a_new_one_needs(ask: Asked) -> None:
    found = ask.faults("POST", "/frameworks/", {"isCentralized": True, "lastSyncAt": "2026-01-01"})
    assert sorted(found) == [
        ("isCentralized", "is not a known field"),
        ("lastSyncAt", "is not a known field"),
        ("name", "is required"),
        ("organizationId", "is required"),
    ]


@pytest.mark.parametrize(
    ("framework_id", "status"),
    [("fw-sun", 403), ("fw-star", 403), ("fw-old", 404), ("fw-foreign", 404), ("nothing", 404)],
)
@on_both
def test_only_ones_own_can_be_changed(ask: Asked, database: Database, framework_id: str, status: int) -> None:
    """A centralized one that can be seen stays as it is; what cannot be seen does not exist."""
    before = stored.everything(database)
    assert ask.refused("PATCH", f"/frameworks/{framework_id}/", {"name": "Mine"}) == status
    assert stored.everything(database) == before


def test_whoever_is_at_home_elsewhere_changes_nothing_here(ask: Asked, database: Database) -> None:
    before = stored.everything(database)
    for organization_id in (ALPHA, BETA):
        query = {"organizationId": organization_id}
        assert ask.refused("PATCH", "/frameworks/fw-own/", {"name": "X"}, user="foreigner", **query) == 404
    assert ask.refused("POST", "/frameworks/", BOAT, user="foreigner") == 404
    for user in ("editor", "viewer"):
        assert ask.refused("PATCH", "/frameworks/fw-own/", {"name": "X"}, user=user) == 403
        assert ask.refused("POST", "/frameworks/", BOAT, user=user) == 403
    assert stored.everything(database) == before


@on_both
def test_who_is_a_member_of_both_cannot_reach_one_through_the_other(ask: Asked, database: Database, add: Any) -> None:
    add({"memberships": [{"id": "both", "organizationId": ALPHA, "userId": "user-foreigner", "role": "owner"}]})
    assert ask.refused("PATCH", "/frameworks/fw-foreign/", {"name": "X"}, user="foreigner") == 404
    assert ask.done("PATCH", "/frameworks/fw-own/", {"name": "X"}, user="foreigner")["name"] == "X"
    assert stored.row(database, Framework, "fw-foreign")["name"] == "Beta's own"
