"""The operations that import catalogs: as a framework of an organization's own, and for everybody."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Any

from pydantic import Field

from normata.catalogs import uploads
from normata.catalogs.import_format import ImportFormat
from normata.catalogs.importing import import_for_all
from normata.catalogs.reading import Input
from normata.catalogs.registry import by_media_type, list_of_formats
from normata.catalogs.tables import COLUMNS
from normata.catalogs.unknown import LeftOut
from normata.core.changes.row_counts import RowCounts
from normata.core.changes.source import FaultyInput
from normata.core.changes.unit_of_work import UnitOfWork, insert_of
from normata.core.changes.writing import BODY, every_column_of
from normata.core.http.operation import BodyFormat, ChangeOperation, Operation
from normata.core.http.problems import FieldFault, InvalidRequest
from normata.core.http.request import Request
from normata.core.schema.fields import Name
from normata.core.schema.paging import OrganizationQuery, Query, QueryFlag
from normata.core.schema.wire import Wire
from normata.coverage.recompute import COVERAGE_WRITES
from normata.frameworks.model import Control, ControlMatch, Framework

_MAX_REPORTED = 50  # faults, or mappings that are left out
_SKIP_UNKNOWN = "skipUnknown=true"
_ARRAYS = ("frameworks", "controls", "controlMatches")


class CatalogImportQuery(Query):
    """What an import takes besides its body."""

    name: Annotated[
        Name | None,
        Field(description="The name of the framework. A table needs one, and is known by it when it comes again."),
    ] = None
    skip_unknown: Annotated[
        QueryFlag, Field(description="Whether mappings that name unknown controls are left out, instead of refused.")
    ] = False


class ImportQuery(CatalogImportQuery, OrganizationQuery):
    """What an import takes besides its body, if it becomes an organization's own."""


class ImportedRows(Wire):
    """What an import does to the rows of one kind."""

    new: int = Field(description="How many are added.")
    changed: int = Field(description="How many are there already, and change.")
    unchanged: int = Field(description="How many are there already as they are.")


class ImportLeftOut(Wire):
    """A mapping that is left out, because it names controls that no catalog has."""

    place: str = Field(description="Where in the body: a JSON Pointer.")
    unknown: list[str] = Field(description="The controls that are not known.")


class ImportResult(Wire):
    """What an import has done."""

    framework_ids: list[str] = Field(description="The frameworks that the import is about, as they are stored.")
    frameworks: ImportedRows = Field(description="What becomes of frameworks.")
    controls: ImportedRows = Field(description="What becomes of controls.")
    control_matches: ImportedRows = Field(description="What becomes of matches.")
    left_out: int = Field(description="How many mappings are left out.")
    first_left_out: list[ImportLeftOut] = Field(description=f"The first {_MAX_REPORTED} of these.")


def _read(formats: Sequence[ImportFormat], content: bytes, query: CatalogImportQuery) -> uploads.Upload:
    if query.name is None and all(one.needs_name for one in formats):
        message = "is required: a table does not say what its framework is called"
        raise InvalidRequest.of([FieldFault(in_="query", name="name", code="required", message=message, allowed=None)])
    return uploads.read_upload(Input(BODY, query.name or "", lambda: content, formats))


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
        )
    return _result(outcome.framework_ids, outcome.row_counts, outcome.left_out)


def _take_for_all(unit: UnitOfWork, request: Request) -> dict[str, Any]:
    query: CatalogImportQuery = request.query
    upload: uploads.Upload = request.body
    with _first_faults():
        row_counts, left_out = import_for_all(
            unit, upload.published, skip_unknown=query.skip_unknown, option=_SKIP_UNKNOWN, faults=upload.faults
        )
    frameworks = [row.values["id"] for row in upload.published.rows if row.array == "frameworks"]
    return _result(frameworks, row_counts, left_out)


@contextmanager
def _first_faults() -> Iterator[None]:
    try:
        yield
    except FaultyInput as error:
        raise FaultyInput(error.faults[:_MAX_REPORTED]) from error


def _result(
    framework_ids: list[str], row_counts: Mapping[str, RowCounts], left_out: Sequence[LeftOut]
) -> dict[str, Any]:
    every = {array: row_counts.get(array, RowCounts()) for array in _ARRAYS}
    return {
        "frameworkIds": framework_ids,
        **{
            array: {"new": counts.inserted, "changed": counts.updated, "unchanged": counts.unchanged}
            for array, counts in every.items()
        },
        "leftOut": len(left_out),
        "firstLeftOut": [{"place": one.place, "unknown": list(one.unknown)} for one in left_out[:_MAX_REPORTED]],
    }


_NONE = {"new": 0, "changed": 0, "unchanged": 0}
_RESULT = {
    "frameworks": _NONE | {"new": 1},
    "controls": _NONE | {"new": 2},
    "controlMatches": _NONE,
    "leftOut": 0,
    "firstLeftOut": [],
}
_LARGEST = 16 * 2**20  # bytes
_FORMATS = {
    media_type.name: BodyFormat(
        partial(_read, formats), media_type.schema, next((one.example for one in formats if one.example), None)
    )
    for media_type, formats in by_media_type().items()
}
_WRITES = (
    insert_of(Framework),
    every_column_of(Framework),
    insert_of(Control),
    every_column_of(Control),
    insert_of(ControlMatch),
    every_column_of(ControlMatch),
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
Takes what `normata import` takes: {list_of_formats()}.
Of an XLSX workbook, the first sheet is read. The first row of a table names its columns: {", ".join(COLUMNS)}. Only
`identifier` is required. `parent` is the identifier of another row, `mandatory` is yes or no, and a row that others
name as their parent becomes a category.

What the body holds becomes the organization's own, whatever its publisher says, and nobody else sees it. The same
import again changes nothing, and a newer version changes what it has before. Nothing is ever deleted. Mappings become
matches of the organization's own, between its own imports and the frameworks that it can see.

All of it is stored, or nothing: then the first {_MAX_REPORTED} faults are reported, each with its place. `dryRun=true`
says what would be stored.""",
        role="admin",
        query=ImportQuery,
        body_formats=_FORMATS,
        body_required=True,
        body_limit=_LARGEST,
        body_example=next(iter(_FORMATS.values())).example,
        has_rules=True,
        work=_take_as_own,
        present=lambda result: result,
        writes=_WRITES,
        answer=ImportResult,
        answer_description="What has been done.",
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
Takes what `POST /imports/` takes, for an operator of the instance. What the body holds becomes centralized, with the
ids of its publisher: all organizations see it and may adopt it. The coverage of those that have adopted it follows in
the same transaction, and their admins are told what they lose. The operator sees nothing of that: not in the answer,
and not in a dry run.

All of it is stored, or nothing: then the first {_MAX_REPORTED} faults are reported, each with its place. `normata
import` does the same on the command line.""",
        authority="operator",
        scope="admin",
        query=CatalogImportQuery,
        body_formats=_FORMATS,
        body_required=True,
        body_limit=_LARGEST,
        body_example=next(iter(_FORMATS.values())).example,
        has_rules=True,
        changes_catalogs=True,
        work=_take_for_all,
        present=lambda result: result,
        writes=_WRITES,
        answer=ImportResult,
        answer_description="What has been done.",
        example=_RESULT | {"frameworkIds": ["urn:harbourlight:framework:docks"]},
    ),
)
