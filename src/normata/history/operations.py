"""The operations about coverage over time."""

from __future__ import annotations

from typing import Any

from normata.core.db.transaction import Transaction
from normata.core.http.operation import ListOperation, Operation, ReadOperation
from normata.core.http.problems import FieldFault, InvalidRequest
from normata.core.http.request import Request
from normata.core.schema.paging import Page
from normata.errors import PastUnknown, TooManyPoints
from normata.frameworks.model import Framework
from normata.history import changes, series


class ChangedCoveragePage(Page[changes.ChangedCoverage]):
    """A page of controls whose coverage has changed."""


def _refused(name: str, error: Exception) -> InvalidRequest:
    return InvalidRequest.of(
        [FieldFault(in_="query", name=name, code="past_unknown", message=str(error), allowed=None)]
    )


def _series(transaction: Transaction, request: Request) -> dict[str, Any]:
    try:
        return series.coverage_series(transaction, request.organization_id, request.id, request.query)
    except PastUnknown as error:
        raise _refused("from", error) from None
    except TooManyPoints as error:
        fault = FieldFault(in_="query", name="step", code="too_small", message=str(error), allowed=None)
        raise InvalidRequest.of([fault]) from None


def _changes(transaction: Transaction, request: Request) -> dict[str, Any]:
    try:
        return changes.coverage_changes(transaction, request.query)
    except PastUnknown as error:
        raise _refused("from", error) from None


_POINT = {
    "at": "2026-11-20T09:14:03.120Z",
    "isAdopted": True,
    "baselineId": None,
    "full": 41,
    "partial": 22,
    "none": 28,
    "excluded": 2,
    "conflicts": 1,
    "stale": 3,
}

OPERATIONS: tuple[Operation, ...] = (
    ReadOperation(
        path="/frameworks/{id}/coverage/history/",
        operation_id="getCoverageHistory",
        tag="Reports",
        summary="Get the coverage of a framework over time",
        description=f"""\
How the requirements of a framework were covered at evenly spaced moments: from `from`, in steps, and at `to`. There are
at most {series.MAX_POINTS:,} moments. The counts are those of the summary of the framework (`asOf` the moment), which
was adopted at the moments that say so.""",
        about=Framework,
        id_description="The id of a framework that the organization has adopted, or had.",
        query=series.SeriesQuery,
        build=_series,
        is_long=True,
        answer=series.CoverageSeries,
        answer_description="The counts.",
        example={
            "frameworkId": "iso-27001-2022",
            "knownSince": "2026-01-01T08:00:00.000Z",
            "points": [_POINT | {"at": "2026-11-13T09:14:03.120Z", "full": 38, "none": 31}, _POINT],
        },
    ),
    ListOperation(
        path="/coverage/changes/",
        operation_id="listCoverageChanges",
        tag="Reports",
        summary="List what has changed in coverage",
        description="""\
The controls whose effective status differs between two moments, each with both statuses, when what it rests on changed
in between, and the organization's events that made it so.""",
        query=changes.ChangesQuery,
        build=_changes,
        is_long=True,
        answer=ChangedCoveragePage,
        answer_description="A page of controls.",
        example={
            "items": [
                {
                    "id": "iso-27001-2022:A.5.11",
                    "identifier": "A.5.11",
                    "name": "Return of assets",
                    "framework": {
                        "id": "iso-27001-2022",
                        "name": "ISO/IEC 27001:2022",
                        "identifier": "ISO-27001",
                    },
                    "before": "NONE",
                    "after": "PARTIAL",
                    "changedAt": ["2026-11-20T09:14:03.120Z"],
                    "events": [
                        {
                            "id": "0193445f-5b6e-7c58-9d0c-b3f1a2c4d5e6",
                            "at": "2026-11-20T09:14:03.120Z",
                            "action": "assess",
                            "kind": "controlCoverages",
                            "recordId": "assessment-17",
                            "userId": "user-ines",
                        }
                    ],
                }
            ],
            "total": 1,
            "page": 1,
            "limit": 100,
        },
    ),
)
