"""What the values of a state mean to a reader: a tone of the style sheet and a shape, for a word that has both.

A value that is not here, such as one of an organization's own, is a word without them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Meaning(NamedTuple):
    """The class of the style sheet that a value has, and its shape: colour is never alone."""

    tone: str
    shape: str


_DONE, _BEGUN, _OPEN, _BAD = Meaning("full", "●"), Meaning("partial", "◐"), Meaning("info", "○"), Meaning("none", "▲")
_OVER, _HIGH, _MIDDLE, _LOW = Meaning("out", "⊘"), Meaning("partial", "▲"), Meaning("out", "◆"), Meaning("out", "▽")

_MEANINGS: Mapping[str, Meaning] = {
    value: meaning
    for meaning, values in (
        (
            _DONE,
            "DONE RESOLVED VERIFIED CLOSED RECOVERED APPROVED PUBLISHED FINALIZED PASSED ACTIVE CONFORMITY",
        ),
        (_BEGUN, "IN_PROGRESS IN_REVIEW UNDER_REVIEW TRIAGED CONTAINED ERADICATED WARNING MINOR_NONCONFORMITY"),
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
    """What a value of a state means; null for one that says nothing good or bad."""
    return _MEANINGS.get(value or "")
