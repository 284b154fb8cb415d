"""The operations that read records: the list of each kind, and one record."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import BaseModel, create_model
from pydantic.alias_generators import to_camel

from normata.core.db.transaction import Transaction
from normata.core.db.types import Document
from normata.core.http.operation import ListOperation, ReadOperation
from normata.core.http.request import Request
from normata.core.schema.paging import OrganizationQuery, Page
from normata.core.schema.wire import columns, wire
from normata.records import examples
from normata.records.base import Restorable
from normata.records.listing import list_records, one_record, record_query
from normata.records.registers.exporting import register_formats


@cache
def _page(kind: type[Restorable]) -> type[BaseModel]:
    base: Any = Page[wire(kind)]  # type: ignore[misc] # the model is created from the table
    return create_model(f"{kind.__name__}Page", __base__=base, __doc__=f"A page of {kind.plural()}.")


def list_id(kind: type[Restorable]) -> str:
    """The id of the operation that lists a kind."""
    return f"list{kind.plural().title().replace(' ', '')}"


def list_operation(kind: type[Restorable]) -> ListOperation:
    """The operation that lists one kind."""

    def build(transaction: Transaction, request: Request) -> Any:
        return list_records(transaction, kind, request.query)

    document = next((to_camel(one.name) for one in columns(kind) if isinstance(one.type, Document)), None)
    excluded_note = f" but `{document}`" if document else ""
    example = examples.restored(kind)
    return ListOperation(
        path=f"/{kind.path}/",
        operation_id=list_id(kind),
        tag="Records",
        summary=f"List {kind.plural()}",
        description=f"""\
The organization's {kind.plural()}: by default only live ones, newest first. `archived` includes archived ones, and
`sortColumn` sorts by any column{excluded_note}. A filter has the name of its field. The values of a repeated filter are
combined with OR, different filters with AND. As CSV or XLSX the answer is a file with all of them, on whatever page,
from one state of the data; `page`, `limit` and `cursor` do not go with it.""",
        query=record_query(kind),
        files=register_formats(kind),
        build=build,
        answer=_page(kind),
        answer_description=f"A page of {kind.plural()}.",
        example={
            "items": [example] if example else [],
            "total": 1 if example else 0,
            "totalIsExact": True,
            "page": 1,
            "limit": 100,
        },
    )


def get_operation(kind: type[Restorable]) -> ReadOperation:
    """The operation that gets one record of a kind."""

    def build(transaction: Transaction, request: Request) -> Any:
        return one_record(transaction, kind, request.organization_id, request.id)

    words = kind.words()
    return ReadOperation(
        path=f"/{kind.path}/{{id}}/",
        operation_id=f"get{kind.__name__}",
        tag="Records",
        summary=f"Get {kind.with_article()}",
        description=f"""\
One {words} of the organization, live or archived. Send its `ETag` in the `If-Match` of a request that
changes, archives or restores it, and the request is refused if the {words} has changed since.\n\n{kind.__doc__}""",
        about=kind,
        id_description=f"The id of the {words}.",
        query=OrganizationQuery,
        build=build,
        answer=wire(kind),
        answer_description=f"The {words}.",
        example=examples.restored(kind),
    )
