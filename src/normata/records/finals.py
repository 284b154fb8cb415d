"""When records are final, and when that ends. It holds for every way of changing records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from normata.core.changes.unit_of_work import UnitOfWork
from normata.errors import WrongState

FINALIZED, _FINAL = "FINALIZED", ("FINALIZED", "SUPERSEDED")
UNFINISHED = ("DRAFT", "IN_REVIEW")
FINALIZATION = ("finalized_at", "finalized_by")
_FROZEN = ("title", "content")


def is_to_finalize(status: str, finalized_at: str | None) -> bool:
    """Whether a record can be finalized."""
    return status in UNFINISHED or (status == FINALIZED and finalized_at is None)  # as a load may have it


def guard_record(_unit: UnitOfWork, before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> None:
    """Raise WrongState if what a final record says changes, unless it gets another status at the same time."""
    if before is None or before["status"] not in _FINAL or after["status"] not in _FINAL:
        return
    if any(before[name] != after[name] for name in _FROZEN):
        raise WrongState(before["status"], UNFINISHED)


def end_finalization(before: Mapping[str, Any] | None, after: dict[str, Any]) -> None:
    """Clear the finalization of a record that gets another status, and begin its next version."""
    if before is None or before["finalized_at"] is None or after["status"] in _FINAL:
        return
    after.update(dict.fromkeys(FINALIZATION))
    if after["current_version"] == before["current_version"]:
        after["current_version"] = (before["current_version"] or 1) + 1
