"""The operation that finds records of all kinds."""

from __future__ import annotations

from typing import Any

from normata.records.every_kind import EveryKindQuery, RecordOfAnyKind, list_every_kind
from normata.schema.paging import Page
from normata.web.operation import ListOperation, Operation


class RecordsOfAllKinds(Page[RecordOfAnyKind]):
    """A page of records of all kinds."""


_PAGE: dict[str, Any] = {
    "items": [
        {
            "kind": "policies",
            "id": "policy-travel-with-prototypes",
            "label": "Travelling with Prototypes",
            "slug": "travel-with-prototypes",
            "shortId": None,
            "createdAt": "2025-05-19T06:14:17.000Z",
        }
    ],
    "total": 1,
    "page": 1,
    "limit": 100,
}

OPERATIONS: tuple[Operation, ...] = (
    ListOperation(
        path="/search/",
        operation_id="searchRecords",
        tag="Records",
        summary="Find records of all kinds",
        description="""\
The live records of the organization, whatever their kind, by their names alone: to find one without knowing what it is.
Newest first; with `search`, those come first that have all words in their title.""",
        query=EveryKindQuery,
        build=lambda transaction, query, _asker: list_every_kind(transaction, query),
        answer=RecordsOfAllKinds,
        answer_description="A page of records.",
        example=_PAGE,
    ),
)
