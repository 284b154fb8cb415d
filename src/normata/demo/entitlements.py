"""The items of the demo's entitlement reviews: when they were added and decided, and when the review was finished."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from normata.core.schema.fields import parse_timestamp

NEW = ("person", "system", "entitlement", "remark")


class ReviewStep(NamedTuple):
    """What somebody did with a review: ``added`` or ``decided`` items, or finished it, with a ``deadline``."""

    moment: str
    by: str
    review_id: str
    added: Sequence[Mapping[str, Any]] = ()
    decided: Sequence[Mapping[str, Any]] = ()
    deadline: str | None = None


def reviewed() -> frozenset[str]:
    """The ids of the reviews that have items."""
    return frozenset(one["reviewId"] for one in _reviews())


def review_steps() -> list[ReviewStep]:
    """What was done with reviews."""
    found = []
    for one in _reviews():
        review, by, by_moment = one["reviewId"], one["by"], defaultdict(list)
        for item in one["items"]:
            if "decision" in item:
                by_moment[item["decidedAt"]].append(item)
        found.append(ReviewStep(parse_timestamp(one["addedAt"]), by, review, added=one["items"]))
        found += [ReviewStep(parse_timestamp(at), by, review, decided=items) for at, items in by_moment.items()]
        if "finishedAt" in one:
            found.append(ReviewStep(parse_timestamp(one["finishedAt"]), by, review, deadline=one["deadline"]))
    return found


@cache
def _reviews() -> Sequence[Mapping[str, Any]]:
    found: list[dict[str, Any]] = json.loads((Path(__file__).parent / "entitlements.json").read_text("utf-8"))
    return found
