"""The operations that import catalogs: as an organization's own framework, and for all organizations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Any

from pydantic import Field

from normata.catalogs import uploads
from normata.catalogs.documents import ImportFormat
from normata.catalogs.importing import Outcome, import_for_all
from normata.catalogs.reading import Input
from normata.catalogs.registry import by_media_type, list_of_formats
from normata.catalogs.tables import COLUMNS
from normata.core.changes.row_counts import RowCounts
from normata.core.changes.source import FaultyInput
from normata.core.changes.unit_of_work import UnitOfWork, insert_of
from normata.core.changes.writing import BODY, every_column_of
from normata.core.db.transaction import Transaction
from normata.core.http.operation import BodyFormat, ChangeOperation, Operation
from normata.core.http.problems import FieldFault, InvalidRequest
from normata.core.http.request import Request
from normata.core.schema.fields import MatchLevel, Name
from normata.core.schema.paging import OrganizationQuery, Query, QueryFlag
from normata.core.schema.wire import Wire
from normata.coverage.recompute import COVERAGE_WRITES
from normata.coverage.rewording import WORDING_WRITES
from normata.frameworks.baseline_model import Baseline, BaselineControl
from normata.frameworks.model import Control, ControlMatch, Framework, MappingDocument
from normata.frameworks.source_model import SourceDocument
from normata.identity.organization_lookup import one_of

_MAX_REPORTED = 50  # faults, or skipped mappings
_SKIP_UNKNOWN = "skipUnknown=true"
_ARRAYS = ("frameworks", "controls", "baselines", "baselineControls", "controlMatches")


class CatalogImportQuery(Query):
    """The query of an import."""

    name: Annotated[
        Name | None,
        Field(description="The name of the framework. Required for a table; reuse it to update the framework."),
    ] = None
    skip_unknown: Annotated[
        QueryFlag, Field(description="Whether to skip mappings of unknown controls, instead of refusing them.")
    ] = False
    editorial: Annotated[
        QueryFlag,
        Field(description="Whether changed wordings mean the same: then no assessment becomes stale by them."),
    ] = False


class ImportQuery(CatalogImportQuery, OrganizationQuery):
    """The query of an import as an organization's own framework."""


class ImportedRows(Wire):
    """The row counts of an import for one kind of rows."""

    new: int = Field(description="The number of rows added.")
    changed: int = Field(description="The number of existing rows that change.")
    unchanged: int = Field(description="The number of existing rows that stay the same.")


class ImportLeftOut(Wire):
    """A mapping that is skipped because it refers to controls that no catalog has."""

    place: str = Field(description="Its place in the body: a JSON Pointer.")
    unknown: list[str] = Field(description="The unknown controls.")


class ImportRetired(Wire):
    """A match that does not count any more."""

    id: str
    source_control_id: str = Field(description="The control that it leads from.")
    target_control_id: str = Field(description="The control that it leads to.")
    match_level: MatchLevel


class ImportReworded(Wire):
    """A control whose wording changes."""

    id: str
    identifier: str
    name: str
    changed: list[str] = Field(description="What is worded otherwise: `identifier`, `name`, `description`.")


class ImportOmission(Wire):
    """A part of a file that Normata does not import, such as translations."""

    name: str = Field(description="What it is.")
    count: int = Field(description="How many there are.")


class ImportResult(Wire):
    """The result of an import."""

    framework_ids: list[str] = Field(description="The ids of the imported frameworks, and of those of baselines.")
    frameworks: ImportedRows = Field(description="The changes of frameworks.")
    controls: ImportedRows = Field(description="The changes of controls.")
    baselines: ImportedRows = Field(description="The changes of baselines.")
    baseline_controls: ImportedRows = Field(
        description="The changes of what baselines select: a control that is left out any more, or is back, is changed."
    )
    control_matches: ImportedRows = Field(description="The changes of matches.")
    left_out: int = Field(description="The number of skipped mappings.")
    first_left_out: list[ImportLeftOut] = Field(description=f"The first {_MAX_REPORTED} skipped mappings.")
    retired: int = Field(description="The number of matches that this version of their mapping does not have any more.")
    first_retired: list[ImportRetired] = Field(description=f"The first {_MAX_REPORTED} of these matches.")
    returned: int = Field(description="The number of matches that were retired and are in this version again.")
    reworded: int = Field(
        description="The number of existing controls whose identifier, name or description has other words. White space"
        " and letter case do not count."
    )
    first_reworded: list[ImportReworded] = Field(description=f"The first {_MAX_REPORTED} of these controls.")
    omitted: list[ImportOmission] = Field(description="What the file has and Normata does not keep, by sort.")


def _read(formats: Sequence[ImportFormat], content: bytes, query: CatalogImportQuery) -> uploads.Upload:
    if query.name is None and all(one.needs_name for one in formats):
        message = "is required: a table does not contain the name of its framework"
        raise InvalidRequest.of([FieldFault(in_="query", name="name", code="required", message=message, allowed=None)])
    return uploads.read_upload(Input(BODY, query.name or "", lambda: content, formats))


def _plan_own(unit: UnitOfWork, request: Request) -> uploads.Plan:
    query: ImportQuery = request.query
    with _first_faults():
        return uploads.plan(
            unit,
            query.organization_id,
            request.body,
            name=query.name,
            skip_unknown=query.skip_unknown,
            option=_SKIP_UNKNOWN,
        )


def _take_as_own(unit: UnitOfWork, request: Request) -> dict[str, Any]:
    query: ImportQuery = request.query
    with _first_faults():
        outcome = uploads.take(
            unit,
            query.organization_id,
            request.body,
            name=query.name,
            skip_unknown=query.skip_unknown,
            option=_SKIP_UNKNOWN,
            editorial=query.editorial,
            planned=request.plan,
        )
    return _result(outcome)


def _take_for_all(unit: UnitOfWork, request: Request) -> dict[str, Any]:
    query: CatalogImportQuery = request.query
    upload: uploads.Upload = request.body
    with _first_faults():
        outcome = import_for_all(
            unit,
            upload.published,
            skip_unknown=query.skip_unknown,
            option=_SKIP_UNKNOWN,
            editorial=query.editorial,
            faults=upload.faults,
        )
    return _result(outcome)


def _own_import(transaction: Transaction, request: Request) -> str:
    """Exclusive access: an organization has one import at a time."""
    return f"imports {one_of(transaction, request.query.organization_id, request.caller.roles)}"


@contextmanager
def _first_faults() -> Iterator[None]:
    try:
        yield
    except FaultyInput as error:
        raise FaultyInput(error.faults[:_MAX_REPORTED]) from error


def _result(outcome: Outcome) -> dict[str, Any]:
    every = {array: outcome.row_counts.get(array, RowCounts()) for array in _ARRAYS}
    retired, reworded = outcome.retirement.matches, outcome.rewording.controls
    return {
        "frameworkIds": outcome.framework_ids,
        **{
            array: {"new": counts.inserted, "changed": counts.updated, "unchanged": counts.unchanged}
            for array, counts in every.items()
        },
        "leftOut": len(outcome.unknown),
        "firstLeftOut": [{"place": one.place, "unknown": list(one.unknown)} for one in outcome.unknown[:_MAX_REPORTED]],
        "retired": len(retired),
        "firstRetired": [
            {
                "id": one.id,
                "sourceControlId": one.source,
                "targetControlId": one.target,
                "matchLevel": one.level,
            }
            for one in retired[:_MAX_REPORTED]
        ],
        "returned": outcome.retirement.returned,
        "reworded": len(reworded),
        "firstReworded": [
            {
                "id": one.id,
                "identifier": one.after.identifier,
                "name": one.after.name,
                "changed": one.differing,
            }
            for one in reworded[:_MAX_REPORTED]
        ],
        "omitted": [{"name": name, "count": count} for name, count in sorted(outcome.left_out.items())],
    }


_NONE = {"new": 0, "changed": 0, "unchanged": 0}
_RESULT = {
    "frameworks": _NONE | {"new": 1},
    "controls": _NONE | {"new": 2},
    "baselines": _NONE,
    "baselineControls": _NONE,
    "controlMatches": _NONE,
    "leftOut": 0,
    "firstLeftOut": [],
    "retired": 0,
    "firstRetired": [],
    "returned": 0,
    "reworded": 0,
    "firstReworded": [],
    "omitted": [],
}
_LARGEST = 16 * 2**20  # bytes
_FORMATS = {
    media_type.name: BodyFormat(
        partial(_read, formats),
        media_type.schema,
        next((one.example for one in formats if one.example), None),
        media_type.endings,
    )
    for media_type, formats in by_media_type().items()
}
_WRITES = (
    insert_of(Framework),
    every_column_of(Framework),
    insert_of(Control),
    every_column_of(Control),
    insert_of(Baseline),
    every_column_of(Baseline),
    insert_of(BaselineControl),
    every_column_of(BaselineControl),
    insert_of(SourceDocument),
    every_column_of(SourceDocument),
    insert_of(MappingDocument),
    every_column_of(MappingDocument),
    insert_of(ControlMatch),
    every_column_of(ControlMatch),
    *WORDING_WRITES,
    *COVERAGE_WRITES,
)

OPERATIONS: tuple[Operation, ...] = (
    ChangeOperation(
        http_method="POST",
        path="/imports/",
        operation_id="importCatalog",
        is_long=True,
        tag="Frameworks",
        summary="Import a catalog as a framework of your own",
        description=f"""\
Accepts the same formats as `normata import`: {list_of_formats()}.
Of an XLSX workbook, only the first sheet is read. The first row of a table names its columns: {", ".join(COLUMNS)}.
Only `identifier` is required. `parent` is the identifier of another row, `mandatory` is yes or no. A row that other
rows name as their parent becomes a category; where `decomposed` is yes, it becomes a control that they are all of.

The imported framework belongs to the organization, whoever published it, and no other organization sees it. Repeating
an import changes nothing, and importing a newer version updates the existing rows. Nothing is ever deleted. Mappings
become the organization's own matches, between its own imports and the frameworks that it can see. An OSCAL profile
becomes the organization's own baseline of a centralized framework; `omitted` counts what it sets or alters, which is
not imported.

If an existing control gets another wording, its assessment becomes stale (`WORDING_CHANGED`), unless `editorial=true`.

Either everything is stored or nothing: then the first {_MAX_REPORTED} faults are reported, each with its place.
`dryRun=true` reports what would be stored. An organization has one import at a time, dry runs included: meanwhile
others are answered 409 `import_in_progress`.""",
        role="admin",
        query=ImportQuery,
        body_formats=_FORMATS,
        body_required=True,
        body_limit=_LARGEST,
        body_example=next(iter(_FORMATS.values())).example,
        has_rules=True,
        exclusive=_own_import,
        prepare=_plan_own,
        work=_take_as_own,
        present=lambda result: result,
        writes=_WRITES,
        answer=ImportResult,
        answer_description="The result.",
        example=_RESULT | {"frameworkIds": ["7f9f57a0-65cf-5a3c-9d1c-3c3f4a1b9d10"]},
    ),
    ChangeOperation(
        http_method="POST",
        path="/catalogs/",
        operation_id="importCentralizedCatalog",
        is_long=True,
        tag="Frameworks",
        summary="Import a catalog for all organizations",
        description=f"""\
Accepts the same body as `POST /imports/`, from an operator of the instance. The imported framework becomes centralized,
with the ids of its publisher: all organizations see it and may adopt it. An OSCAL profile becomes a baseline of the
centralized framework of its catalog, for all. The effective coverage of organizations that have adopted it is updated
in the same transaction, and their admins are notified of lost coverage, and of assessments that become stale because
their controls are worded otherwise. The operator sees nothing of that, neither in the response nor in a dry run.

Either everything is stored or nothing: then the first {_MAX_REPORTED} faults are reported, each with its place.
`normata import` does the same on the command line. There is one such request at a time, dry runs included: meanwhile
others are answered 409 `import_in_progress`.""",
        authority="operator",
        scope="admin",
        query=CatalogImportQuery,
        body_formats=_FORMATS,
        body_required=True,
        body_limit=_LARGEST,
        body_example=next(iter(_FORMATS.values())).example,
        has_rules=True,
        changes_catalogs=True,
        exclusive=lambda _transaction, _request: "catalogs",
        work=_take_for_all,
        present=lambda result: result,
        writes=_WRITES,
        answer=ImportResult,
        answer_description="The result.",
        example=_RESULT | {"frameworkIds": ["urn:harbourlight:framework:docks"]},
    ),
)
