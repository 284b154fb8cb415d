"""What was done with the assessments of vendors in the demo, and the answers in ``vendor_answers.json``.

The questionnaires that the organization has written itself are in ``questionnaires.json``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

from normata.demo.moments import between, day_after

Values = Mapping[str, Any]
Doing = tuple[str, Literal["create", "send", "answer", "submit", "review"], str, Values]

_AT_FIRST = ("shortId", "title", "notes", "vendorId", "ownerId", "deadline")
_OF_REVIEWS = (
    *("inherentProbability", "inherentImpact", "inherentReason"),
    *("residualProbability", "residualImpact", "residualReason", "nextAssessmentAt"),
)


def doings(record: Values, creator: str, owner: str) -> Iterator[Doing]:
    """When what was done with an assessment, by whom, and with which values, as far as it came."""
    yield record["createdAt"], "create", creator, {name: record[name] for name in _AT_FIRST if name in record}
    if sent := record.get("sentAt"):
        yield sent, "send", owner, {}
        submitted = record.get("submittedAt")
        answered = between(sent, submitted or day_after(sent, 7), 0.9)
        yield answered, "answer", owner, {"answers": _answers()[record["id"]]}
        if submitted:
            yield submitted, "submit", owner, {}
    if reviewed := record.get("reviewedAt"):
        by = record["reviewedById"].replace("member-", "user-")
        yield reviewed, "review", by, {name: record.get(name) for name in _OF_REVIEWS}


@cache
def _answers() -> Mapping[str, Any]:
    found: dict[str, Any] = _content("vendor_answers.json")
    return found


def questionnaires() -> Sequence[Values]:
    """The questionnaires of its own, each with the moment at which it was written."""
    found: Sequence[Values] = _content("questionnaires.json")
    return found


def _content(name: str) -> Any:
    return json.loads((Path(__file__).parent / name).read_text("utf-8"))
