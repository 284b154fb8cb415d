"""Matches that an organization makes for itself: it alone sees them, and nobody else's coverage follows from them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import select

from normata.bundle.dumping import dump
from normata.core.changes.source import FaultyInput
from normata.core.db.database import Database
from normata.coverage.recompute import stored_coverage
from normata.frameworks.model import ControlMatch
from tests import world
from tests.listing import Listing
from tests.world import ALPHA, BETA

OWN = {
    "id": "mine",
    "organizationId": ALPHA,
    "sourceControlId": "sun.A.1",
    "targetControlId": "moon.A.9",
    "matchLevel": "FULL",
    "justification": "Both ask for the same register.",
}
# Beta adopts the same frameworks and says the same of the same control.
BETAS = {
    "frameworkAdoptions": [
        {"id": f"beta-{name}", "organizationId": BETA, "frameworkId": name} for name in ("fw-sun", "fw-moon")
    ],
    "controlCoverages": [{"id": "beta-say", "organizationId": BETA, "controlId": "sun.A.1", "coverageStatus": "FULL"}],
}


def faults(database: Database, document: dict[str, Any]) -> list[str]:
    with pytest.raises(FaultyInput) as caught:
        world.load(database, document)
    return [f"{fault.place}: {fault.reason}" for fault in caught.value.faults]


def owner(database: Database, match_id: str) -> str | None:
    statement = select(ControlMatch.organization_id).where(ControlMatch.id == match_id)
    found: str | None = database.read_now(lambda transaction: transaction.scalar(statement))
    return found


def status(database: Database, organization_id: str, control: str) -> str:
    coverage = database.read_now(lambda transaction: stored_coverage(transaction, organization_id))
    return coverage[control].effective.name


def test_coverage_follows_for_its_organization_alone(database: Database) -> None:
    world.load(database, BETAS)
    world.load(database, {"controlMatches": [OWN]})
    assert owner(database, "mine") == ALPHA
    assert (status(database, ALPHA, "moon.A.9"), status(database, BETA, "moon.A.9")) == ("FULL", "NONE")
    world.load(database, {"controlMatches": [OWN | {"targetControlId": "moon.A.10"}]})
    assert (status(database, ALPHA, "moon.A.9"), status(database, ALPHA, "moon.A.10")) == ("NONE", "FULL")
    world.load(database, {"controlMatches": [OWN | {"id": "betas", "organizationId": BETA}]})
    assert (status(database, ALPHA, "moon.A.9"), status(database, BETA, "moon.A.9")) == ("NONE", "FULL")


def test_the_stronger_of_two_between_the_same_controls_counts(database: Database) -> None:
    published = {"id": "sun.A.3->moon.A.3", "sourceControlId": "sun.A.3", "targetControlId": "moon.A.3"}
    assert status(database, ALPHA, "moon.A.3") == "PARTIAL"
    world.load(database, {"controlMatches": [OWN | published | {"id": "mine"}]})
    assert status(database, ALPHA, "moon.A.3") == "FULL"


def test_the_list_shows_it_to_its_organization_alone(
    listing: Callable[..., Listing], add: Callable[[dict[str, Any]], None]
) -> None:
    add(BETAS | {"controlMatches": [OWN]})

    def matches(user: str, organization_id: str) -> set[str]:
        items = listing("/controls/", user).items(organizationId=organization_id, limit=100)
        [item] = (item for item in items if item["id"] == "moon.A.9")
        assert all(list(match) == ["id", "matchLevel", "matchedControl"] for match in item["sourceMatches"])
        return {match["id"] for match in item["sourceMatches"]}

    assert matches("viewer", ALPHA) == {"mine"}
    assert matches("foreigner", BETA) == set()


def test_a_dump_has_it_for_its_organization_alone(database: Database) -> None:
    """With the frameworks of its controls, adopted or not."""
    world.load(database, BETAS)
    world.load(database, {"controlMatches": [OWN, OWN | {"id": "other", "targetControlId": "star.A.2"}]})

    def dumped(organization_id: str) -> dict[str, list[dict[str, Any]]]:
        file = io.StringIO()
        database.read_now(lambda transaction: dump(transaction, organization_id, file))
        document: dict[str, list[dict[str, Any]]] = json.loads(file.getvalue())
        return document

    documents = dict.fromkeys(("mappingDocumentId", "retiredAt", "rationale", "strength"))  # what no document gives
    assert OWN | documents in dumped(ALPHA)["controlMatches"]
    assert {match["id"] for match in dumped(ALPHA)["controlMatches"]} >= {"mine", "other"}
    assert "fw-star" in {framework["id"] for framework in dumped(ALPHA)["frameworks"]}
    assert not {match["id"] for match in dumped(BETA)["controlMatches"]} & {"mine", "other"}
    assert ALPHA not in json.dumps(dumped(BETA))


@pytest.mark.parametrize(
    ("match", "reason"),
    [
        ({"organizationId": "nobody"}, "organizationId: names no organization that exists"),
        (
            {"targetControlId": "foreign.A.1"},
            "organizationId: is not the organization that one of the controls belongs to",
        ),
        (
            {"sourceControlId": "own.A.1", "organizationId": BETA},
            "organizationId: is not the organization that one of the controls belongs to",
        ),
    ],
)
def test_whose_it_can_be(database: Database, match: dict[str, Any], reason: str) -> None:
    assert faults(database, {"controlMatches": [OWN | match]}) == [f"/controlMatches/0/{reason}"]


@pytest.mark.parametrize(
    ("match_id", "change", "stored"),
    [
        ("mine", {"organizationId": None}, ALPHA),
        ("mine", {"organizationId": BETA}, ALPHA),
        ("sun.A.1->moon.A.1", {"organizationId": BETA}, None),
        ("sun.A.1->moon.A.1", {"sourceControlId": "own.A.1"}, None),
        ("own.A.1->moon.A.1", {"sourceControlId": "foreign.A.1"}, ALPHA),
    ],
)
def test_it_never_changes_hands(database: Database, match_id: str, change: dict[str, Any], stored: str | None) -> None:
    world.load(database, {"controlMatches": [OWN]})
    assert owner(database, match_id) == stored
    found = faults(database, {"controlMatches": [{"id": match_id, **change}]})
    assert all("organization" in fault for fault in found)
    assert len(found) == 1
    assert owner(database, match_id) == stored


def test_it_stays_its_organizations_when_its_controls_are_everybodys(database: Database) -> None:
    world.load(database, {"controlMatches": [{"id": "own.A.1->moon.A.1", "sourceControlId": "sun.A.5"}]})
    assert owner(database, "own.A.1->moon.A.1") == ALPHA
