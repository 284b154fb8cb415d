"""Validation of OSCAL documents against the models of NIST, with messages and places of faults.

OSCAL is the Open Security Controls Assessment Language. Its models come with compliance-trestle, the optional extra
``oscal``. They are imported when the first document is read, because the import takes longer than most commands.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import TypeAdapter, ValidationError

from normata.core.changes.source import Fault
from normata.core.documents.json_text import place

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from normata.catalogs.documents import Document

_MAX_COMPLAINTS = 20_000  # each takes about a kilobyte of memory


def validated(document: Document, module: str, faults: list[Fault]) -> Any | None:
    """The document as trestle's model of it; null if it is invalid, and then ``faults`` has the reasons.

    ``module`` names the part of trestle that has the model.
    """
    try:
        model = import_module(f"trestle.oscal.{module}").Model
    except ImportError:
        reason = "is OSCAL, which needs compliance-trestle: install normata[oscal]"
        faults.append(Fault(document.file, "", reason))
        return None
    try:
        # Not model.model_validate, because trestle's version replaces all errors by one without a place if the version
        # is wrong.
        return TypeAdapter(model).validate_python(document.values)
    except ValidationError as error:
        faults += _invalid(document, error)
        return None


_Step: TypeAlias = int | str


@dataclass(frozen=True, slots=True)
class _Complaint:
    """An error of Pydantic about the value at ``where``, relative to a value above it."""

    where: tuple[_Step, ...]
    kind: str
    message: str

    def below(self) -> _Complaint:
        return _Complaint(self.where[1:], self.kind, self.message)


def _invalid(document: Document, error: ValidationError) -> list[Fault]:
    if error.error_count() > _MAX_COMPLAINTS:
        reason = f"breaks the rules of OSCAL in more than {_MAX_COMPLAINTS:,} places"
        return [Fault(document.file, "", reason)]
    complaints = [_Complaint(entry["loc"], entry["type"], entry["msg"]) for entry in error.errors(include_url=False)]
    found = (Fault(document.file, place(*steps), reason) for steps, reason in _located(document.values, (), complaints))
    return list(dict.fromkeys(found))


def _located(
    value: object, place: tuple[_Step, ...], complaints: Sequence[_Complaint]
) -> Iterator[tuple[tuple[_Step, ...], str]]:
    """The place in the document and the reason of each error.

    If a value may have one of several shapes, Pydantic puts the name of the shape between the steps of the place and
    reports errors for each shape. Only those of the shape that fits best are useful.
    """
    inside: dict[_Step, list[_Complaint]] = {}
    shapes: dict[_Step, list[_Complaint]] = {}
    for complaint in complaints:
        if not complaint.where:
            yield place, _reason(complaint)
        elif complaint.kind == "missing" and len(complaint.where) == 1:
            yield (*place, complaint.where[0]), _reason(complaint)
        else:
            step = complaint.where[0]
            (inside if _has(value, step) else shapes).setdefault(step, []).append(complaint.below())
    for step, below in inside.items():
        yield from _located(value[step], (*place, step), below)  # type: ignore[index]
    if shapes:
        yield from _located(value, place, min(shapes.values(), key=_misfit))


def _has(value: object, step: _Step) -> bool:
    if isinstance(value, list):
        return isinstance(step, int) and step < len(value)
    return isinstance(value, dict) and step in value


def _misfit(complaints: Sequence[_Complaint]) -> tuple[bool, int, int]:
    """How badly a shape fits: a wrong type or unknown keys count more than other errors."""
    another_thing = any(not complaint.where for complaint in complaints)
    strangers = sum(complaint.kind == "extra_forbidden" and len(complaint.where) == 1 for complaint in complaints)
    return another_thing, strangers, len(complaints)


# Pydantic quotes the whole expression, which has hundreds of characters for OSCAL's tokens.
_REASONS = {
    "missing": "is required",
    "extra_forbidden": "is not a field that OSCAL has here",
    "string_pattern_mismatch": "does not have the form that OSCAL demands",
}


def _reason(complaint: _Complaint) -> str:
    return _REASONS.get(complaint.kind) or complaint.message[:1].lower() + complaint.message[1:]
