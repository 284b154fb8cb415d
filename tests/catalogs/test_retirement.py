"""Matches that a newer version of their mapping does not have any more."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import update

from normata.core.db.database import Database
from normata.frameworks.model import ControlMatch, MappingDocument
from tests import stored
from tests.catalogs.test_centralized_imports import FRAMEWORK, LIBRARY, PIERS, Operator
from tests.client import TestClient
from tests.coverage.assessing import Stating, assert_consistent, done
from tests.world import ALPHA

SOURCE, TARGET, OTHER = "urn:docks:1.1", "urn:piers:1", "urn:docks:1"


def mapping(*pairs: tuple[str, str], version: int, library: str = "map", relationship: str = "equal") -> dict[str, Any]:
    """A mapping from the docks to the piers."""
    mappings = [
        {
            "source_requirement_urn": source,
            "target_requirement_urn": target,
            "relationship": relationship,
            "rationale": "semantic",
            "strength_of_relationship": "8",
        }
        for source, target in pairs
    ]
    sets = {"source_framework_urn": FRAMEWORK, "target_framework_urn": "urn:piers", "requirement_mappings": mappings}
    return {
        "urn": f"urn:docks:{library}",
        "name": "Docks to piers",
        "version": str(version),
        "objects": {"requirement_mapping_set": sets},
    }


BOTH = mapping((SOURCE, TARGET), (OTHER, TARGET), version=1)
LESS = mapping((OTHER, TARGET), version=2)


@pytest.fixture
def operator(client: TestClient, bearer: Callable[..., dict[str, str]]) -> Operator:
    return Operator(client, bearer("operator", scope="admin"))


@pytest.fixture
def piers(operator: Operator, alpha: Stating) -> None:
    """Alpha covers the piers by a rule of the docks, and by nothing else."""
    library = copy.deepcopy(LIBRARY)
    library["objects"]["framework"]["requirement_nodes"][1]["parent_urn"] = None
    for one in (library, PIERS, BOTH):
        done(operator.send(one))
    for framework in (FRAMEWORK, "urn:piers"):
        assert alpha.adopt(framework).is_success
    done(alpha.put(SOURCE, coverageStatus="FULL"))
    assert alpha.effective()[TARGET] == "FULL"


def inbox(alpha: Stating) -> list[str]:
    answer = alpha.client.get("/notifications/", params={"organizationId": ALPHA}, headers=alpha.headers)
    return [one["type"] for one in answer.json()["items"]]


@pytest.mark.usefixtures("piers")
def test_they_count_no_more_and_the_older_version_brings_them_back(
    operator: Operator, alpha: Stating, database: Database
) -> None:
    planned = done(operator.send(LESS, dryRun="true"))["answer"]
    result = done(operator.send(LESS))
    assert planned == result
    assert (result["retired"], result["returned"], result["controlMatches"]["changed"]) == (2, 0, 2)
    ends = {(one["sourceControlId"], one["targetControlId"]) for one in result["firstRetired"]}
    assert ends == {(SOURCE, TARGET), (TARGET, SOURCE)}
    assert alpha.effective()[TARGET] == "NONE"
    assert_consistent(database, ALPHA)
    [document] = stored.rows(database, MappingDocument)
    assert (document["document"], document["version"]) == ("urn:docks:map", "2")
    assert done(operator.send(LESS))["retired"] == 0
    back = done(operator.send(BOTH))
    assert (back["retired"], back["returned"]) == (0, 2)
    assert alpha.effective()[TARGET] == "FULL"
    assert_consistent(database, ALPHA)


@pytest.mark.usefixtures("piers")
def test_admins_are_notified_of_what_they_lose(operator: Operator, alpha: Stating) -> None:
    assert "coverage.lost" not in inbox(alpha)
    done(operator.send(LESS))
    assert inbox(alpha).count("coverage.lost") == 1


@pytest.mark.usefixtures("piers")
def test_a_pair_counts_while_one_mapping_has_it(operator: Operator, alpha: Stating, database: Database) -> None:
    done(operator.send(mapping((SOURCE, TARGET), version=1, library="other")))
    assert done(operator.send(LESS))["retired"] == 2
    assert alpha.effective()[TARGET] == "FULL"
    done(operator.send(mapping((OTHER, TARGET), version=2, library="other")))
    assert alpha.effective()[TARGET] == "NONE"
    assert_consistent(database, ALPHA)


@pytest.mark.usefixtures("piers")
def test_matches_without_a_document_are_found_by_their_ids(
    operator: Operator, alpha: Stating, database: Database
) -> None:
    """So were all stored before documents were; one that nobody can assign stays."""
    forget = update(ControlMatch).values(mapping_document_id=None, rationale=None)
    database.write_now(lambda transaction: transaction.rows(forget))
    assert done(operator.send(LESS))["retired"] == 2
    found = {row["id"]: row for row in stored.rows(database, ControlMatch)}
    of_docks = [row for row in found.values() if row["source_control_id"].startswith("urn:")]
    assert {row["mapping_document_id"] for row in of_docks} == {stored.rows(database, MappingDocument)[0]["id"]}
    assert {row["mapping_document_id"] for row in found.values() if row not in of_docks} == {None}
    assert all(row["retired_at"] is None for row in found.values() if row not in of_docks)
    assert alpha.effective()[TARGET] == "NONE"


@pytest.mark.usefixtures("piers")
def test_rationale_and_strength_are_kept_and_shown(operator: Operator, alpha: Stating) -> None:
    del operator
    query = {"organizationId": ALPHA, "published": "true", "control": SOURCE}
    items = alpha.client.get("/matches/", params=query, headers=alpha.headers).json()["items"]
    assert {(one["rationale"], one["strength"], one["mapping"]["version"]) for one in items} == {("semantic", "8", "1")}
