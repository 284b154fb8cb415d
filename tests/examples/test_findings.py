"""The example that makes findings follow the report of a scanner, and leaves to people what is theirs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.databases import on_both
from tests.examples.integrating import Done, Integrations

PROGRAM = "findings_from_scanner.py"


def found(*numbers: int, **other: str) -> list[dict[str, str]]:
    """Findings of a report, the first of which has other values."""
    findings = [
        {"id": f"web-{number}", "title": f"Weakness {number}", "severity": "High", "details": "Port 443"}
        for number in numbers
    ]
    findings[0] |= other
    return findings


def run(integrations: Integrations, findings: Any, *options: str, user: str = "editor") -> Done:
    """One report."""
    file = integrations.folder / "report.json"
    file.write_text(json.dumps({"findings": findings}))
    return integrations.run(PROGRAM, file, *options, token=integrations.token(user, "write"))


def findings_of(integrations: Integrations) -> dict[str, Any]:
    """The findings of the scanner, by their numbers."""
    items = integrations.items("/auditItems/")
    return {one["name"].split()[1]: one for one in items if one["name"].startswith("Weakness")}


def statuses(integrations: Integrations) -> dict[str, str]:
    """The status of each, by its number."""
    return {number: one["status"] for number, one in sorted(findings_of(integrations).items())}


def counts(new: int = 0, changed: int = 0, unchanged: int = 0, resolved: int = 0, closed: int = 0) -> str:
    """What a run says in which nothing was refused."""
    ended = f"{resolved} resolved, {closed} found although closed, 0 refused"
    return f"{new} new, {changed} changed, {unchanged} unchanged, {ended}\n"


@on_both
def test_the_second_report_changes_nothing(integrations: Integrations) -> None:
    first = run(integrations, found(1, 2, 3, severity="low"))
    assert (first.refused, first.status, first.said) == ([], 0, counts(new=3))
    made = findings_of(integrations)
    assert (made["1"]["type"], made["2"]["type"]) == ("OBSERVATION", "MAJOR_NONCONFORMITY")
    events = integrations.events()
    assert run(integrations, found(1, 2, 3, severity="low")).said == counts(unchanged=3)
    assert integrations.events() == events


def test_what_is_gone_is_resolved_and_opened_again(integrations: Integrations) -> None:
    run(integrations, found(1, 2, 3))
    assert run(integrations, found(1, 2)).said == counts(unchanged=2, resolved=1)
    assert statuses(integrations) == {"1": "OPEN", "2": "OPEN", "3": "RESOLVED"}
    events = integrations.events()
    assert run(integrations, found(1, 2)).said == counts(unchanged=2)
    assert integrations.events() == events
    assert run(integrations, found(1, 2, 3)).said == counts(changed=1, unchanged=2)
    assert statuses(integrations) == {"1": "OPEN", "2": "OPEN", "3": "OPEN"}


def test_what_people_do_in_between(integrations: Integrations) -> None:
    run(integrations, found(1, 2, 3, 4))
    made = findings_of(integrations)
    for number, status in (("1", "IN_PROGRESS"), ("2", "CLOSED"), ("3", "RESOLVED")):
        integrations.change("PATCH", f"/auditItems/{made[number]['id']}/", {"status": status, "notes": "By hand."})
    integrations.change("POST", f"/auditItems/{made['4']['id']}/archive/", {"reason": "Not ours."})

    # Whoever has closed a finding has meant it. Resolved it is not, as it is still found.
    assert run(integrations, found(1, 2, 3, 4)).said == counts(changed=1, unchanged=3, closed=1)
    assert statuses(integrations) == {"1": "IN_PROGRESS", "2": "CLOSED", "3": "OPEN"}
    assert {one["notes"] for one in findings_of(integrations).values()} == {"By hand."}
    # What is gone is resolved from any state, but what people have ended or archived stays so.
    assert run(integrations, found(3)).said == counts(unchanged=1, resolved=1)
    assert statuses(integrations) == {"1": "RESOLVED", "2": "CLOSED", "3": "OPEN"}


def test_a_finding_that_is_not_one_is_refused_and_not_resolved(integrations: Integrations) -> None:
    run(integrations, found(1, 2))
    bad = run(integrations, [*found(1, severity="purple"), *found(2, title=""), *found(3)])
    assert (bad.status, [line.split(":")[0] for line in bad.refused]) == (1, ["web-1", "web-2"])
    assert bad.said == "1 new, 0 changed, 0 unchanged, 0 resolved, 0 found although closed, 2 refused\n"
    assert statuses(integrations) == {"1": "OPEN", "2": "OPEN", "3": "OPEN"}


@pytest.mark.parametrize(
    ("report", "why"),
    [
        ([], "3 of 3 findings would be resolved, more than 1"),
        (None, "is no JSON of the form"),
        ([{"title": "A"}], "is no JSON of the form"),
    ],
)
def test_a_report_with_a_fault_changes_nothing(integrations: Integrations, report: Any, why: str) -> None:
    run(integrations, found(1, 2, 3))
    events = integrations.events()
    faulty = run(integrations, report)
    assert (faulty.status, faulty.said) == (1, "")
    assert why in faulty.refused[0]
    assert integrations.events() == events


def test_all_may_be_gone_if_somebody_says_so(integrations: Integrations) -> None:
    run(integrations, found(1, 2, 3))
    assert run(integrations, [], "--at-most", "3", "--dry-run").said == f"dry run: {counts(resolved=3)}"
    assert run(integrations, [], "--at-most", "3").said == counts(resolved=3)
    assert set(statuses(integrations).values()) == {"RESOLVED"}


def test_a_viewer_is_refused(unchanged: Integrations) -> None:
    refused = run(unchanged, found(1), user="viewer")
    assert (refused.status, refused.said) == (1, "")
    assert "403 forbidden" in refused.refused[0]
