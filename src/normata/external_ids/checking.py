"""The check of external ids by ``normata check``: whether their records exist, which no constraint can say."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Select, and_, select

from normata.core.db.transaction import Transaction
from normata.core.schema.table import sql_table
from normata.external_ids.model import ExternalId
from normata.records.archive.queries import KINDS
from normata.records.base import Restorable


def external_id_faults(transaction: Transaction) -> Iterator[str]:
    """The external ids of records that do not exist, a sentence each."""
    for kind in KINDS.values():
        for row in transaction.stream(_without_record(kind)):
            yield (
                f"the external id {row.id} of organization {row.organization_id} is of {kind.with_article()}"
                f" that does not exist: {row.record_id}"
            )


def _without_record(kind: type[Restorable]) -> Select[tuple[str, str, str]]:
    external, record = sql_table(ExternalId).c, kind.sql().c
    is_there = and_(record.organization_id == external.organization_id, record.id == external.record_id)
    return (
        select(external.id, external.organization_id, external.record_id)
        .where(external.kind == kind.path, ~select(record.id).where(is_there).exists())
        .order_by(external.id)
    )
