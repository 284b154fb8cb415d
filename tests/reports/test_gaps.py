"""The gaps of a framework: which there are, in which order, and what would close them."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from openpyxl import load_workbook

from normata.reports.gap_suggestions import GapSuggestions
from tests.databases import on_both
from tests.reports.conftest import Ask
from tests.reports.reported import FRAMEWORK, match, statement
from tests.served import Served
from tests.world import ALPHA, BETA


def suggestions(gap: dict[str, Any]) -> list[tuple[str, str, str, int]]:
    """What would close a gap: the control, the level of its match, what the gap would become, how many it lifts."""
    return [(one["control"]["id"], one["matchLevel"], one["wouldBecome"], one["lifts"]) for one in gap["suggestions"]]


def gaps(answer: Any) -> dict[str, dict[str, Any]]:
    """The gaps of an answer, by id."""
    return {gap["id"]: gap for gap in answer.json()["gaps"]}


@on_both
def test_gaps_are_applicable_leaves_below_full_the_worst_first(ask: Ask, service: Served) -> None:
    """NONE before PARTIAL, within that mandatory ones first, then in catalog order."""
    assert list(gaps(ask("gaps"))) == ["rep.1.1.a", "rep.1.1.c", "rep.2.3", "rep.1.1.b", "rep.2.2"]
    service.load({"controls": [{"id": f"rep.{number}", "isMandatory": True} for number in ("2.2", "2.3")]})
    assert list(gaps(ask("gaps"))) == ["rep.1.1.a", "rep.2.3", "rep.1.1.c", "rep.2.2", "rep.1.1.b"]


def test_a_gap_says_what_is_stated_and_what_follows(ask: Ask) -> None:
    answer = ask("gaps")
    assert answer.json()["counts"] == ask("coverage").json()["counts"]
    gap = gaps(answer)["rep.1.1.b"]
    del gap["suggestions"]
    assert gap == {
        "id": "rep.1.1.b",
        "identifier": "1.1.b",
        "name": "Requirement 1.1.b",
        "parent": {"id": "rep.1.1", "identifier": "1.1", "name": "Requirement 1.1"},
        "isMandatory": False,
        "isAssessed": True,
        "coverageStatus": "PARTIAL",
        "coverageGap": "=HYPERLINK(1)",
        "stale": [],
        "evidence": None,
        "effectiveCoverageStatus": "PARTIAL",
    }


def test_what_closes_comes_first_and_then_what_lifts_most(ask: Ask) -> None:
    """At most three. What is not adopted, or does not apply, is none of them."""
    found = gaps(ask("gaps"))
    assert suggestions(found["rep.1.1.a"]) == [
        ("sun.A.8", "FULL", "FULL", 2),
        ("sun.A.4", "FULL", "FULL", 1),
        ("sun.A.5", "PARTIAL", "PARTIAL", 2),
    ]
    assert suggestions(found["rep.1.1.c"]) == []
    assert suggestions(found["rep.1.1.b"]) == [], "an overlap does nothing for what is PARTIAL already"
    assert suggestions(found["rep.2.2"]) == [("sun.A.8", "FULL", "FULL", 2)]
    [first, *_] = found["rep.1.1.a"]["suggestions"]
    assert first["control"]["framework"]["identifier"] == "SUN-2"
    assert first["effectiveCoverageStatus"] == "NONE"


def test_the_next_steps_are_the_controls_that_would_lift_most(ask: Ask) -> None:
    found = ask("gaps").json()["nextSteps"]
    assert [(step["control"]["id"], step["closes"], step["lifts"]) for step in found] == [
        ("sun.A.8", 2, 2),
        ("sun.A.5", 0, 2),
    ]


@on_both
def test_what_it_promises_comes_true(ask: Ask, service: Served) -> None:
    """Each closer, stated FULL, gives every gap that names it what the report says, and lifts as many as it says."""
    before = gaps(ask("gaps"))
    steps = {one["control"]["id"]: one for gap in before.values() for one in gap["suggestions"]}
    assert steps
    for control, step in steps.items():
        service.load({"controlCoverages": [statement(control, "FULL")]})
        after = gaps(ask("gaps"))
        became = {
            gap: after[gap]["effectiveCoverageStatus"] if gap in after else "FULL"
            for gap in before
            if gap not in after or after[gap]["effectiveCoverageStatus"] != before[gap]["effectiveCoverageStatus"]
        }
        assert len(became) == step["lifts"], control
        for gap, status in became.items():
            for one in before[gap]["suggestions"]:
                if one["control"]["id"] == control:
                    assert one["wouldBecome"] == status
        service.load({"controlCoverages": [statement(control, "NONE")]})
        assert gaps(ask("gaps")).keys() == before.keys()


def test_an_own_match_counts_for_its_organization_only(ask: Ask, service: Served) -> None:
    """And of two matches between the same controls the stronger one."""
    own = match("sun.A.6", "rep.1.1.a", "FULL") | {"id": "own-match", "justification": "We looked into it."}
    service.load({"controlMatches": [own | {"organizationId": BETA}]})
    assert ("sun.A.6", "FULL", "FULL", 1) not in suggestions(gaps(ask("gaps"))["rep.1.1.a"])
    service.load({"controlMatches": [own | {"id": "ours", "organizationId": ALPHA}]})
    assert ("sun.A.6", "FULL", "FULL", 1) in suggestions(gaps(ask("gaps"))["rep.1.1.a"])


@on_both
def test_conflicts_are_a_list_of_their_own(ask: Ask, service: Served) -> None:
    """Groups among them, in catalog order; the workbook has them as a sheet, the statement as objections."""
    said = {"rep.2": "FULL", "rep.2.1": "PARTIAL", "rep.2.2": "FULL", "rep.1.1.c": "NONE"}
    service.load({"controlCoverages": [statement(control, status) for control, status in said.items()]})
    report = ask("gaps").json()
    shown = [
        (one["id"], one["coverageStatus"], one["effectiveCoverageStatus"], one["conflict"])
        for one in report["conflicts"]
    ]
    assert shown == [("rep.2", "FULL", "FULL", "BELOW"), ("rep.2.1", "PARTIAL", "FULL", "MATCHES")]
    assert "rep.2.1" not in gaps(ask("gaps"))
    assert (report["counts"]["conflicts"], ask("coverage").json()["counts"]["conflicts"]) == (1, 1), "of requirements"
    book = load_workbook(BytesIO(ask("gaps", format="xlsx").content))
    assert book.sheetnames == ["Gaps", "Next steps", "Conflicts", "Summary"]
    [_, *rows] = book["Conflicts"].iter_rows(values_only=True)
    assert [(row[0], row[4], row[5], row[7]) for row in rows] == [
        ("2", "FULL", "FULL", "requirements below it that are assessed lower"),
        ("2.1", "FULL", "PARTIAL", "matches that make it FULL"),
    ]
    entries = ask("statement-of-applicability").json()["controls"]
    assert [entry["id"] for entry in entries if "CONFLICTING" in entry["objections"]] == ["rep.2.1"]


def test_a_framework_without_gaps(ask: Ask, service: Served) -> None:
    leaves = ["1.1.a", "1.1.b", "1.1.c", "2.1", "2.2", "2.3"]
    service.load({"controlCoverages": [statement(f"rep.{number}", "FULL") for number in leaves]})
    answer = ask("gaps", FRAMEWORK).json()
    assert (answer["gaps"], answer["nextSteps"]) == ([], [])


def test_no_gap_has_more_than_three_closers_and_no_report_more_than_ten_steps() -> None:
    class Row:
        match_level, framework_id, position, effective, slug = "PARTIAL", "f", 0, "NONE", "s"

        def __init__(self, target: str, source: str) -> None:
            self.target_id, self.id = target, source
            self.identifier = self.name = source

    rows = [Row(f"gap-{gap}", f"source-{source:02}") for gap in range(5) for source in range(20)]
    found = GapSuggestions({f"gap-{gap}": "NONE" for gap in range(5)}, rows, {"f": {"id": "f"}})
    assert [one["control"]["id"] for one in found.of("gap-3")] == ["source-00", "source-01", "source-02"]
    assert [one["lifts"] for one in found.next_steps()] == [5] * 10
