"""What ISO/IEC 27001, 6.1.3 d, would object to in a statement of applicability."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import Field

from normata.core.schema.wire import Wire

# What the standard demands and is missing: a justification for each included and each excluded control, and whether it
# is implemented.
EXCLUDED_WITHOUT_JUSTIFICATION = "EXCLUDED_WITHOUT_JUSTIFICATION"
INCLUDED_WITHOUT_JUSTIFICATION = "INCLUDED_WITHOUT_JUSTIFICATION"
APPLICABLE_WITHOUT_STATUS = "APPLICABLE_WITHOUT_STATUS"
MANDATORY_EXCLUDED = "MANDATORY_EXCLUDED"
CONFLICTING = "CONFLICTING"
OBJECTIONS = (
    *(EXCLUDED_WITHOUT_JUSTIFICATION, INCLUDED_WITHOUT_JUSTIFICATION, APPLICABLE_WITHOUT_STATUS),
    *(MANDATORY_EXCLUDED, CONFLICTING),
)


class ObjectionCounts(Wire):
    """The number of requirements with each objection."""

    excluded_without_justification: int = Field(description="How many do not apply, and nothing says why.")
    included_without_justification: int = Field(
        description="How many apply, and neither reasons nor a justification say why."
    )
    applicable_without_status: int = Field(description="How many apply and are not assessed.")
    mandatory_excluded: int = Field(description="How many are mandatory and excluded nevertheless.")
    conflicting: int = Field(description="How many have an assessment in conflict with their effective coverage.")


def objections_to(requirement: Any, *, is_justified: bool) -> Iterator[str]:
    """The objections to a requirement; ``is_justified`` is true if words say why it applies or does not.

    Nobody decides whether what is mandatory applies, so nobody has to justify it.
    """
    if requirement.is_mandatory:
        if not requirement.is_applicable:
            yield MANDATORY_EXCLUDED
        elif requirement.conflict:
            yield CONFLICTING
        return
    if not requirement.is_applicable:
        if not (is_justified or _is_left_out(requirement)):
            yield EXCLUDED_WITHOUT_JUSTIFICATION
        return
    if requirement.conflict:
        yield CONFLICTING
    if not (requirement.reasons or is_justified):
        yield INCLUDED_WITHOUT_JUSTIFICATION
    if requirement.assessed is None:
        yield APPLICABLE_WITHOUT_STATUS


def objection_counts(entries: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """The members of :class:`ObjectionCounts`."""
    found = Counter(objection for entry in entries for objection in entry["objections"])
    return {
        "excludedWithoutJustification": found[EXCLUDED_WITHOUT_JUSTIFICATION],
        "includedWithoutJustification": found[INCLUDED_WITHOUT_JUSTIFICATION],
        "applicableWithoutStatus": found[APPLICABLE_WITHOUT_STATUS],
        "mandatoryExcluded": found[MANDATORY_EXCLUDED],
        "conflicting": found[CONFLICTING],
    }


def _is_left_out(requirement: Any) -> bool:
    """Whether the baseline, and not an assessment, excludes a requirement: that is its justification."""
    return requirement.outside_id is not None and requirement.decision is None
