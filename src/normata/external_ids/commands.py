"""Finding records by external ids, adding external ids, and removing them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import bindparam, delete, insert, select

from normata.core.changes.unit_of_work import Change, UnitOfWork, delete_of, insert_of
from normata.core.db.transaction import batches
from normata.core.schema.table import new_id, sql_table
from normata.errors import Archived, NotFound
from normata.external_ids.model import External, ExternalId
from normata.records.archive.queries import KINDS
from normata.records.base import Restorable
from normata.records.lookup import found_for_change

ADDING_WRITES = (insert_of(ExternalId),)
REMOVAL_WRITES = (delete_of(ExternalId),)
REMOVED = "remove_external_id"  # the action of the event


def lock_external_ids(unit: UnitOfWork, kind: type[Restorable], organization_id: str) -> None:
    """Let nobody else add external ids to records of a kind until the transaction ends."""
    unit.lock(f"external ids of {kind.path} of {organization_id}")


def holders(
    unit: UnitOfWork, kind: type[Restorable], organization_id: str, wanted: Collection[External]
) -> dict[External, str]:
    """The ids of the records, live or archived, that have these external ids."""
    by_source: defaultdict[str, list[str]] = defaultdict(list)
    for source, foreign_id in sorted(wanted):
        by_source[source].append(foreign_id)
    key = {"organization": organization_id, "kind": kind.path}
    return {
        External(source, row.external_id): row.record_id
        for source, ids in by_source.items()
        for batch in batches(ids)
        for row in unit.rows(_HOLDERS, {**key, "source": source, "ids": batch})
    }


def add_external_ids(
    unit: UnitOfWork, kind: type[Restorable], organization_id: str, added: Sequence[tuple[str, External]]
) -> None:
    """Add external ids, which are free, to records with these ids. Their events say so."""
    key = {"organization_id": organization_id, "kind": kind.path, "created_at": unit.moment}
    for batch in batches(added):
        rows = [
            {**key, "id": new_id(), "record_id": record_id, "source": external.source, "external_id": external.id}
            for record_id, external in batch
        ]
        unit.execute_many(_INSERT, rows)


def facts_of(external: External) -> Mapping[str, Any]:
    """What the event of a record has of an external id."""
    return {"source": external.source, "externalId": external.id}


def remove_external_id(unit: UnitOfWork, row_id: str) -> None:
    """Remove an external id from a live record. Raises NotFound, InsufficientRole and Archived."""
    found = unit.row(_FIND, {"row": row_id})
    if found is None:
        raise NotFound
    unit.require_reach(found.organization_id)
    kind = KINDS[found.kind]
    record = found_for_change(unit, kind, found.record_id)
    if record.archived_at is not None:
        raise Archived
    if not unit.rows(_REMOVE, {"row": row_id}):
        raise NotFound  # somebody else has just removed it
    row = record._asdict()
    facts = facts_of(External(found.source, found.external_id))
    unit.publish(Change(REMOVED, kind, found.organization_id, record.id, row, row, counts=facts))


_TABLE = sql_table(ExternalId)
_HOLDERS = select(_TABLE.c.external_id, _TABLE.c.record_id).where(
    _TABLE.c.organization_id == bindparam("organization"),
    _TABLE.c.kind == bindparam("kind"),
    _TABLE.c.source == bindparam("source"),
    _TABLE.c.external_id.in_(bindparam("ids", expanding=True)),
)
_INSERT = insert(_TABLE).values({column.name: bindparam(column.name, type_=column.type) for column in _TABLE.c})
_FIND = select(*_TABLE.c).where(_TABLE.c.id == bindparam("row"))
_REMOVE = delete(_TABLE).where(_TABLE.c.id == bindparam("row")).returning(_TABLE.c.id)
