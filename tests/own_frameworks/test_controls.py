"""Controls that an organization adds to its own frameworks, and changes."""

from __future__ import annotations

from typing import Any

import pytest

from normata.core.db.database import Database
from normata.coverage.recompute import current_coverage, stored_coverage
from normata.frameworks.model import Control, Framework
from tests import stored
from tests.databases import on_both
from tests.own_frameworks.conftest import Asked
from tests.world import ALPHA, BETA

CIRCLE = "leads round in a circle: the control has an ancestor that is its own ancestor"
OWN = "/frameworks/fw-own/controls/"


def order(ask: Asked) -> list[str]:
    """The identifiers of the organization's own framework, in catalog order."""
    return [one["identifier"] for one in ask.done("GET", "/controls/", frameworks="fw-own")["items"]]


def places(database: Database, framework_id: str = "fw-own") -> list[int]:
    """The places of a framework's controls, which have to be 0, 1, 2…"""
    return sorted(row["position"] for row in stored.rows(database, Control, framework_id=framework_id))


def is_current(database: Database, organization_id: str = ALPHA) -> bool:
    """Whether the stored coverage is what follows from what is stored."""
    return database.read_now(
        lambda transaction: (
            stored_coverage(transaction, organization_id) == current_coverage(transaction, organization_id)
        )
    )


@on_both
def test_many_come_in_order_with_parents_by_identifier_and_by_id(ask: Asked, database: Database) -> None:
    made = ask.done(
        "POST",
        OWN,
        {
            "controls": [
                {"identifier": "B.1", "name": "Child first", "parent": "B"},
                {"identifier": "B", "name": "Parent", "type": "CATEGORY", "purpose": "P", "description": "D"},
                {"identifier": "A.13", "name": "By identifier", "parent": "A", "isMandatory": True, "slug": "thirteen"},
                {"identifier": "A.14", "name": "By id", "parentId": "own.A"},
            ]
        },
    )["items"]
    assert [one["identifier"] for one in made] == ["B.1", "B", "A.13", "A.14"]
    assert [one["parentId"] for one in made] == [made[1]["id"], None, "own.A", "own.A"]
    assert [one["type"] for one in made] == ["CONTROL", "CATEGORY", "CONTROL", "CONTROL"]
    assert {(one["frameworkId"], one["isCentralized"]) for one in made} == {("fw-own", False)}
    assert (made[1]["purpose"], made[1]["description"], made[2]["slug"]) == ("P", "D", "thirteen")
    assert order(ask)[-4:] == ["B.1", "B", "A.13", "A.14"]
    assert places(database) == list(range(17))
    assert stored.row(database, Framework, "fw-own")["control_count"] == 17
    assert ask.done("GET", "/frameworks/fw-own/")["_count"] == {"controls": 17}
    assert is_current(database)
    events = stored.events(database, entity_type="Control", action="create")
    assert {event["entity_id"] for event in events} == {one["id"] for one in made}


@on_both
def test_the_roll_up_of_a_parent_follows(ask: Asked, database: Database) -> None:
    """A new child that is not covered takes away what followed from the other children alone."""
    covered = [f"own.A.{number}" for number in range(1, 13)]
    for control in covered:
        body = {"organizationId": ALPHA, "coverageStatus": "FULL"}
        assert ask.client.put(f"/controls/{control}/coverage/", json=body, headers=ask.headers["editor"]).is_success
    assert ask.done("GET", "/controls/own.A/")["effectiveCoverageStatus"] == "FULL"
    [made] = ask.done("POST", OWN, {"controls": [{"identifier": "A.13", "name": "New", "parent": "A"}]})["items"]
    assert ask.done("GET", "/controls/own.A/")["effectiveCoverageStatus"] == "PARTIAL"
    ask.done("PATCH", f"/controls/{made['id']}/", {"parentId": None})
    assert ask.done("GET", "/controls/own.A/")["effectiveCoverageStatus"] == "FULL"
    assert is_current(database)


def test_a_framework_that_nobody_has_adopted_can_be_filled(ask: Asked) -> None:
    framework = ask.done("POST", "/frameworks/", {"organizationId": ALPHA, "name": "Boat"})
    address = f"/frameworks/{framework['id']}/controls/"
    for number in range(2):
        given = {"identifier": f"{number}", "name": f"Control {number}", "parent": "0" if number else None}
        [made] = ask.done("POST", address, {"controls": [given]})["items"]
    assert made["parentId"] is not None
    assert ask.done("GET", f"/frameworks/{framework['id']}/")["_count"] == {"controls": 2}


@pytest.mark.parametrize(
    ("after", "expected"),
    [(None, ["X", "Y", "A", "A.1"]), ("own.A", ["A", "X", "Y", "A.1"]), ("own.A.12", ["A", "A.1", "A.2", "A.3"])],
)
def test_they_can_be_put_anywhere(ask: Asked, database: Database, after: str | None, expected: list[str]) -> None:
    new = [{"identifier": name, "name": name} for name in "XY"]
    ask.done("POST", OWN, {"controls": new, "after": after})
    assert order(ask)[:4] == expected
    assert places(database) == list(range(15))


@pytest.mark.parametrize(
    ("control", "after", "expected"),
    [
        ("own.A.3", None, ["A.3", "A", "A.1", "A.2", "A.4"]),
        ("own.A.1", "own.A.3", ["A", "A.2", "A.3", "A.1", "A.4"]),
        ("own.A.3", "own.A", ["A", "A.3", "A.1", "A.2", "A.4"]),
        ("own.A.1", "own.A.1", ["A", "A.1", "A.2", "A.3", "A.4"]),
        ("own.A.1", "own.A", ["A", "A.1", "A.2", "A.3", "A.4"]),
        ("own.A.2", "own.A.12", ["A", "A.1", "A.3", "A.4", "A.5"]),
    ],
)
@on_both
def test_one_can_be_moved(ask: Asked, database: Database, control: str, after: str | None, expected: list[str]) -> None:
    ask.done("PATCH", f"/controls/{control}/", {"after": after})
    found = order(ask)
    assert found[:5] == expected
    assert sorted(found) == sorted(["A", *(f"A.{number}" for number in range(1, 13))])
    assert places(database) == list(range(13))


def test_a_patch_changes_what_it_has(ask: Asked, database: Database) -> None:
    before = ask.done("PATCH", "/controls/own.A.7/", {})
    given = {"name": "Renamed", "identifier": "A.7b", "purpose": None, "isMandatory": True, "type": "CATEGORY"}
    after = ask.done("PATCH", "/controls/own.A.7/", given)
    assert after == before | given | {"updatedAt": after["updatedAt"]}
    assert after["updatedAt"] > before["updatedAt"]
    assert ask.done("GET", "/controls/", search="Renamed")["total"] == 1
    events = stored.events(database, entity_id="own.A.7")
    assert [event["action"] for event in events] == ["update"]


def test_every_fault_is_told_with_its_place_and_nothing_is_kept(ask: Asked, database: Database) -> None:
    before = stored.everything(database)
    given: list[dict[str, Any]] = [
        {"identifier": "A.1", "name": "Taken"},
        {"identifier": "N", "name": "No such parent", "parent": "Z"},
        {"identifier": "N", "name": "Repeated"},
        {"identifier": "O", "name": "Both", "parent": "A", "parentId": "own.A"},
        {"identifier": "P", "name": "Foreign", "parentId": "sun.A"},
        {"identifier": "Q", "name": "Hidden", "parentId": "foreign.A"},
        {"identifier": "R", "name": "Circle", "parent": "S"},
        {"identifier": "S", "name": "Circle", "parent": "R"},
    ]
    found = dict(ask.faults("POST", OWN, {"controls": given, "after": "sun.A"}))
    assert found == {
        "after": "names no control of this framework",
        "controls/0/identifier": "is taken by the control 'own.A.1' of this framework",
        "controls/1/parent": "is the identifier of no control of this request or framework",
        "controls/2/identifier": "is the same as that of controls/1",
        "controls/3/parent": "is said twice: by parent and by parentId",
        "controls/4/parentId": "names a control of another framework",
        "controls/5/parentId": "names no control that exists",
        "controls/6/parent": CIRCLE,
        "controls/7/parent": CIRCLE,
    }
    assert stored.everything(database) == before


def test_the_form_of_each_is_checked(ask: Asked) -> None:
    given = [{"identifier": "X"}, {"identifier": 7, "name": "", "isCentralized": True, "type": "THING"}]
    assert sorted(name for name, _ in ask.faults("POST", OWN, {"controls": given})) == [
        "controls/0/name",
        "controls/1/identifier",
        "controls/1/isCentralized",
        "controls/1/name",
        "controls/1/type",
    ]
    assert ask.faults("POST", OWN, {"controls": []})[0][0] == "controls"
    many = [{"identifier": str(number), "name": "N"} for number in range(501)]
    assert ask.faults("POST", OWN, {"controls": many})[0][0] == "controls"
    assert len(ask.done("POST", OWN, {"controls": many[:500]})["items"]) == 500


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"identifier": "A.1"}, ("identifier", "is taken by the control 'own.A.1' of this framework")),
        ({"parent": "A.99"}, ("parent", "is the identifier of no control of this request or framework")),
        (
            {"parent": "A.7"},
            ("parent", CIRCLE),
        ),
        ({"after": "moon.A"}, ("after", "names no control of this framework")),
        ({"name": None}, ("name", "must be a string")),
        ({"frameworkId": "fw-sun"}, ("frameworkId", "is not a known field")),
    ],
)
def test_what_a_patch_must_not_say(ask: Asked, given: dict[str, Any], fault: tuple[str, str]) -> None:
    assert ask.faults("PATCH", "/controls/own.A.7/", given) == [fault]


@pytest.mark.parametrize(
    ("row", "status"),
    [("sun", 403), ("star", 403), ("foreign", 404), ("nothing", 404)],
)
def test_only_those_of_ones_own_frameworks(ask: Asked, database: Database, row: str, status: int) -> None:
    before = stored.everything(database)
    new = {"controls": [{"identifier": "X", "name": "X"}]}
    assert ask.refused("POST", f"/frameworks/fw-{row}/controls/", new) == status
    assert ask.refused("PATCH", f"/controls/{row}.A.1/", {"name": "X"}) == status
    for user, query, expected in (("editor", ALPHA, 403), ("foreigner", ALPHA, 404), ("foreigner", BETA, 404)):
        assert ask.refused("POST", OWN, new, user=user, organizationId=query) == expected
        assert ask.refused("PATCH", "/controls/own.A.1/", {"name": "X"}, user=user, organizationId=query) == expected
    assert stored.everything(database) == before
