"""Why an assessment is stale: changed wordings of its control, and the form that confirms it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from normata.console.differences import Piece, difference
from normata.console.texts import text
from normata.core.schema.text import same_wording

REVIEW_OVERDUE, WORDING_CHANGED = "REVIEW_OVERDUE", "WORDING_CHANGED"
_WORDED = ("identifier", "name", "description")


class ChangedText(NamedTuple):
    """A changed text of a control: its label, the difference, and the whole earlier text."""

    label: str
    pieces: Sequence[Piece]
    earlier: str


class ChangedWording(NamedTuple):
    """The changes since an assessment was made, and the version of the framework then; empty if it had none."""

    version: str
    texts: Sequence[ChangedText]


def reasons_of(coverage: Mapping[str, Any]) -> dict[str, str]:
    """The reasons why an assessment is stale, each with the time since when."""
    return {one["reason"]: one["since"] for one in coverage["stale"]}


def changed_wording(wordings: Mapping[str, Any]) -> ChangedWording | None:
    """The difference between the assessed wording and the present one; null if the former is not known."""
    assessed = next((one for one in wordings["earlier"] if one["isAssessed"]), None)
    if assessed is None:
        return None
    return ChangedWording(
        assessed["version"] or "",
        [
            ChangedText(
                text(f"field.{name}"), difference(assessed[name] or "", wordings[name] or ""), assessed[name] or ""
            )
            for name in _WORDED
            if not same_wording(assessed[name], wordings[name])
        ],
    )
