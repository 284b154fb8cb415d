"""The operations that commands call. A test compares them with the declarations."""

from __future__ import annotations

from normata.cli.backend import Call

_FRAMEWORKS = "normata.frameworks.operations"
_REPORTS = "normata.reports.operations"
_HISTORY = "normata.history.operations"
_RESPONSIBILITIES = "normata.records.responsibilities.operations"

ORGANIZATIONS = Call("GET", "/organizations/", "normata.identity.organizations.operations")
FRAMEWORKS = Call("GET", "/frameworks/", _FRAMEWORKS)
CONTROLS = Call("GET", "/controls/", _FRAMEWORKS)
CONTROL = Call("GET", "/controls/{id}/", "normata.coverage.control_operations")
NAMES = Call("GET", "/names/", "normata.names.operations")

EXPLANATION = Call("GET", "/controls/{id}/coverage/", "normata.evidence.explanation_operations")
GAPS = Call("GET", "/frameworks/{id}/gaps/", _REPORTS)
STATEMENT = Call("GET", "/frameworks/{id}/statement-of-applicability/", _REPORTS)
HISTORY = Call("GET", "/frameworks/{id}/coverage/history/", _HISTORY)
CHANGES = Call("GET", "/coverage/changes/", _HISTORY)
ASSESSMENTS = Call("PATCH", "/controls/coverage/", "normata.coverage.assessment_operations")
ADOPTION = Call("PUT", "/frameworks/{id}/adoption/", "normata.adoption.operations")
LEAVING = Call("DELETE", "/frameworks/{id}/adoption/", "normata.adoption.operations")
CHECKPOINT = Call("GET", "/events/checkpoint/", "normata.events.operations")

MEMBERS = Call("GET", "/members/", "normata.identity.members.operations")
MEMBER_CHANGE = Call("PATCH", "/members/{id}/", _RESPONSIBILITIES)
MEMBER_REMOVAL = Call("DELETE", "/members/{id}/", _RESPONSIBILITIES)
HANDOVER = Call("POST", "/members/{id}/handover/", _RESPONSIBILITIES)
INVITING = Call("POST", "/invitations/", "normata.identity.invitations.operations")

# The kinds of records, by their paths.
KINDS = (
    *("tasks", "auditItems", "assets", "policies", "record-categories", "entitlement-reviews", "audits"),
    *("risk-reviews", "acronyms", "labels", "integration-checks", "incidents", "vendors", "records"),
    *("vulnerability-classes", "variables", "evidence", "risks", "vendor-assessments"),
)


def of_kind(method: str, kind: str, step: str = "") -> Call:
    """An operation of a kind of records: ``{id}/`` is that of one record, and ``{id}/archive/`` a step of it."""
    return Call(method, f"/{kind}/{step}", "normata.records.operations")


def importing(kind: str) -> Call:
    """The operation that imports the register of a kind of records."""
    return Call("POST", f"/{kind}/import/", "normata.records.imports.operations")
