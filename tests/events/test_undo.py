"""Undoing what one change assessed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from httpx2 import Response

from normata.frameworks.model import ControlCoverage
from normata.records.kinds import Task
from tests import mostly_sqlite, stored
from tests.coverage.assessing import Stating, assert_consistent, done
from tests.databases import on_both
from tests.served import Served, refused, served
from tests.world import ALPHA

database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url

ASSESSED = {"coverageStatus": "PARTIAL", "coverageGap": "Two sites are missing.", "justification": "The law."}


@pytest.fixture
def service(database_url: str) -> Iterator[Served]:
    with served(database_url) as opened:
        yield opened


@pytest.fixture
def alpha(service: Served) -> Stating:
    return Stating(service.client, service.bearer("editor"))


def undo(alpha: Stating, change_id: str) -> Response:
    body = {"organizationId": alpha.organization_id, "changeId": change_id}
    return alpha.client.post("/controls/coverage/undo/", json=body, headers=alpha.headers)


def whole(alpha: Stating, control_id: str) -> dict[str, Any]:
    """What is recorded of a control, but for the time."""
    coverage: dict[str, Any] = done(alpha.control(control_id))["coverage"]
    return {name: value for name, value in coverage.items() if name != "updatedAt"}


@on_both
def test_controls_get_their_earlier_assessments_again(alpha: Stating, service: Served) -> None:
    done(alpha.put("sun.A.5", **ASSESSED))
    names = ["sun.A.5", "sun.A.6", "moon.A.1"]
    before, effective = [whole(alpha, name) for name in names], alpha.effective()
    rows = stored.rows(service.database, ControlCoverage, organization_id=ALPHA)
    unassessed = {name for name in names if name not in {row["control_id"] for row in rows}}
    assert "sun.A.6" in unassessed
    changed = done(alpha.patch(*({"controlId": name, "coverageStatus": "FULL", "coverageGap": "-"} for name in names)))
    assert alpha.effective() != effective

    undone = done(undo(alpha, changed["changeId"]))

    assert {item["control"]["id"] for item in undone["items"]} == set(names)
    assert undone["changeId"] is None
    assert [whole(alpha, name) for name in names] == before
    assert alpha.effective() == effective
    assert {row["control_id"] for row in stored.rows(service.database, ControlCoverage, organization_id=ALPHA)} == {
        row["control_id"] for row in rows
    }
    assert_consistent(service.database)


@on_both
def test_what_was_assessed_again_since_stays(alpha: Stating) -> None:
    changed = done(alpha.patch(*({"controlId": name, "coverageStatus": "FULL"} for name in ("sun.A.5", "sun.A.6"))))
    done(alpha.put("sun.A.5", coverageStatus="PARTIAL"))
    undone = done(undo(alpha, changed["changeId"]))
    assert [item["control"]["id"] for item in undone["items"]] == ["sun.A.6"]
    assert whole(alpha, "sun.A.5")["coverageStatus"] == "PARTIAL"
    refused(undo(alpha, changed["changeId"]), 409, "nothing_to_undo")


def test_what_another_change_of_the_same_person_assessed_stays(alpha: Stating) -> None:
    first = done(alpha.patch({"controlId": "sun.A.5", "coverageStatus": "FULL"}))
    done(alpha.patch({"controlId": "sun.A.6", "coverageStatus": "FULL"}))
    done(undo(alpha, first["changeId"]))
    assert whole(alpha, "sun.A.6")["coverageStatus"] == "FULL"


def test_what_is_of_a_framework_that_was_left_stays(alpha: Stating, service: Served) -> None:
    changed = done(alpha.patch(*({"controlId": name, "coverageStatus": "FULL"} for name in ("sun.A.5", "moon.A.1"))))
    admin = Stating(service.client, service.bearer("admin"))
    done(admin.leave("fw-moon"))
    undone = done(undo(alpha, changed["changeId"]))
    assert [item["control"]["id"] for item in undone["items"]] == ["sun.A.5"]


@on_both
def test_nothing_changes_where_a_task_refers_to_an_assessment(alpha: Stating, service: Served) -> None:
    changed = done(alpha.patch(*({"controlId": name, "coverageStatus": "FULL"} for name in ("sun.A.5", "sun.A.6"))))
    [row] = stored.rows(service.database, ControlCoverage, control_id="sun.A.6")
    service.load({"tasks": [{"id": "t1", "organizationId": ALPHA, "title": "T", "controlCoverageId": row["id"]}]})
    problem = refused(undo(alpha, changed["changeId"]), 409, "in_use")
    assert problem["conflictingId"] == "t1"
    assert whole(alpha, "sun.A.5")["coverageStatus"] == "FULL"
    assert stored.rows(service.database, Task, id="t1")


@on_both
def test_a_change_that_there_was_not_is_not_found(alpha: Stating, service: Served) -> None:
    changed = done(alpha.patch({"controlId": "sun.A.5", "coverageStatus": "FULL"}))
    moment, _, request_id = changed["changeId"].partition("_")
    nulls = (f"{moment}\0_{request_id}", f"{moment}_{request_id}\0")
    for unknown in ("x", moment, f"{moment}_other", f"2020-01-01_{request_id}", *nulls):
        refused(undo(alpha, unknown), 404, "not_found")
    beta = Stating(service.client, service.bearer("foreigner"), "org-beta")
    refused(undo(beta, changed["changeId"]), 404, "not_found")
    viewer = Stating(service.client, service.bearer("viewer"))
    refused(undo(viewer, changed["changeId"]), 403, "forbidden")


def test_what_changes_nothing_cannot_be_undone(alpha: Stating) -> None:
    done(alpha.patch({"controlId": "sun.A.5", "coverageStatus": "FULL"}))
    assert done(alpha.patch({"controlId": "sun.A.5", "coverageStatus": "FULL"}))["changeId"] is None
