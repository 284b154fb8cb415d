"""Conflicts, and what an excluded group takes with it, over HTTP: found in the transaction that makes them."""

from __future__ import annotations

from typing import Any

import pytest

from normata.core.db.database import Database
from normata.notifications.model import Notification
from tests import mostly_sqlite, stored
from tests.coverage.assessing import Stating, assert_consistent, done, faults
from tests.databases import on_both
from tests.world import ALPHA, load

database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url


def in_conflict(alpha: Stating) -> dict[str, str]:
    """The controls that are in conflict, and how."""
    return {item["id"]: item["conflict"] for item in listed(alpha, isInConflict="true")}


def listed(alpha: Stating, **query: str) -> list[dict[str, Any]]:
    """The controls that the list of coverage has."""
    answer = alpha.client.get("/coverage/", params={"organizationId": ALPHA, **query}, headers=alpha.headers)
    items: list[dict[str, Any]] = done(answer)["items"]
    return items


def notified(database: Database) -> list[tuple[str, str]]:
    """Who was notified of a conflict, and of which control first."""
    rows = [row for row in stored.rows(database, Notification) if row["type"] == "coverage.conflict"]
    return sorted((row["user_id"], row["payload"]["entityId"]) for row in rows)


@on_both
def test_less_than_a_match_gives(alpha: Stating, database: Database) -> None:
    """The world has a FULL match from sun.A.1, which is FULL, to moon.A.1."""
    assert in_conflict(alpha) == {}
    done(alpha.put("moon.A.1", coverageStatus="NONE", coverageGap="All of it.", ownerId="member-viewer"))
    assert in_conflict(alpha) == {"moon.A.1": "MATCHES"}
    assert notified(database) == [("user-viewer", "moon.A.1")]
    assert_consistent(database)
    done(alpha.patch({"controlId": "moon.A.1", "coverageStatus": "PARTIAL"}))
    assert in_conflict(alpha) == {"moon.A.1": "MATCHES"}
    assert len(notified(database)) == 1, "it is the same conflict"
    done(alpha.patch({"controlId": "sun.A.1", "coverageStatus": "PARTIAL"}))
    assert in_conflict(alpha) == {}
    done(alpha.patch({"controlId": "sun.A.1", "coverageStatus": "FULL"}))
    assert in_conflict(alpha) == {"moon.A.1": "MATCHES"}
    done(alpha.patch({"controlId": "moon.A.1", "coverageStatus": None}))
    assert in_conflict(alpha) == {}
    assert_consistent(database)


@on_both
def test_a_group_that_is_full_over_what_is_less(alpha: Stating, database: Database) -> None:
    done(alpha.delete("sun.A.2"))  # it was PARTIAL
    done(alpha.put("sun.A", coverageStatus="FULL"))
    assert in_conflict(alpha) == {}, "what is not assessed says nothing against it"
    done(alpha.put("sun.A.5", coverageStatus="PARTIAL"))
    assert in_conflict(alpha) == {"sun.A": "BELOW"}
    done(alpha.patch({"controlId": "sun.A.5", "isApplicable": False, "justification": "No premises."}))
    assert in_conflict(alpha) == {}
    assert_consistent(database)


@on_both
def test_an_excluded_group_takes_its_requirements_with_it_but_for_mandatory_ones(
    alpha: Stating, database: Database
) -> None:
    assert alpha.effective()["sun.A.3"] == "FULL"
    done(alpha.put("sun.A", isApplicable=False, justification="No premises."))
    below = [item for item in listed(alpha, frameworks="fw-sun") if item["parentId"] == "sun.A"]
    assert {item["isApplicable"] for item in below} == {True, False}
    assert all(item["isApplicable"] is item["isMandatory"] for item in below)
    assert (alpha.effective()["sun.A"], alpha.effective()["sun.A.3"]) == ("NONE", "NONE")
    assert_consistent(database)
    done(alpha.patch({"controlId": "sun.A.3", "isApplicable": True}))
    assert alpha.effective()["sun.A.3"] == "FULL"
    done(alpha.delete("sun.A"))
    assert all(item["isApplicable"] for item in listed(alpha, frameworks="fw-sun"))
    assert_consistent(database)


@pytest.mark.parametrize("way", ["put", "patch"])
def test_a_mandatory_control_cannot_be_excluded(way: str, alpha: Stating, database: Database) -> None:
    load(database, {"controls": [{"id": "sun.A.5", "isMandatory": True}]})
    said: dict[str, Any] = {"isApplicable": False, "justification": "No premises."}
    response = alpha.put("sun.A.5", **said) if way == "put" else alpha.patch({"controlId": "sun.A.5", **said})
    assert [(name.split("/")[-1], message) for name, message in faults(response)] == [
        ("isApplicable", "cannot be false: the framework makes it mandatory")
    ]
