"""The audits of the demo that have checklists: what was in scope, who checked which rows when, and what was found."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from normata.core.schema.fields import parse_timestamp


class AuditPlan(NamedTuple):
    """When somebody brought a framework and policies into the scope of an audit, and made its checklist."""

    moment: str
    by: str
    audit_id: str
    framework_id: str
    policies: Sequence[str]


class AuditDay(NamedTuple):
    """What somebody wrote down after a day of an audit.

    ``rows`` has results and notes by the identifiers of controls and the ids of policies. Whatever else stands under
    one of the identifiers in ``under`` conforms.
    """

    moment: str
    by: str
    audit_id: str
    under: Sequence[str]
    rows: Mapping[str, tuple[str, str]]

    def result_of(self, name: str) -> tuple[str, str | None] | None:
        """The result and the note of a row by its name; null if the day says nothing of it."""
        if name in self.rows:
            return self.rows[name]
        is_under = any(name == one or name.startswith((f"{one}.", f"{one}-")) for one in self.under)
        return ("CONFORMING", None) if is_under else None


def plans() -> list[AuditPlan]:
    """How each checklist was made."""
    return [
        AuditPlan(parse_timestamp(one["plannedAt"]), one["by"], one["auditId"], one["frameworkId"], one["policies"])
        for one in _audits()
    ]


def days() -> list[AuditDay]:
    """The days of all audits."""
    return [
        AuditDay(parse_timestamp(day["at"]), day["by"], one["auditId"], day["under"], day["rows"])
        for one in _audits()
        for day in one["days"]
    ]


def row_found(finding_id: str) -> tuple[str, str] | None:
    """The audit, and the identifier of the row that a finding was made from; null if it was not made from a row."""
    return next(
        ((one["auditId"], one["findings"][finding_id]) for one in _audits() if finding_id in one["findings"]), None
    )


@cache
def _audits() -> Sequence[Mapping[str, Any]]:
    found: list[dict[str, Any]] = json.loads((Path(__file__).parent / "audits.json").read_text("utf-8"))
    return found
