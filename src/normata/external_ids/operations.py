"""The operations of external ids. A batch of records adds them."""

from __future__ import annotations

from typing import Any

from normata import errors
from normata.core.http.change_endpoint import as_null
from normata.core.http.operation import ChangeOperation, ListOperation, Operation
from normata.core.schema.paging import Page
from normata.core.schema.wire import wire
from normata.external_ids.commands import REMOVAL_WRITES, remove_external_id
from normata.external_ids.model import ExternalId
from normata.external_ids.queries import ExternalIdQuery, list_external_ids

_Answer: Any = wire(ExternalId)


class ExternalIdPage(Page[_Answer]):
    """A page of external ids."""


_EXAMPLE: dict[str, Any] = {
    "id": "01a1f87c-691d-7204-a6da-d46c39e191fb",
    "organizationId": "org-harbourlight",
    "kind": "vendors",
    "recordId": "vendor-nimbusgrid",
    "source": "Purchasing",
    "externalId": "V-1004",
    "createdAt": "2026-11-20T09:14:03.120Z",
}

OPERATIONS: tuple[Operation, ...] = (
    ListOperation(
        path="/external-ids/",
        operation_id="listExternalIds",
        tag="Records",
        summary="List external ids",
        description="""\
The ids that the organization's records have in other systems; with `kind` and `id` those of one record, or of several
of a kind. Records are found by them with the filters `externalSource` and `externalId` of their lists, and get them
from `POST /{kind}/batch/`. Archived records keep theirs.""",
        query=ExternalIdQuery,
        build=lambda transaction, request: list_external_ids(transaction, request.query),
        answer=ExternalIdPage,
        answer_description="A page of external ids.",
        example={"items": [_EXAMPLE], "total": 1, "totalIsExact": True, "page": 1, "limit": 100},
    ),
    ChangeOperation(
        http_method="DELETE",
        path="/external-ids/{id}/",
        operation_id="deleteExternalId",
        tag="Records",
        summary="Remove an external id",
        description="""\
Removes an external id from a record, which stays as it is otherwise. The record's events have it. Another record can
get it then.""",
        about=ExternalId,
        id_description="The id of the external id, as in its list.",
        work=lambda unit, request: remove_external_id(unit, request.id),
        present=as_null,
        writes=REMOVAL_WRITES,
        answer=None,
        answer_description="`null`: the external id was removed.",
        example=None,
        errors=(errors.Archived,),
    ),
)
