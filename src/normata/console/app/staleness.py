"""What makes an assessment stale: the wording that has changed since, and the form that confirms it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from normata.console.differences import Piece, difference
from normata.console.texts import text
from normata.core.schema.text import same_wording

REVIEW_OVERDUE, WORDING_CHANGED = "REVIEW_OVERDUE", "WORDING_CHANGED"
_WORDED = ("identifier", "name", "description")


class ChangedText(NamedTuple):
    """A text of a control that is another one now: what it is called, what has become of it, and how it was."""

    label: str
    pieces: Sequence[Piece]
    earlier: str


class ChangedWording(NamedTuple):
    """What has changed since an assessment was made, and the version that it was made on; empty if that has none."""

    version: str
    texts: Sequence[ChangedText]


def reasons_of(coverage: Mapping[str, Any]) -> dict[str, str]:
    """Why an assessment is stale, each with since when."""
    return {one["reason"]: one["since"] for one in coverage["stale"]}


def changed_wording(wordings: Mapping[str, Any]) -> ChangedWording | None:
    """The difference between the wording that was assessed and today's; null if it is not known."""
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
