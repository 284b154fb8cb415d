"""Operations that answer of the past, too."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from normata.core.db.transaction import Transaction
from normata.core.http.operation import Operation, ReadOperation
from normata.core.http.problems import FieldFault, InvalidRequest
from normata.core.http.request import Request
from normata.core.schema.paging import PastQuery
from normata.errors import PastUnknown
from normata.history.past import Past


def at(transaction: Transaction, organization_id: str, moment: str | None) -> Transaction:
    """A transaction that reads what held at a moment, null for now. Raises PastUnknown."""
    return transaction if moment is None else Past(transaction, organization_id, moment)


def of_then(operation: Operation) -> Operation:
    """The operation, which answers of the moment that its query names, if it is a :class:`PastQuery`; else of now."""
    if not isinstance(operation, ReadOperation) or not issubclass(operation.query, PastQuery):
        return operation
    build = operation.build

    def built(transaction: Transaction, request: Request) -> Any:
        try:
            reading = at(transaction, request.organization_id, request.query.as_of)
        except PastUnknown as error:
            fault = FieldFault(in_="query", name="asOf", code="past_unknown", message=str(error), allowed=None)
            raise InvalidRequest.of([fault]) from error
        return build(reading, request)

    return replace(operation, build=built)
