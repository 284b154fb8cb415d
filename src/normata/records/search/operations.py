"""The operation that finds records of all kinds."""

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
Live records of the organization, whatever their kind, by their names alone: to find one without knowing what it is. It
answers the first ones, newest first; with `search`, those come before that have all words in their title. To go through
all records of a kind, take its list.""",
        query=EveryKindQuery,
        build=lambda transaction, request: search_every_kind(transaction, request.query),
        answer=RecordSearchPage,
        answer_description="The first records that were found.",
        example=_FOUND,
    ),
)
