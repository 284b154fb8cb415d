"""The filter of lists of records by their ids in another system."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator
from sqlalchemy import ColumnElement, select

from normata.core.schema.fields import ShortText
from normata.core.schema.paging import PageQuery
from normata.core.schema.table import sql_table
from normata.external_ids.model import ExternalId
from normata.records.base import Restorable

EXTERNAL_ID = "external_id"  # the parameter that may be repeated
_MAX_VALUES = 100


class ExternalQuery(PageQuery):
    """The query of a list of records, by the ids that these have in another system."""

    # A text that no record can have as its external id finds none.
    external_source: Annotated[
        ShortText | None, Field(description="The other system that `externalId` is of; only together with that.")
    ] = None
    external_id: Annotated[
        list[ShortText] | None,
        Field(
            max_length=_MAX_VALUES,
            description="Only records with this id in another system, `externalSource`, or with one of these where it"
            " is repeated.",
        ),
    ] = None

    @model_validator(mode="after")
    def _names_both(self) -> Self:
        if (self.external_source is None) != (self.external_id is None):
            raise ValueError("must have both externalSource and externalId, or neither")
        return self


def is_found_by(kind: type[Restorable], query: ExternalQuery) -> list[ColumnElement[bool]]:
    """The condition that a record has one of the external ids of a query; none if it has none."""
    if query.external_id is None:
        return []
    external = sql_table(ExternalId).c
    found = select(external.record_id).where(
        external.organization_id == query.organization_id,
        external.kind == kind.path,
        external.source == query.external_source,
        external.external_id.in_(query.external_id),
    )
    return [kind.sql().c.id.in_(found)]
