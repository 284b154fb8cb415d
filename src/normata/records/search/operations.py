"""The operation that searches records of all kinds."""

from __future__ import annotations

from typing import Any

from normata.core.http.operation import Operation, ReadOperation
from normata.records.search.queries import EveryKindQuery, RecordSearchPage, search_every_kind

_FOUND: dict[str, Any] = {
    "items": [
        {
            "kind": "policies",
            "id": "policy-travel-with-prototypes",
            "label": "Travelling with Prototypes",
            "slug": "travel-with-prototypes",
            "shortId": None,
            "isLive": True,
            "createdAt": "2025-05-19T06:14:17.000Z",
        }
    ]
}

OPERATIONS: tuple[Operation, ...] = (
    ReadOperation(
        path="/search/",
        operation_id="searchRecords",
        tag="Records",
        summary="Find records of all kinds",
        description="""\
Records of the organization, of any kind, with their names only: to find one without knowing its kind, by words or by
its id. It returns the first ones, newest first; with `search`, records with all words in their title come first. To
page through all records of a kind, use its list.""",
        query=EveryKindQuery,
        build=lambda transaction, request: search_every_kind(transaction, request.query),
        answer=RecordSearchPage,
        answer_description="The first records found.",
        example=_FOUND,
    ),
)
