"""The statement of applicability: every requirement, what is said of it, what covers it, what would be objected to."""

from __future__ import annotations

import csv
from collections import Counter
from io import BytesIO, StringIO
from typing import Any

from openpyxl import load_workbook

from tests.databases import on_both, tamper
from tests.reports.conftest import Ask
from tests.reports.reported import FRAMEWORK, match, statement
from tests.served import Served
from tests.world import ALPHA

SOA = "statement-of-applicability"


def entries(answer: Any) -> dict[str, dict[str, Any]]:
    """The controls of an answer and its mandatory requirements, by id."""
    report = answer.json()
    return {entry["id"]: entry for entry in (*report["controls"], *report["mandatory"]["requirements"])}


def covering(entry: dict[str, Any]) -> list[tuple[str, str, str]]:
    """What covers a control: the source, the level of the match, the source's own status."""
    return [
        (one["matchedControl"]["id"], one["matchLevel"], one["effectiveCoverageStatus"]) for one in entry["coveredBy"]
    ]


@on_both
def test_it_has_every_requirement_in_catalog_order(ask: Ask) -> None:
    """What is mandatory has a section of its own: nobody decides whether it applies."""
    answer = ask(SOA)
    numbers = ["1.1.b", "1.1.c", "1.2", "1.3", "2.1", "2.2", "2.3", "3"]
    assert [entry["identifier"] for entry in answer.json()["controls"]] == numbers
    assert [entry["identifier"] for entry in answer.json()["mandatory"]["requirements"]] == ["1.1.a"]
    whole = ask("coverage").json()["counts"]
    for one in ("requirements", "applicable", "notApplicable", "withoutAssessment", "indirectlyCovered"):
        assert answer.json()["counts"][one] + answer.json()["mandatory"]["counts"][one] == whole[one]
    assert answer.json()["organization"]["id"] == ALPHA
    assert answer.json()["framework"]["id"] == FRAMEWORK


def test_an_entry_says_all_that_is_said_of_a_control(ask: Ask) -> None:
    assert entries(ask(SOA))["rep.1.1.b"] == {
        "id": "rep.1.1.b",
        "frameworkId": FRAMEWORK,
        "identifier": "1.1.b",
        "name": "Requirement 1.1.b",
        "parent": {"id": "rep.1.1", "identifier": "1.1", "name": "Requirement 1.1"},
        "isMandatory": False,
        "isApplicable": True,
        "reasons": ["LEGAL", "BEST_PRACTICE"],
        "justification": None,
        "excludedBy": None,
        "outsideOfBaseline": None,
        "implemented": "PARTLY",
        "plannedBy": None,
        "owner": None,
        "note": None,
        "isAssessed": True,
        "coverageStatus": "PARTIAL",
        "coverageGap": "=HYPERLINK(1)",
        "effectiveCoverageStatus": "PARTIAL",
        "isIndirectlyCovered": False,
        "stale": [],
        "evidence": None,
        "coveredBy": [],
        "objections": [],
    }


def test_it_flags_what_the_standard_would_object_to(ask: Ask) -> None:
    """ISO/IEC 27001, 6.1.3 d. A justification in words justifies the inclusion of a control as reasons do."""
    answer = ask(SOA)
    unsaid = ["INCLUDED_WITHOUT_JUSTIFICATION", "APPLICABLE_WITHOUT_STATUS"]
    found = {control: entry["objections"] for control, entry in entries(answer).items()}
    assert found == {
        "rep.1.1.a": [],
        "rep.1.1.b": [],
        "rep.1.1.c": unsaid,
        "rep.1.2": ["EXCLUDED_WITHOUT_JUSTIFICATION"],
        "rep.1.3": [],
        "rep.2.1": unsaid,
        "rep.2.2": unsaid,
        "rep.2.3": [],
        "rep.3": [],
    }
    counted = Counter(objection for objections in found.values() for objection in objections)
    assert answer.json()["objections"] == {
        "excludedWithoutJustification": counted["EXCLUDED_WITHOUT_JUSTIFICATION"],
        "includedWithoutJustification": counted["INCLUDED_WITHOUT_JUSTIFICATION"],
        "applicableWithoutStatus": counted["APPLICABLE_WITHOUT_STATUS"],
        "mandatoryExcluded": 0,
        "conflicting": 0,
    }


def test_none_where_a_match_gives_full_is_in_conflict(ask: Ask, service: Served) -> None:
    service.load({"controlCoverages": [statement("rep.2.1", "NONE", coverageGap="All of it.")]})
    answer = ask(SOA)
    assert entries(answer)["rep.2.1"]["objections"] == ["CONFLICTING", "INCLUDED_WITHOUT_JUSTIFICATION"]
    assert answer.json()["objections"]["conflicting"] == answer.json()["counts"]["conflicts"] == 1
    [conflict] = ask("gaps").json()["conflicts"]
    assert (conflict["id"], conflict["coverageStatus"], conflict["coverageGap"], conflict["conflict"]) == (
        "rep.2.1",
        "NONE",
        "All of it.",
        "MATCHES",
    )


@on_both
def test_it_is_about_the_table_of_applicability(ask: Ask, service: Served) -> None:
    """What is outside of the table and not mandatory is counted apart."""
    whole, before = ask("coverage").json()["counts"], entries(ask(SOA))
    assert ask(SOA).json()["otherRequirements"] is ask(SOA).json()["applicabilityPrefix"] is None
    service.load({"frameworks": [{"id": FRAMEWORK, "applicabilityPrefix": "2."}]})
    report = ask(SOA).json()
    assert report["applicabilityPrefix"] == "2."
    assert entries(ask(SOA)) == {control: before[control] for control in ("rep.2.1", "rep.2.2", "rep.2.3", "rep.1.1.a")}
    parts = [report["counts"], report["mandatory"]["counts"], report["otherRequirements"]["counts"]]
    assert [counts["requirements"] for counts in parts] == [3, 1, 5]
    for one in ("requirements", "applicable", "notApplicable", "withoutAssessment", "indirectlyCovered"):
        assert sum(counts[one] for counts in parts) == whole[one]
    assert report["objections"]["excludedWithoutJustification"] == 0
    table = csv.reader(StringIO(ask(SOA, format="csv").text))
    assert [row[0] for row in table][1:] == ["2.1", "2.2", "2.3"]
    service.load({"controlCoverages": [statement("rep.1.1.a", None, isApplicable=False, justification="No.")]})
    report = ask(SOA).json()
    [excluded] = report["mandatory"]["requirements"]
    assert (excluded["id"], excluded["objections"]) == ("rep.1.1.a", ["MANDATORY_EXCLUDED"])
    assert report["objections"]["mandatoryExcluded"] == 1
    book = load_workbook(BytesIO(ask(SOA, format="xlsx").content))
    facts = dict(row[:2] for row in book["Summary"].iter_rows(values_only=True))
    assert (facts["Requirements"], facts["Outside of the table, requirements"]) == (3, 5)
    assert facts["Mandatory and excluded"] == facts["Mandatory, requirements"] == 1
    service.load({"frameworks": [{"id": FRAMEWORK, "applicabilityPrefix": "A."}]})
    assert len(ask(SOA).json()["controls"]) == 8, "nothing begins with that, so there is no table"


@on_both
def test_an_excluded_category_justifies_what_is_below_it(ask: Ask, service: Served) -> None:
    """However deep; what says more itself is not excluded by it."""
    service.load(
        {
            "controlCoverages": [
                statement("rep.1", None, isApplicable=False, justification="No premises.", reasons=["LEGAL"]),
                statement("rep.1.1.b", "PARTIAL", isApplicable=True, reasons=["CONTRACTUAL"]),
            ]
        }
    )
    category = {"id": "rep.1", "identifier": "1", "name": "Requirement 1"}
    found = entries(ask(SOA))
    below = found["rep.1.1.c"]
    assert (below["isApplicable"], below["excludedBy"], below["objections"]) == (False, category, [])
    assert (below["justification"], below["reasons"]) == ("No premises.", ["LEGAL"])
    assert found["rep.1.1.b"]["isApplicable"]
    assert found["rep.1.3"]["justification"] == "There is no such site."
    for own in ("rep.1.1.a", "rep.1.1.b", "rep.1.3", "rep.2.1"):  # mandatory, decided by itself, elsewhere
        assert found[own]["excludedBy"] is None
    tamper(service.database, "UPDATE control_coverage SET justification = NULL WHERE control_id = 'rep.1'")
    below = entries(ask(SOA))["rep.1.1.c"]
    assert (below["excludedBy"], below["objections"]) == (category, ["EXCLUDED_WITHOUT_JUSTIFICATION"])


def test_what_covers_a_control_are_the_matches_that_make_it_so(ask: Ask, service: Served) -> None:
    found = entries(ask(SOA))
    assert covering(found["rep.2.1"]) == [("sun.A.1", "FULL", "FULL")]
    assert covering(found["rep.2.2"]) == [("sun.A.3", "PARTIAL", "FULL")]
    assert covering(found["rep.1.1.a"]) == covering(found["rep.3"]) == []
    [one] = found["rep.2.1"]["coveredBy"]
    assert one["matchedControl"]["framework"]["identifier"] == "SUN-2"
    service.load({"controlCoverages": [statement("rep.2.1", "FULL")]})
    assert covering(entries(ask(SOA))["rep.2.1"]) == [], "its own statement does"


@on_both
def test_no_control_vouches_for_itself(ask: Ask, service: Served) -> None:
    """Two that equal each other, of which the first alone is covered by somebody's statement."""
    there, back = match("rep.2.1", "rep.1.1.c", "FULL"), match("rep.1.1.c", "rep.2.1", "FULL")
    service.load({"controlMatches": [there, back]})
    found = entries(ask(SOA))
    assert covering(found["rep.2.1"]) == [("sun.A.1", "FULL", "FULL")]
    assert covering(found["rep.1.1.c"]) == [("rep.2.1", "FULL", "FULL")]


def test_the_same_data_are_the_same_bytes(ask: Ask, service: Served) -> None:
    """But for what is sealed meanwhile, which the head says."""
    first = ask(SOA).json() | {"log": None}
    service.load({"controlCoverages": [statement("rep.3", "PARTIAL")]})
    assert ask(SOA).json() | {"log": None} != first
    service.load({"controlCoverages": [statement("rep.3", "FULL")]})
    assert ask(SOA).json() | {"log": None} == first
