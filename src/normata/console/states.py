"""The meaning of states for readers: a tone of the style sheet, and a shape.

Other values, such as an organization's own, are shown as words only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Meaning(NamedTuple):
    """The tone and the shape of a state. The shape serves people who cannot tell colours apart."""

    tone: str
    shape: str


_DONE, _BEGUN, _OPEN, _BAD = Meaning("full", "●"), Meaning("partial", "◐"), Meaning("info", "○"), Meaning("none", "▲")
_OVER, _HIGH, _MIDDLE, _LOW = Meaning("out", "⊘"), Meaning("partial", "▲"), Meaning("out", "◆"), Meaning("out", "▽")

_MEANINGS: Mapping[str, Meaning] = {
    value: meaning
    for meaning, values in (
        (
            _DONE,
            "DONE RESOLVED VERIFIED CLOSED RECOVERED APPROVED PUBLISHED FINALIZED REVIEWED PASSED ACTIVE CONFORMITY",
        ),
        (_DONE, "MONITORED"),
        (_BEGUN, "SENT SUBMITTED"),
        (
            _BEGUN,
            "IN_PROGRESS IN_REVIEW UNDER_REVIEW IN_TREATMENT TRIAGED CONTAINED ERADICATED WARNING MINOR_NONCONFORMITY",
        ),
        (_OPEN, "TODO OPEN DRAFT PLANNED PROSPECTIVE OBSERVATION OPPORTUNITY_FOR_IMPROVEMENT"),
        (_BAD, "BLOCKED FAILED ERROR SUSPENDED CRITICAL URGENT MAJOR_NONCONFORMITY"),
        (_OVER, "CANCELLED RETIRED DISPOSED INACTIVE TERMINATED SUPERSEDED DISABLED"),
        (_HIGH, "HIGH"),
        (_MIDDLE, "MEDIUM"),
        (_LOW, "LOW"),
    )
    for value in values.split()
}


def meaning(value: str | None) -> Meaning | None:
    """The meaning of a state; null if it is neither good nor bad, or not known."""
    return _MEANINGS.get(value or "")
