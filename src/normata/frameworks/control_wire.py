"""A control in wire form, with its references."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from normata.core.schema.fields import CoverageStatus, MatchLevel
from normata.core.schema.wire import Wire, wire
from normata.frameworks.model import Control as ControlTable


class FrameworkReference(Wire):
    """The framework that a matched control belongs to."""

    id: str
    name: str
    identifier: str
    identifier_color: str | None


class ControlFramework(FrameworkReference):
    """The framework that a control belongs to."""

    version: str | None
    is_centralized: bool


class ControlReference(Wire):
    """A parent or child of a control."""

    id: str
    identifier: str
    name: str


def reference_to_wire(row: Any) -> dict[str, Any]:
    """The members of :class:`ControlReference` for a row with these columns."""
    return {"id": row.id, "identifier": row.identifier, "name": row.name}


class MatchedControl(ControlReference):
    """The source of a match: if it is covered, so is the control, as far as the match level allows."""

    slug: str
    framework: FrameworkReference


class MatchMapping(Wire):
    """A document of mappings, in its newest version that was imported."""

    id: str
    document: str = Field(description="The identifier that its publisher gave to it.")
    name: str
    version: str | None


class SourceMatch(Wire):
    """A match from a control of another adopted framework, or of the same."""

    id: str
    match_level: MatchLevel
    matched_control: MatchedControl


class CoverageAssessment(Wire):
    """The organization's assessment of a control: `NONE` and null if there is none."""

    coverage_status: CoverageStatus
    coverage_gap: str | None


class Control(wire(ControlTable)):  # type: ignore[misc] # the base class is created from the table
    """A requirement of an adopted framework, or a category of them, with its coverage and the matches that cover it."""

    framework: ControlFramework
    parent: ControlReference | None
    coverage: CoverageAssessment
    effective_coverage_status: CoverageStatus = Field(
        description="What follows from assessments, matches and roll-up: the best of all paths."
    )
    is_indirectly_covered: bool = Field(
        description="Whether matches lift the control above what assessments and roll-up alone would give."
    )
    source_matches: list[SourceMatch]
    children: list[ControlReference]
