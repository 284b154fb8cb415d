"""A framework that has everything that a report tells apart, adopted by alpha, in addition to the test world."""

from __future__ import annotations

from typing import Any

from tests.world import ALPHA, EARLIER

FRAMEWORK = "fw-rep"
Document = dict[str, list[dict[str, Any]]]


def document() -> Document:
    """The framework, its matches, and what alpha says of its controls."""
    return {
        "frameworks": [{"id": FRAMEWORK, "identifier": "REP-1", "name": "Reported", "version": "7", "slug": "rep-1"}],
        "controls": [
            _control("1", "CATEGORY"),
            _control("1.1", "CATEGORY", "1"),
            _control("1.1.a", "CONTROL", "1.1", mandatory=True),
            _control("1.1.b", "CONTROL", "1.1"),
            _control("1.1.c", "CONTROL", "1.1"),
            _control("1.2", "CONTROL", "1"),
            _control("1.3", "CONTROL", "1"),
            _control("2", "CATEGORY"),
            _control("2.1", "CONTROL", "2"),
            _control("2.2", "CONTROL", "2"),
            _control("2.3", "CONTROL", "2"),
            _control("3", "CONTROL"),
        ],
        "frameworkAdoptions": [
            {"id": "adopt-rep", "organizationId": ALPHA, "frameworkId": FRAMEWORK, "adoptedAt": EARLIER}
        ],
        "controlMatches": [
            # From what is stated FULL: these cover.
            match("sun.A.1", "rep.2.1", "FULL"),
            match("sun.A.3", "rep.2.2", "PARTIAL"),
            # From what is not FULL: these would.
            match("sun.A.4", "rep.1.1.a", "FULL"),
            match("sun.A.5", "rep.1.1.a", "PARTIAL"),
            match("sun.A.5", "rep.1.1.b", "PARTIAL"),
            match("sun.A.5", "rep.2.3", "PARTIAL"),
            match("sun.A.6", "rep.1.1.a", "PARTIAL"),
            match("sun.A.7", "rep.1.1.a", "PARTIAL"),
            match("sun.A.8", "rep.1.1.a", "FULL"),
            match("sun.A.8", "rep.2.2", "FULL"),
            # From a framework that is not adopted, and from what does not apply: these never would.
            match("star.A.4", "rep.1.1.a", "FULL"),
            match("sun.A.9", "rep.1.1.a", "FULL"),
        ],
        "controlCoverages": [
            statement("rep.1.1.b", "PARTIAL", coverageGap="=HYPERLINK(1)", reasons=["LEGAL", "BEST_PRACTICE"]),
            statement("rep.1.2", "NONE", isApplicable=False, justification="To be taken away."),
            statement("rep.1.3", "NONE", isApplicable=False, justification="There is no such site."),
            statement("rep.2.3", "NONE", justification="The board wants it."),
            statement("rep.3", "FULL", reasons=["CONTRACTUAL"]),
            statement("sun.A.9", "NONE", isApplicable=False, justification="No."),
        ],
    }


def _control(number: str, kind: str, parent: str | None = None, *, mandatory: bool = False) -> dict[str, Any]:
    return {
        "id": f"rep.{number}",
        "frameworkId": FRAMEWORK,
        "parentId": parent and f"rep.{parent}",
        "identifier": number,
        "name": f"Requirement {number}",
        "type": kind,
        "isMandatory": mandatory,
    }


def match(source: str, target: str, level: str) -> dict[str, Any]:
    """A match that everybody sees."""
    return {
        "id": f"{source}->{target}",
        "sourceControlId": source,
        "targetControlId": target,
        "matchLevel": level,
    }


def statement(control: str, status: str | None, **more: Any) -> dict[str, Any]:
    """What alpha says of a control."""
    return {
        "id": f"say-{control}",
        "organizationId": ALPHA,
        "controlId": control,
        "coverageStatus": status,
    } | more


# Rules refuse an exclusion without a justification, so that only SQL can make one; an older database may have some.
UNJUSTIFIED = "UPDATE control_coverage SET justification = NULL WHERE control_id = 'rep.1.2'"
