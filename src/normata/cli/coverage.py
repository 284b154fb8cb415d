"""The commands for frameworks and their coverage: ``adopt``, ``leave``, ``assess``."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from normata.cli.connection import ServerOption, connected
from normata.cli.shared import DatabaseOption, echo, fail

if TYPE_CHECKING:
    from normata.core.changes.source import Fault
    from normata.coverage.assessments import AssessmentInput

_MAX_FILE = 64 * 2**20  # bytes

# The options of the command line, by the fields of an assessment.
_OPTIONS = {
    "coverageStatus": "STATUS",
    "coverageGap": "--gap",
    "isApplicable": "--applicable",
    "justification": "--justification",
    "reasons": "--reason",
    "ownerId": "--owner",
    "note": "--note",
    "reviewBy": "--review-by",
}


class Cleared(StrEnum):
    """What `assess --clear` takes."""

    status = "status"
    gap = "gap"
    applicable = "applicable"
    justification = "justification"
    reasons = "reasons"
    owner = "owner"
    note = "note"
    review_by = "review-by"


_CLEARED = dict(zip(Cleared, _OPTIONS, strict=True))

OrganizationArgument = Annotated[str, typer.Argument(metavar="ORG", help="The organization, by id or slug.")]


def adopt(
    organization: OrganizationArgument,
    frameworks: Annotated[
        list[str], typer.Argument(metavar="FRAMEWORK…", help="Frameworks, by id, slug or identifier.")
    ],
    baseline: Annotated[
        str | None,
        typer.Option(
            help="The baseline of the framework that applies (id, slug or identifier); empty for the whole framework.",
            show_default=False,
        ),
    ] = None,
    database: DatabaseOption = None,
    server: ServerOption = None,
) -> None:
    """Adopt frameworks for an organization, and compute its coverage."""
    with connected(database, server) as backend:
        owner = backend.organization(organization)
        adopted = backend.adopt(owner, frameworks, baseline and baseline.strip())
    for framework_id, is_new in adopted.items():
        echo(f"{framework_id}: {'adopted' if is_new else 'was adopted already'}")


def leave(
    organization: OrganizationArgument,
    frameworks: Annotated[
        list[str], typer.Argument(metavar="FRAMEWORK…", help="Frameworks, by id, slug or identifier.")
    ],
    database: DatabaseOption = None,
    server: ServerOption = None,
) -> None:
    """End the adoption of frameworks by an organization. The assessments of their controls remain stored."""
    with connected(database, server) as backend:
        left = backend.leave(backend.organization(organization), frameworks)
    for framework_id, was_adopted in left.items():
        echo(f"{framework_id}: {'left' if was_adopted else 'was not adopted'}")


def assess(  # noqa: PLR0917 - the parameters are the command line's
    organization: OrganizationArgument,
    control: Annotated[
        str | None, typer.Argument(metavar="CONTROL", help="A control of an adopted framework, by id or identifier.")
    ] = None,
    status: Annotated[
        str | None, typer.Argument(metavar="STATUS", help="How far it is covered: NONE, PARTIAL or FULL.")
    ] = None,
    framework: Annotated[
        str | None, typer.Option(help="The framework, if several have the identifier.", show_default=False)
    ] = None,
    gap: Annotated[str | None, typer.Option(help="What is missing.", show_default=False)] = None,
    applicable: Annotated[
        bool | None, typer.Option("--applicable/--not-applicable", help="Whether the control applies at all.")
    ] = None,
    justification: Annotated[str | None, typer.Option(help="Why it applies, or does not.", show_default=False)] = None,
    reason: Annotated[
        list[str] | None,
        typer.Option(help="Why it is included, such as LEGAL. May be repeated.", show_default=False),
    ] = None,
    owner: Annotated[str | None, typer.Option(help="The responsible member, by id.", show_default=False)] = None,
    note: Annotated[str | None, typer.Option(help="How the control is implemented.", show_default=False)] = None,
    review_by: Annotated[
        str | None, typer.Option(help="The day by which the assessment has to be reviewed.", show_default=False)
    ] = None,
    clear: Annotated[
        list[Cleared] | None,
        typer.Option(help="Remove this value from the assessment. May be repeated. Without status: not assessed."),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            help="Read assessments from a CSV file instead: framework, identifier, status, gap, applicable,"
            " justification, reasons, owner, note, review-by."
            " An empty cell leaves the stored value, a hyphen removes it.",
            show_default=False,
        ),
    ] = None,
    database: DatabaseOption = None,
    server: ServerOption = None,
) -> None:
    """Assess a control, or all controls of a CSV file; omitted fields stay as they are."""
    from normata.core.changes.source import FaultyInput

    options = {
        "coverageStatus": status and status.upper(),
        "coverageGap": gap,
        "isApplicable": applicable,
        "justification": justification,
        "reasons": reason and [one.upper() for one in reason],
        "ownerId": owner,
        "note": note,
        "reviewBy": review_by,
    }
    options = {name: value for name, value in options.items() if value is not None}
    options |= {_CLEARED[one]: [] if one is Cleared.reasons else None for one in clear or ()}
    if (file is None) == (control is None) or (file is None and not options) or (file and (options or framework)):
        fail("name a control and its assessment, or a file with --file", code=2)
    assessments, faults = (
        _read_file(file) if file is not None else ([_assessment(str(control), framework, options)], [])
    )

    try:
        with connected(database, server) as backend:
            items = backend.assess(backend.organization(organization), assessments, faults)
    except FaultyInput as error:
        if file is not None:
            raise
        fail(_sentence(error.faults))
    for one in items if file is None else ():
        applies = ", not applicable" if one["coverage"]["isApplicable"] is False else ""
        assessed = status_words(one["coverage"]["coverageStatus"]).replace(":", "")
        named = f"{one['framework']['identifier']} {one['control']['identifier']} {one['control']['name']}"
        echo(f"{named}: {assessed}{applies}; effective {one['effectiveCoverageStatus']}")
    if file is not None:
        echo(f"{len(items)} assessment{'s' if len(items) != 1 else ''} stored")


def status_words(status: str | None) -> str:
    """The status of an assessment, in words."""
    return "not assessed" if status is None else f"assessed: {status}"


def _read_file(path: Path) -> tuple[list[AssessmentInput], list[Fault]]:
    """The assessments and the faults of a file."""
    from normata.core.changes.source import Fault
    from normata.core.documents.files import Unreadable, read_input
    from normata.coverage.assessment_table import parse_assessments

    try:
        text = read_input(path, _MAX_FILE)
    except Unreadable as error:
        return [], [Fault(str(path), "", str(error))]
    return parse_assessments(text, str(path))


def _assessment(control: str, framework: str | None, options: dict[str, Any]) -> AssessmentInput:
    """The assessment in the arguments; the command fails if it is not valid."""
    from pydantic import ValidationError

    from normata.core.changes.source import Row
    from normata.core.schema.faults import describe
    from normata.coverage.assessments import AssessmentFields, AssessmentInput

    source = Row("controlCoverages", "the command line", "", {}, _OPTIONS)
    try:
        fields = AssessmentFields.model_validate(options)
    except ValidationError as error:
        fail(_sentence([source.fault(str(one["loc"][0]), describe(one)[1]) for one in error.errors()]), code=2)
    return AssessmentInput(source, fields.values_by_column(), name=control, framework=framework)


def _sentence(faults: Iterable[Fault]) -> str:
    """The faults of the arguments. A fault without a place is about the control."""
    return "; ".join(dict.fromkeys(f"{fault.place[1:] or 'CONTROL'} {fault.reason}" for fault in faults))
