"""The summary of a framework: counts of its leaves, as a whole and below each category."""

from __future__ import annotations

from typing import Any

import pytest

from tests.databases import on_both
from tests.reports.conftest import Ask
from tests.reports.reported import FRAMEWORK, statement
from tests.served import Served, refused
from tests.world import ALPHA, BETA


def counts(requirements: int, excluded: int, unsaid: int, indirect: int, statuses: str) -> dict[str, Any]:
    """The counts of an answer; of stated and effective statuses as none/partial/full."""
    stated, effective = (
        dict(zip(("none", "partial", "full"), map(int, numbers.split("/")), strict=True))
        for numbers in statuses.split()
    )
    return {
        "requirements": requirements,
        "applicable": requirements - excluded,
        "notApplicable": excluded,
        "withoutAssessment": unsaid,
        "conflicts": 0,
        "stale": 0,
        "indirectlyCovered": indirect,
        "assessed": stated,
        "effective": effective,
    }


def test_requirements_are_counted_as_a_whole_and_by_category(ask: Ask) -> None:
    """What does not apply is counted apart; what has no category is counted for the framework only."""
    answer = ask("coverage").json()
    assert answer["organization"] == {"id": ALPHA, "name": "Alpha", "slug": "alpha"}
    assert answer["framework"] == {
        "id": FRAMEWORK,
        "name": "Reported",
        "identifier": "REP-1",
        "slug": "rep-1",
        "version": "7",
    }
    assert answer["counts"] == counts(9, 2, 4, 2, "1/1/1 3/2/2")
    found = {one["id"]: (one["parentId"], one["counts"]) for one in answer["categories"]}
    assert list(found) == ["rep.1", "rep.1.1", "rep.2"]
    assert found == {
        "rep.1": (None, counts(5, 2, 2, 0, "0/1/0 2/1/0")),
        "rep.1.1": ("rep.1", counts(3, 0, 2, 0, "0/1/0 2/1/0")),
        "rep.2": (None, counts(3, 0, 2, 2, "1/0/0 1/1/1")),
    }


@on_both
def test_it_agrees_with_the_list_of_controls(ask: Ask, service: Served) -> None:
    """Of every framework that alpha has adopted: the same statuses, counted by the client."""
    for framework_id in ("fw-sun", "fw-moon", "fw-own", FRAMEWORK):
        items = service.listing("/controls/").items(frameworks=framework_id, limit="100")
        excluded = {"rep.1.2", "rep.1.3", "sun.A.9"}
        counted = [item for item in items if item["type"] == "CONTROL" and item["id"] not in excluded]
        found = ask("coverage", framework_id).json()["counts"]
        for status in ("NONE", "PARTIAL", "FULL"):
            named = status.lower()
            assert found["effective"][named] == sum(one["effectiveCoverageStatus"] == status for one in counted)
            # In the list of controls "not assessed" is NONE.
            unassessed = found["withoutAssessment"] if status == "NONE" else 0
            stated = sum(one["coverage"]["coverageStatus"] == status for one in counted)
            assert found["assessed"][named] == stated - unassessed
        assert found["indirectlyCovered"] == sum(one["isIndirectlyCovered"] for one in counted)


@on_both
def test_stale_assessments_are_counted_alike(ask: Ask, service: Served) -> None:
    """As the list of coverage has them, of requirements that apply: in all reports, and below each category."""
    past, future = "2026-01-01T00:00:00.000Z", "2100-01-01T00:00:00.000Z"
    for control, review in (("1.1.a", past), ("1.1.b", past), ("2.1", future), ("3", past), ("1.2", past)):
        service.sql(f"DELETE FROM control_coverage WHERE control_id = 'rep.{control}'")
        excluded = {"isApplicable": False, "justification": "No."} if control == "1.2" else {}
        service.load({"controlCoverages": [statement(f"rep.{control}", "PARTIAL", reviewBy=review, **excluded)]})
    service.sql("UPDATE control_coverage SET assessed_at = NULL WHERE control_id LIKE 'rep.%'")
    query = {"organizationId": ALPHA, "frameworks": FRAMEWORK, "isStale": "true", "isApplicable": "true"}
    listed = service.client.get("/coverage/", params=query, headers=service.bearer("viewer")).json()["items"]
    assert {one["id"] for one in listed} == {"rep.1.1.a", "rep.1.1.b", "rep.3"}
    for report in ("coverage", "gaps"):
        assert ask(report).json()["counts"]["stale"] == 3
    applicability = ask("statement-of-applicability").json()
    assert (applicability["counts"]["stale"], applicability["mandatory"]["counts"]["stale"]) == (2, 1)
    found = {one["id"]: one["counts"]["stale"] for one in ask("coverage").json()["categories"]}
    assert found == {"rep.1": 2, "rep.1.1": 2, "rep.2": 0}


@pytest.mark.parametrize("report", ["coverage", "gaps", "statement-of-applicability"])
@pytest.mark.parametrize("framework_id", ["fw-star", "fw-foreign", "fw-old", "nothing", "rep.1"])
def test_there_is_none_of_what_is_not_adopted(ask: Ask, report: str, framework_id: str) -> None:
    refused(ask(report, framework_id), 404, "not_found")


@pytest.mark.parametrize("report", ["coverage", "gaps", "statement-of-applicability"])
def test_another_organization_has_one_of_its_own(service: Served, report: str) -> None:
    """Of a framework that both have adopted each is told its own only: beta works with STAR."""
    service.load({"frameworkAdoptions": [{"id": "adopt-beta-rep", "organizationId": BETA, "frameworkId": FRAMEWORK}]})
    answer = service.client.get(
        f"/frameworks/{FRAMEWORK}/{report}/", params={"organizationId": "beta"}, headers=service.bearer("foreigner")
    ).json()
    assert answer["organization"]["id"] == BETA
    whole = counts(9, 0, 9, 1, "0/0/0 8/0/1") if "mandatory" not in answer else counts(8, 0, 8, 0, "0/0/0 8/0/0")
    assert answer["counts"] == whole
