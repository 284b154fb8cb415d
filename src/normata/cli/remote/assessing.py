"""Assessments that a server stores, with faults at the places of the input."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from pydantic.alias_generators import to_camel

from normata.cli.backend import Refused, RefusedField
from normata.core.changes.source import Fault, FaultyInput
from normata.coverage.assessments import MAX_AT_ONCE, AssessmentInput
from normata.errors import CommandError

_PLACE = re.compile(r"assessments/([0-9]+)(?:/(.*))?")
_OTHER = re.compile(r"/assessments/([0-9]+)")
_NAMES = ("controlId", "identifier")


def assess(
    send: Callable[[dict[str, Any], bool], Any],
    is_id: Callable[[str], bool],
    assessments: Sequence[AssessmentInput],
    found: Sequence[Fault],
) -> list[Any]:
    """Have ``send`` store assessments, or only try that if faults were ``found`` before: what the answer lists.

    ``is_id`` says whether a name is the id of a control. Raises FaultyInput, and CommandError if there are too many.
    """
    if len(assessments) > MAX_AT_ONCE:
        raise CommandError(
            f"a server takes at most {MAX_AT_ONCE} assessments at once, and there are {len(assessments):,}; split the"
            " file, or run this on the database"
        )
    body = {"assessments": [_sent(one, is_id) for one in assessments]}
    faults = [*found]
    items: list[Any] = []
    try:
        if assessments:
            answer = send(body, bool(faults))
            items = [] if faults else answer["items"]
    except Refused as error:
        if not error.faults:
            raise
        faults += [_fault(one, assessments) for one in error.faults]
    if faults:
        raise FaultyInput(faults)
    return items


def _sent(one: AssessmentInput, is_id: Callable[[str], bool]) -> dict[str, Any]:
    """An assessment as the operation takes it."""
    control = {"controlId": one.control_id, "identifier": one.identifier}
    if one.name is not None:
        control = {"controlId" if is_id(one.name) else "identifier": one.name}
    control["framework"] = one.framework
    named = {name: value for name, value in control.items() if value is not None}
    return named | {to_camel(name): value for name, value in one.values.items()}


def _fault(refused: RefusedField, assessments: Sequence[AssessmentInput]) -> Fault:
    """A fault that a server has found, at its place in the input."""
    place = _PLACE.fullmatch(refused.name)
    if place is None or int(place[1]) >= len(assessments):
        return Fault("the server", "", str(refused))
    one = assessments[int(place[1])]
    field = None if one.name is not None and place[2] in _NAMES else place[2]

    def in_input(other: re.Match[str]) -> str:
        number = int(other[1])
        return assessments[number].source.place or "another" if number < len(assessments) else other[0]

    return one.source.fault(field or None, _OTHER.sub(in_input, refused.message))
