"""The operations about coverage over time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def _faults() -> Iterator[None]:
    """What is wrong with the moments of a query becomes a fault of it."""
    try:
        yield
    except PastUnknown as error:
        raise _refused("from", "past_unknown", error) from None
    except TooManyPoints as error:
        raise _refused("step", "too_small", error) from None


def _refused(name: str, code: str, error: Exception) -> InvalidRequest:
    return InvalidRequest.of([FieldFault(in_="query", name=name, code=code, message=str(error), allowed=None)])


def _series(transaction: Transaction, request: Request) -> dict[str, Any]:
    with _faults():
        return series.coverage_series(transaction, request.organization_id, request.id, request.query)


def _changes(transaction: Transaction, request: Request) -> dict[str, Any]:
    with _faults():
        return changes.coverage_changes(transaction, request.query)


def _all_series(transaction: Transaction, request: Request) -> dict[str, Any]:
    with _faults():
        return series.organization_series(transaction, request.query)


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

_STATUSES = {name: value for name, value in _POINT.items() if name not in ("conflicts", "stale")}
_ADOPTIONS = [
    {
        "since": "2026-01-01T08:00:00.000Z",
        "until": None,
        "adoptedAt": "2025-03-03T08:05:00.000Z",
        "baselineId": None,
    }
]

OPERATIONS: tuple[Operation, ...] = (
    ReadOperation(
        path="/coverage/history/",
        operation_id="getCoverageHistories",
        tag="Reports",
        summary="Get the coverage of all adopted frameworks over time",
        description=f"""\
How the requirements of each framework that the organization has adopted were covered at evenly spaced moments: from
`from`, in steps, and at `to`, and thirty days before `to`. There are at most {series.MAX_POINTS:,} moments.""",
        query=series.SeriesQuery,
        build=_all_series,
        is_long=True,
        answer=series.OrganizationSeries,
        answer_description="The counts.",
        example={
            "knownSince": "2026-01-01T08:00:00.000Z",
            "frameworks": [
                {
                    "frameworkId": "iso-27001-2022",
                    "points": [_STATUSES | {"at": "2026-11-13T09:14:03.120Z", "full": 38, "none": 31}, _STATUSES],
                    "thirtyDaysBefore": _STATUSES | {"at": "2026-10-21T09:14:03.120Z", "full": 36, "none": 33},
                    "adoptions": _ADOPTIONS,
                }
            ],
        },
    ),
    ReadOperation(
        path="/frameworks/{id}/coverage/history/",
        operation_id="getCoverageHistory",
        tag="Reports",
        summary="Get the coverage of a framework over time",
        description=f"""\
How the requirements of a framework were covered at evenly spaced moments: from `from`, in steps, and at `to`. There are
at most {series.MAX_POINTS:,} moments, and one thirty days before `to`. The counts are those of the summary of the
framework (`asOf` the moment), which was adopted at the moments that say so.""",
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
            "thirtyDaysBefore": _POINT | {"at": "2026-10-21T09:14:03.120Z", "full": 36, "none": 33},
            "adoptions": _ADOPTIONS,
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
            "totalIsExact": True,
            "page": 1,
            "limit": 100,
        },
    ),
)
