"""When the vendor and the questionnaire of an assessment may change. It holds for every way of changing records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from normata.core.changes.unit_of_work import UnitOfWork
from normata.errors import WrongState

DRAFT, SENT, SUBMITTED, REVIEWED, SUPERSEDED = "DRAFT", "SENT", "SUBMITTED", "REVIEWED", "SUPERSEDED"
REVIEW = "/vendor-assessments/{id}/review/"  # the step that sets the last assessment of a vendor
_FIXED = ("vendor_id", "questionnaire_id")


def guard_assessment(_unit: UnitOfWork, before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> None:
    """Raise WrongState if an assessment that was sent shall be about another vendor, or ask other questions."""
    if before is not None and before["status"] != DRAFT and any(before[name] != after[name] for name in _FIXED):
        raise WrongState(before["status"], (DRAFT,))
