"""Assessments and evidence in words, for tables and terminals. It needs no database."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

STALE_WORDS = {
    "REVIEW_OVERDUE": "its review is overdue",
    "EVIDENCE_ENDED": "no evidence is valid any more",
    "WORDING_CHANGED": "the control is worded otherwise",
}
_IMPLEMENTED = {"YES": "yes", "PARTLY": "partly", "NO": "no", "NOT_ASSESSED": "not assessed", None: None}


def day(moment: str) -> str:
    """The day of a moment, in UTC."""
    return moment[: len("2026-11-20")]


def implemented(entry: Mapping[str, Any]) -> str | None:
    """Whether a requirement is implemented, in words; if it is not, by when that is planned."""
    words = _IMPLEMENTED[entry["implemented"]]
    return f"{words}, planned by {day(entry['plannedBy'])}" if entry["plannedBy"] else words


def evidence_words(evidence: Mapping[str, Any] | None) -> str | None:
    """How much evidence there is, in words: how many pieces, and until when."""
    if evidence is None:
        return None
    count = f"{evidence['pieces']} piece{'' if evidence['pieces'] == 1 else 's'}"
    if evidence["endsAt"] is None:
        return f"{count}, without end"
    if evidence["isValid"]:
        return f"{count}, until {_last_day(evidence['endsAt'])}"
    return f"{count}, none valid since {day(evidence['endsAt'])}"


def _last_day(ends_at: str) -> str:
    """The last day on which something is valid that ends at a moment."""
    last = datetime.fromisoformat(ends_at) - timedelta(milliseconds=1)
    return last.astimezone(UTC).date().isoformat()
