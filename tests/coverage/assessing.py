"""Stating and adopting over HTTP, as one user of one organization does, and what the lists show of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pytest
from httpx2 import Response

from normata.core.db.database import Database
from normata.coverage.recompute import current_coverage, stored_coverage
from tests.client import TestClient
from tests.world import ALPHA, BETA

Json = dict[str, Any]

SILENCE: Json = {
    "coverageStatus": None,
    "coverageGap": None,
    "isApplicable": None,
    "justification": None,
    "reasons": [],
    "ownerId": None,
    "note": None,
    "reviewBy": None,
}


@dataclass(frozen=True)
class Stating:
    """The coverage of one organization, as one of its users changes it and sees it."""

    client: TestClient
    headers: dict[str, str]
    organization_id: str = ALPHA

    def put(self, control_id: str, **said: Any) -> Response:
        """Say all that is said of a control."""
        return self._send("PUT", f"/controls/{quote(control_id, safe='')}/coverage/", said)

    def patch(self, *statements: Json) -> Response:
        """Say something of many controls."""
        return self._send("PATCH", "/controls/coverage/", {"assessments": [*statements]})

    def delete(self, control_id: str) -> Response:
        """Say nothing of a control any more."""
        return self._send("DELETE", f"/controls/{quote(control_id, safe='')}/coverage/")

    def adopt(self, framework_id: str, **body: str | None) -> Response:
        """Adopt a framework, with its ``baseline`` if there is one in the body."""
        return self.client.put(
            f"/frameworks/{quote(framework_id, safe='')}/adoption/",
            params={"organizationId": self.organization_id},
            headers=self.headers,
            json=body or None,
        )

    def leave(self, framework_id: str) -> Response:
        """Leave a framework."""
        return self._send("DELETE", f"/frameworks/{quote(framework_id, safe='')}/adoption/")

    def preview(self, framework_id: str, **query: str) -> Json:
        """What adopting a framework would bring."""
        return done(self._send("GET", f"/frameworks/{quote(framework_id, safe='')}/adoption/preview/", query=query))

    def baselines(self, framework_id: str) -> Json:
        """The baselines of a framework."""
        return done(self._send("GET", f"/frameworks/{quote(framework_id, safe='')}/baselines/"))

    def covered(self, **query: str) -> list[Json]:
        """The first hundred controls of the list of coverage."""
        found: list[Json] = done(self._send("GET", "/coverage/", query={"limit": "100"} | query))["items"]
        return found

    def summary(self, framework_id: str) -> Json:
        """The counts of an adopted framework as a whole."""
        found: Json = done(self._send("GET", f"/frameworks/{quote(framework_id, safe='')}/coverage/"))["counts"]
        return found

    def gaps(self, framework_id: str) -> list[Json]:
        """The gaps of an adopted framework."""
        found: list[Json] = done(self._send("GET", f"/frameworks/{quote(framework_id, safe='')}/gaps/"))["gaps"]
        return found

    def control(self, control_id: str) -> Response:
        """One control."""
        return self._send("GET", f"/controls/{quote(control_id, safe='')}/")

    def explanation(self, control_id: str) -> Response:
        """Why a control is covered as far as it is."""
        return self._send("GET", f"/controls/{quote(control_id, safe='')}/coverage/")

    def said(self, control_id: str) -> Json:
        """What is said of a control, but for the time."""
        coverage = done(self.control(control_id))["coverage"]
        return {name: coverage[name] for name in SILENCE}

    def listed(self, **query: str) -> dict[str, Json]:
        """All controls of the list, by id."""
        found: dict[str, Json] = {}
        for page in range(1, 100):
            answer = done(self._send("GET", "/controls/", query={"page": str(page)} | query))
            found |= {item["id"]: item for item in answer["items"]}
            if page * answer["limit"] >= answer["total"]:
                assert len(found) == answer["total"]
                return found
        raise AssertionError("the list does not end")

    def effective(self) -> dict[str, str]:
        """The effective status of every control that is listed."""
        return {control_id: item["effectiveCoverageStatus"] for control_id, item in self.listed().items()}

    def _send(self, method: str, path: str, body: Json | None = None, query: dict[str, str] | None = None) -> Response:
        organization = {"organizationId": self.organization_id}
        if body is not None:
            return self.client.request(method, path, json=organization | body, headers=self.headers)
        return self.client.request(method, path, params=organization | (query or {}), headers=self.headers)


def done(response: Response) -> Json:
    """The answer, which must be a success."""
    assert response.status_code == 200, response.text[:500]
    answer: Json = response.json()
    return answer


def faults(response: Response) -> list[tuple[str, str]]:
    """Where and what the faults are of a request that must be refused with them."""
    assert (response.status_code, response.json()["code"]) == (400, "validation"), response.text[:500]
    return [(fault["name"], fault["message"]) for fault in response.json()["errors"]]


def assert_consistent(database: Database, organization_id: str = ALPHA) -> None:
    """The stored coverage is what follows from scratch."""
    stored = database.read_now(lambda transaction: stored_coverage(transaction, organization_id))
    assert stored == database.read_now(lambda transaction: current_coverage(transaction, organization_id))


def large(size: int) -> dict[str, list[Json]]:
    """A framework of so many controls, which alpha has adopted."""
    return {
        "frameworks": [{"id": "fw-large", "identifier": "LARGE", "name": "Large"}],
        "controls": [
            {"id": f"large.{number}", "frameworkId": "fw-large", "identifier": f"L{number}", "name": f"L{number}"}
            for number in range(size)
        ],
        "frameworkAdoptions": [{"id": "adopt-large", "organizationId": ALPHA, "frameworkId": "fw-large"}],
    }


@pytest.fixture
def alpha(client: TestClient, bearer: Callable[..., dict[str, str]]) -> Stating:
    """The coverage of the organization alpha, in the hands of its admin."""
    return Stating(client, bearer("admin"))


@pytest.fixture
def beta(client: TestClient, bearer: Callable[..., dict[str, str]]) -> Stating:
    """The coverage of the organization beta, in the hands of its owner."""
    return Stating(client, bearer("foreigner"), BETA)
