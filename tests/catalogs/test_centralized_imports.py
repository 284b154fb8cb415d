"""Catalogs that an operator imports for all: what becomes of the organizations that have adopted them."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from httpx2 import Response

from normata.core.db.database import Database
from normata.core.db.transaction import TenantScope
from normata.frameworks.model import Framework
from tests import stored
from tests.client import TestClient
from tests.coverage.assessing import Stating, assert_consistent, done
from tests.databases import change
from tests.served import refused
from tests.world import ALPHA, BETA

Headers = dict[str, str]
FRAMEWORK = "urn:docks"
LIBRARY: dict[str, Any] = {
    "urn": "urn:docks:library",
    "name": "Dock Rules",
    "version": 1,
    "objects": {
        "framework": {
            "urn": FRAMEWORK,
            "ref_id": "DOCKS",
            "name": "Dock Rules",
            "requirement_nodes": [
                {"urn": "urn:docks:1", "ref_id": "1", "name": "Berths", "assessable": False},
                {"urn": "urn:docks:1.1", "parent_urn": "urn:docks:1", "ref_id": "1.1", "name": "A", "assessable": True},
            ],
        }
    },
}


def newer() -> dict[str, Any]:
    """The next version, in which there is one control more to cover."""
    library = copy.deepcopy(LIBRARY)
    library["objects"]["framework"]["requirement_nodes"].append(
        {"urn": "urn:docks:1.2", "parent_urn": "urn:docks:1", "ref_id": "1.2", "name": "B", "assessable": True}
    )
    return library


PIERS = {
    "urn": "urn:piers:library",
    "name": "Pier Rules",
    "version": 1,
    "objects": {
        "framework": {
            "urn": "urn:piers",
            "ref_id": "PIERS",
            "name": "Pier Rules",
            "requirement_nodes": [{"urn": "urn:piers:1", "ref_id": "1", "name": "Piers", "assessable": True}],
        }
    },
}


def mapping(target: str, relationship: str) -> dict[str, Any]:
    """What the docks' rule 1.1 says of another control."""
    ends = {"source_requirement_urn": "urn:docks:1.1", "target_requirement_urn": target}
    return {
        "urn": "urn:docks:map",
        "name": "Map",
        "version": 1,
        "objects": {
            "requirement_mapping_set": {
                "urn": "urn:docks:set",
                "name": "Map",
                "source_framework_urn": FRAMEWORK,
                "target_framework_urn": target.rpartition(":")[0],
                "requirement_mappings": [ends | {"relationship": relationship}],
            }
        },
    }


class Operator:
    """Somebody who runs the instance, and is a member nowhere."""

    def __init__(self, client: TestClient, headers: Headers) -> None:
        self.client, self.headers = client, headers

    def send(self, body: Any, **query: str) -> Response:
        """Import a body."""
        return self.client.post("/catalogs/", json=body, headers=self.headers, params=query)


@pytest.fixture
def operator(client: TestClient, bearer: Callable[..., Headers]) -> Operator:
    return Operator(client, bearer("operator", scope="admin"))


@pytest.fixture
def adopted(operator: Operator, alpha: Stating, beta: Stating) -> None:
    """Both organizations have adopted the framework, and alpha covers all of it."""
    assert done(operator.send(LIBRARY))["controls"]["new"] == 2
    for organization in (alpha, beta):
        assert organization.adopt(FRAMEWORK).is_success
    done(alpha.put("urn:docks:1.1", coverageStatus="FULL"))


def test_what_is_imported_is_everybodys(operator: Operator, alpha: Stating, database: Database) -> None:
    result = done(operator.send(LIBRARY))
    assert result["frameworkIds"] == [FRAMEWORK]
    assert result["frameworks"] == {"new": 1, "changed": 0, "unchanged": 0}
    [row] = [row for row in stored.rows(database, Framework) if row["id"] == FRAMEWORK]
    assert (row["organization_id"], row["control_count"]) == (None, 2)
    assert alpha.adopt(FRAMEWORK).is_success
    assert alpha.effective()["urn:docks:1.1"] == "NONE"
    again = done(operator.send(LIBRARY))
    assert again["controls"] == {"new": 0, "changed": 0, "unchanged": 2}


@pytest.mark.usefixtures("adopted")
def test_coverage_follows_in_every_organization(
    operator: Operator, alpha: Stating, beta: Stating, database: Database
) -> None:
    assert alpha.effective()["urn:docks:1"] == "FULL"
    tags = [beta.client.get("/controls/", params={"organizationId": BETA}, headers=beta.headers).headers["etag"]]
    done(operator.send(newer()))
    assert alpha.effective()["urn:docks:1"] == "PARTIAL"
    assert beta.effective()["urn:docks:1.2"] == "NONE"
    tags += [beta.client.get("/controls/", params={"organizationId": BETA}, headers=beta.headers).headers["etag"]]
    assert tags[0] != tags[1], "no page that was kept is shown any more"
    for organization_id in (ALPHA, BETA):
        assert_consistent(database, organization_id)


@pytest.mark.usefixtures("adopted")
def test_admins_are_told_what_they_lose_and_the_operator_sees_nothing_of_it(
    operator: Operator, alpha: Stating, client: TestClient
) -> None:
    done(operator.send(PIERS))
    done(operator.send(mapping("urn:piers:1", "equal")))
    assert alpha.adopt("urn:piers").is_success
    assert alpha.effective()["urn:piers:1"] == "FULL"
    tried = operator.send(mapping("urn:piers:1", "intersect"), dryRun="true")
    answer = operator.send(mapping("urn:piers:1", "intersect"))
    assert alpha.effective()["urn:piers:1"] == "PARTIAL"
    for response in (tried, answer):
        assert response.status_code == 200
        assert not [secret for secret in (ALPHA, BETA, "user-", "member-") if secret in response.text]
    assert {one["kind"] for one in tried.json()["changes"]} == {"controlMatches"}
    query = {"organizationId": ALPHA, "unreadOnly": "true"}
    told = done(client.get("/notifications/", params=query, headers=alpha.headers))["items"]
    assert "coverage.lost" in {one["type"] for one in told}
    query = {"organizationId": ALPHA}
    assert client.get("/controls/", params=query, headers=operator.headers).status_code == 404


@pytest.mark.usefixtures("adopted")
def test_a_dry_run_changes_nothing(operator: Operator, alpha: Stating) -> None:
    before = alpha.effective()
    tried = operator.send(newer(), dryRun="true").json()
    assert tried["answer"]["controls"] == {"new": 1, "changed": 0, "unchanged": 2}
    assert alpha.effective() == before


@pytest.mark.parametrize("user", ["owner", "nobody"])
def test_nobody_but_an_operator_may(client: TestClient, bearer: Callable[..., Headers], user: str) -> None:
    refused(Operator(client, bearer(user, scope="admin")).send(LIBRARY), 403, "forbidden")


def test_an_organization_cannot_be_reached_by_a_match(operator: Operator, client: TestClient, alpha: Stating) -> None:
    """A control of an organization's own is as unknown to the operator as one that does not exist."""
    own = client.post(
        "/frameworks/", json={"organizationId": ALPHA, "identifier": "OWN", "name": "Own"}, headers=alpha.headers
    ).json()
    body = {"controls": [{"identifier": "O1", "name": "O1"}]}
    made = client.post(
        f"/frameworks/{own['id']}/controls/", params={"organizationId": ALPHA}, json=body, headers=alpha.headers
    )
    control = made.json()["items"][0]["id"]
    done(operator.send(LIBRARY))

    def told(target: str) -> str:
        response = operator.send(mapping(target, "equal"))
        assert response.status_code == 400, response.text
        return json.dumps(response.json()["errors"]).replace(target, "TARGET")

    assert told(control) == told(str(uuid4()))


@pytest.mark.parametrize("taken", ["framework", "control"])
def test_an_id_that_an_organization_has_is_taken_and_no_more_is_told(
    operator: Operator, database: Database, taken: str
) -> None:
    """On PostgreSQL the row is hidden even from the check: there the database refuses the second row."""
    library = copy.deepcopy(LIBRARY)
    framework = library["objects"]["framework"]
    if taken == "framework":
        framework["urn"] = "fw-own"
    else:
        framework["requirement_nodes"][1]["urn"] = "own.A.1"
    before = stored.rows(database, Framework)
    for query in ({}, {"dryRun": "true"}):
        problem = refused(operator.send(library, **query), 400, "validation")
        assert "taken" in problem["detail"]
        told = json.dumps(problem)
        assert not [word for word in ("stored", "organizationId", ALPHA, "isCentralized") if word in told]
        assert taken == "framework" or "fw-own" not in told
    assert stored.rows(database, Framework) == before


def test_every_fault_is_told_and_nothing_is_stored(operator: Operator, database: Database) -> None:
    library = newer()
    nodes = library["objects"]["framework"]["requirement_nodes"]
    nodes[1]["parent_urn"] = "urn:docks:7"
    nodes[2]["urn"] = "urn:docks:1"
    response = operator.send(library)
    assert response.status_code == 400, response.text
    assert len(response.json()["errors"]) >= 2
    assert not [row for row in stored.rows(database, Framework) if row["id"] == FRAMEWORK]


def test_other_changes_reach_no_more_than_they_were_given(database: Database) -> None:
    def work(unit: Any) -> None:
        unit.scope = TenantScope(readable=(ALPHA,), writable=(ALPHA,))
        unit.extend_reach([BETA])

    with pytest.raises(AssertionError, match="does not change catalogs"):
        change(database, work)
