"""What differs between two versions of a statement of applicability, or between one and the present state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import orjson
from pydantic import Field

from normata.core.db.transaction import Transaction
from normata.core.http.problems import FieldFault, InvalidRequest
from normata.core.schema.fields import Identifier
from normata.core.schema.paging import OrganizationQuery
from normata.core.schema.wire import Wire
from normata.errors import NotFound
from normata.reports.applicability import OtherNotAdopted, read_applicability
from normata.reports.statement import FORMATS
from normata.soa_versions.versions import file_of, one_version

NOW = "now"

# What a row says; its other fields follow from these, or name the row.
FIELDS = (
    *("identifier", "name", "isMandatory", "isApplicable", "justification", "reasons", "excludedBy"),
    *("outsideOfBaseline", "implemented", "plannedBy", "owner", "note", "coverageStatus", "coverageGap"),
    *("evidence", "effectiveCoverageStatus", "coveredBy", "objections"),
)
_HEAD = ("title", "scope", "approver", "baseline", "otherFrameworks")


class ComparisonQuery(OrganizationQuery):
    """The query of a comparison."""

    with_: Annotated[
        Identifier,
        Field(
            alias="with",
            description="The id of another version of the same framework, or `now` for the present state.",
        ),
    ] = NOW


class ComparedRow(Wire):
    """A row of one of the two statements."""

    id: str
    framework_id: str = Field(description="The framework of the control.")
    identifier: str
    name: str


class ChangedField(Wire):
    """A field with both values."""

    field: str = Field(description="The name of the field in the statement of applicability, such as `implemented`.")
    before: Any = Field(description="The value in this version.")
    after: Any = Field(description="The value in the one that it is compared with.")


class ChangedRow(ComparedRow):
    """A row that both have and that differs."""

    changes: list[ChangedField] = Field(description="What differs, in the order of the statement.")


class ComparedWith(Wire):
    """What a version is compared with."""

    version_id: str | None = Field(description="The id of the version; null for the present state.")
    number: int | None = Field(description="The number of the version; null for the present state.")
    date: str = Field(description="The day of which it is, in UTC.", json_schema_extra={"format": "date"})


class VersionComparison(Wire):
    """What differs from a version to another one, or to the present state."""

    version_id: str = Field(description="The id of the version.")
    number: int = Field(description="The number of the version.")
    date: str = Field(description="The day of which it is, in UTC.", json_schema_extra={"format": "date"})
    compared_with: ComparedWith = Field(description="What it is compared with.")
    head: list[ChangedField] = Field(description="What differs in the heads: title, scope, approver, and the like.")
    added: list[ComparedRow] = Field(description="The rows that only the other one has.")
    removed: list[ComparedRow] = Field(description="The rows that only this version has.")
    changed: list[ChangedRow] = Field(description="The rows that both have and that differ.")
    unchanged: int = Field(description="How many rows are the same in both.")


def read_comparison(transaction: Transaction, organization_id: str, version_id: str, other: str) -> dict[str, Any]:
    """The members of :class:`VersionComparison`. Raises NotFound, FilesErased and InvalidRequest."""
    version = one_version(transaction, organization_id, version_id)
    before = _statement(transaction, version)
    if other == NOW:
        of_version = {name: before.get(name) for name in ("title", "approver")}  # the present state has neither
        after, compared = {**_present(transaction, version), **of_version}, (None, None)
    else:
        try:
            found = one_version(transaction, organization_id, other)
        except NotFound:
            found = None
        if found is None or found.framework_id != version.framework_id:
            raise _fault("is not the id of a version of the same framework")
        after, compared = _statement(transaction, found), (found.id, found.number)
    rows, others = _rows(before), _rows(after)
    changed = {name: list(_differing(FIELDS, rows[name], others[name])) for name in rows if name in others}
    return {
        "versionId": version.id,
        "number": version.number,
        "date": before["date"],
        "comparedWith": {"versionId": compared[0], "number": compared[1], "date": after["date"]},
        "head": list(_differing(_HEAD, before, after)),
        "added": [_row(others[name]) for name in others if name not in rows],
        "removed": [_row(rows[name]) for name in rows if name not in others],
        "changed": [_row(others[name]) | {"changes": changes} for name, changes in changed.items() if changes],
        "unchanged": sum(not changes for changes in changed.values()),
    }


def _statement(transaction: Transaction, version: Any) -> Any:
    content = file_of(transaction, version, "json")
    assert content is not None  # noqa: S101 - every version has JSON
    return orjson.loads(content)


def _present(transaction: Transaction, version: Any) -> Any:
    """The statement of today, of the same frameworks. Raises InvalidRequest if they are not adopted any more."""
    try:
        read = read_applicability(
            transaction, version.organization_id, version.framework_id, version.other_framework_ids
        )
    except (NotFound, OtherNotAdopted):
        raise _fault("is not possible: a framework of the version is not adopted any more") from None
    return FORMATS.present(read)


def _rows(statement: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {one["id"]: one for one in (*statement["controls"], *statement["mandatory"]["requirements"])}


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("id", "frameworkId", "identifier", "name")}


def _differing(
    names: Sequence[str], before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterator[Mapping[str, Any]]:
    for name in names:
        if before.get(name) != after.get(name):
            yield {"field": name, "before": before.get(name), "after": after.get(name)}


def _fault(reason: str) -> InvalidRequest:
    return InvalidRequest.of([FieldFault(in_="query", name="with", code="invalid", message=reason, allowed=None)])
