"""Reading external ids."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, model_validator
from sqlalchemy import select

from normata.core.db.transaction import Transaction
from normata.core.schema.fields import Identifier
from normata.core.schema.paging import PageQuery, envelope, fetch_page
from normata.core.schema.table import sql_table
from normata.core.schema.wire import as_wire
from normata.external_ids.model import ExternalId
from normata.records.archive.queries import KindName


class ExternalIdQuery(PageQuery):
    """The query of the list of external ids."""

    repeated: ClassVar[tuple[str, ...]] = ("id",)

    kind: KindName | None = None
    id: Annotated[
        list[Identifier] | None,
        Field(
            max_length=100,
            description="Only external ids of the record with this id, or of one of these where it is repeated, of this"
            " `kind`.",
        ),
    ] = None

    @model_validator(mode="after")
    def _names_a_kind(self) -> Self:
        if self.id is not None and self.kind is None:
            raise ValueError("must have the kind of the id, too")
        return self


def list_external_ids(transaction: Transaction, query: ExternalIdQuery) -> dict[str, Any]:
    """A page of the external ids of an organization's records, live and archived."""
    table = sql_table(ExternalId).c
    statement = select(*table).where(table.organization_id == query.organization_id)
    if query.kind is not None:
        statement = statement.where(table.kind == query.kind)
    if query.id is not None:
        statement = statement.where(table.record_id.in_(query.id))
    order = [table.kind.asc(), table.source.asc(), table.external_id.asc(), table.id.asc()]
    found = fetch_page(transaction, statement, order, query)
    return envelope([as_wire(ExternalId, row) for row in found.rows], found, query)
