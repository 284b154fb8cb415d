"""Matches that an organization makes for itself, and takes back."""

from __future__ import annotations

from typing import Any

import pytest

from normata.core.db.database import Database
from normata.frameworks.model import ControlMatch
from tests import stored
from tests.databases import on_both
from tests.own_frameworks.conftest import Asked
from tests.own_frameworks.test_controls import is_current
from tests.world import ALPHA, BETA

WHY = "Both ask for the same register."


def match(source: str, target: str, level: str = "FULL", **fields: Any) -> dict[str, Any]:
    return {"sourceControlId": source, "targetControlId": target, "matchLevel": level, "justification": WHY} | fields


def body(*matches: dict[str, Any], organization_id: str = ALPHA) -> dict[str, Any]:
    return {"organizationId": organization_id, "matches": list(matches)}


def status(ask: Asked, control: str) -> str:
    """The effective status of a control, as the kept list has it."""
    items = ask.done("GET", "/controls/", limit="100")["items"]
    return str(next(item for item in items if item["id"] == control)["effectiveCoverageStatus"])


@on_both
def test_coverage_follows_at_once_and_is_taken_back(ask: Asked, database: Database) -> None:
    assert status(ask, "moon.A.9") == "NONE"
    [made] = ask.done("POST", "/matches/", body(match("sun.A.1", "moon.A.9")), user="editor")["items"]
    assert (made["organizationId"], made["matchLevel"], made["justification"]) == (ALPHA, "FULL", WHY)
    assert made["sourceControl"] == {
        "id": "sun.A.1",
        "identifier": "A.1",
        "name": "sun control 1",
        "slug": "a-1-sun-control-1",
        "framework": {"id": "fw-sun", "name": "Sun Standard", "identifier": "SUN-2", "identifierColor": None},
    }
    assert made["targetControl"]["framework"]["identifierColor"] == "#123456"
    assert status(ask, "moon.A.9") == "FULL"
    assert is_current(database)
    assert ask.done("DELETE", f"/matches/{made['id']}/", user="editor") is None
    assert status(ask, "moon.A.9") == "NONE"
    assert is_current(database)
    assert ask.refused("DELETE", f"/matches/{made['id']}/") == 404
    events = stored.events(database, entity_id=made["id"])
    assert [(event["action"], event["entity_type"]) for event in events] == [
        ("create", "ControlMatch"),
        ("delete", "ControlMatch"),
    ]


def test_matches_are_counted_between_adopted_frameworks(ask: Asked) -> None:
    """Both ways, with the organization's own, without those that it has set aside."""

    def counted() -> dict[tuple[str, str], int]:
        items = ask.done("GET", "/match-counts/")["items"]
        assert [item["matches"] for item in items] == sorted((item["matches"] for item in items), reverse=True)
        return {(item["sourceFrameworkId"], item["targetFrameworkId"]): item["matches"] for item in items}

    before = counted()
    assert before["fw-sun", "fw-moon"] > 0
    assert {"fw-star", "fw-foreign"}.isdisjoint(framework for pair in before for framework in pair)
    made = ask.done("POST", "/matches/", body(match("sun.A.9", "moon.A.9"), match("moon.A.9", "sun.A.9")))["items"]
    pairs = ("fw-sun", "fw-moon"), ("fw-moon", "fw-sun")
    assert counted() == before | {pair: before.get(pair, 0) + 1 for pair in pairs}
    why = {"justification": WHY}
    for one in made:
        ask.done("PUT", f"/matches/{one['id']}/set-aside/", why, user="editor")
    assert counted() == before


def test_between_the_same_controls_the_stronger_one_counts(ask: Asked) -> None:
    assert status(ask, "moon.A.3") == "PARTIAL"
    ask.done("POST", "/matches/", body(match("sun.A.3", "moon.A.3", "FULL"), match("sun.A.1", "moon.A.1", "PARTIAL")))
    assert (status(ask, "moon.A.3"), status(ask, "moon.A.1")) == ("FULL", "FULL")


@on_both
def test_it_is_nobody_elses(ask: Asked, database: Database, add: Any) -> None:
    frameworks = ("fw-sun", "fw-moon")
    add(
        {
            "frameworkAdoptions": [
                {"id": f"beta-{name}", "organizationId": BETA, "frameworkId": name} for name in frameworks
            ],
            "controlCoverages": [
                {"id": "say", "organizationId": BETA, "controlId": "sun.A.1", "coverageStatus": "FULL"}
            ],
        }
    )
    [made] = ask.done("POST", "/matches/", body(match("sun.A.1", "moon.A.9")))["items"]
    theirs = {"user": "foreigner", "organizationId": BETA}
    items = {item["id"]: item for item in ask.done("GET", "/controls/", limit="100", **theirs)["items"]}
    assert items["moon.A.9"]["effectiveCoverageStatus"] == "NONE"
    assert items["moon.A.9"]["sourceMatches"] == []
    for published in ("true", "false"):
        listed = ask.done("GET", "/matches/", published=published, limit="100", **theirs)["items"]
        assert made["id"] not in {item["id"] for item in listed}
    assert ask.refused("DELETE", f"/matches/{made['id']}/", **theirs) == 404
    assert ask.refused("DELETE", f"/matches/{made['id']}/", user="foreigner") == 404
    assert stored.row(database, ControlMatch, made["id"])["organization_id"] == ALPHA
    assert is_current(database, BETA)


def test_the_controls_are_any_in_sight(ask: Asked, database: Database) -> None:
    """Centralized or own, adopted or not; a framework that is not adopted only gives no coverage."""
    pairs = [("own.A.3", "star.A.1"), ("star.A.1", "own.A.3"), ("star.A.2", "star.A.3"), ("own.A", "own.A.1")]
    made = ask.done("POST", "/matches/", body(*(match(*pair) for pair in pairs)))["items"]
    assert [(one["sourceControl"]["id"], one["targetControl"]["id"]) for one in made] == pairs
    assert is_current(database)


def test_every_fault_is_told_and_nothing_is_kept(ask: Asked, database: Database) -> None:
    before = stored.everything(database)
    given = [
        match("sun.A.1", "moon.A.9"),
        match("sun.A.1", "moon.A.9", "PARTIAL"),
        match("foreign.A.1", "nothing"),
        match("sun.A.1", "sun.A.1"),
        match("own.A.1", "moon.A.1"),
        match("sun.A.4", "moon.A.4", justification=" \n"),
    ]
    assert dict(ask.faults("POST", "/matches/", body(*given))) == {
        "matches/1": "matches the same controls as matches/0",
        "matches/2/sourceControlId": "names no control that the organization can see",
        "matches/2/targetControlId": "names no control that the organization can see",
        "matches/3/targetControlId": "is the source itself",
        "matches/4": "is there already: 'own.A.1->moon.A.1'; to change it, delete that one first",
        "matches/5/justification": "is required: say why, for an auditor",
    }
    assert stored.everything(database) == before


def test_the_form_of_each_is_checked(ask: Asked) -> None:
    given = [match("a", "b", "NONE"), {"sourceControlId": 7, "organizationId": BETA}]
    assert sorted(name for name, _ in ask.faults("POST", "/matches/", body(*given))) == [
        "matches/0/matchLevel",
        "matches/1/justification",
        "matches/1/matchLevel",
        "matches/1/organizationId",
        "matches/1/sourceControlId",
        "matches/1/targetControlId",
    ]


def test_a_control_that_only_others_see_is_as_one_that_is_not_there(ask: Asked, add: Any) -> None:
    """Also for a member of both organizations, and for a framework that is not active."""
    add(
        {
            "memberships": [{"id": "both", "organizationId": BETA, "userId": "user-admin", "role": "owner"}],
            "controls": [{"id": "old.A", "frameworkId": "fw-old", "name": "Old"}],
        }
    )
    for hidden in ("foreign.A.1", "old.A", "nothing"):
        found = ask.faults("POST", "/matches/", body(match("own.A.1", hidden)))
        assert found == [("matches/0/targetControlId", "names no control that the organization can see")]


@pytest.mark.parametrize(
    ("match_id", "expected"),
    [("sun.A.1->moon.A.1", 403), ("star.A.4->moon.A.4", 403), ("foreign.A.1->star.A.1", 404), ("nothing", 404)],
)
@on_both
def test_only_ones_own_can_be_deleted(ask: Asked, database: Database, match_id: str, expected: int) -> None:
    before = stored.everything(database)
    assert ask.refused("DELETE", f"/matches/{match_id}/") == expected
    assert ask.refused("DELETE", f"/matches/{match_id}/", user="viewer") == 403
    assert ask.refused("POST", "/matches/", body(match("sun.A.1", "moon.A.9")), user="viewer") == 403
    assert ask.refused("POST", "/matches/", body(match("sun.A.1", "moon.A.9")), user="foreigner") == 404
    assert stored.everything(database) == before


def listed(ask: Asked, **query: str) -> list[str]:
    return [item["id"] for item in ask.done("GET", "/matches/", user="viewer", limit="100", **query)["items"]]


def test_the_list(ask: Asked) -> None:
    own = ["own.A.1->moon.A.1", "moon.A.1->own.A.2"]
    published = ["sun.A.1->moon.A.1", "sun.A.2->moon.A.2", "sun.A.3->moon.A.3", "star.A.4->moon.A.4"]
    assert listed(ask) == own
    assert listed(ask, control="own.A.2") == own[1:]
    assert listed(ask, control="sun.A.1") == []
    assert sorted(listed(ask, published="true")) == sorted(own + published)
    assert sorted(listed(ask, published="true", control="moon.A.1")) == sorted([*own, published[0]])
    assert listed(ask, control="foreign.A.1") == listed(ask, control="nothing") == []
    assert listed(ask, organizationId="alpha") == own
