"""The checks of versions by ``normata check``: whether their files are those that were made, hashed and sealed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import select

from normata.core.db.transaction import Transaction
from normata.core.schema.table import sql_table
from normata.events.model import AuditEvent
from normata.soa_versions.files import file_faults
from normata.soa_versions.model import FILE_FORMATS, SoaVersion, hash_column


def version_faults(transaction: Transaction) -> Iterator[str]:
    """The faults of the stored versions, a sentence each."""
    sealed = _sealed_hashes(transaction)
    for row in transaction.stream(_VERSIONS):
        version = row._asdict()
        name = f"version {row.number} of the statement of {row.framework_id} of organization {row.organization_id}"
        for column, reason in file_faults(version):
            yield f"{name} was changed: its {column} {reason}"
        known = sealed.get(row.id)
        if known is not None and known != {one: version[hash_column(one)] for one in FILE_FORMATS}:
            yield f"{name} was changed: its hashes are not those of its event"


def _sealed_hashes(transaction: Transaction) -> Mapping[str, Mapping[str, Any]]:
    """The hashes that the first event of each version has, by its id."""
    found: dict[str, Mapping[str, Any]] = {}
    for row in transaction.stream(_EVENTS):
        after = json.loads(row.body)["after"] if row.body else None
        if after and "jsonSha256" in after:
            found.setdefault(row.entity_id, {one: after.get(f"{one}Sha256") for one in FILE_FORMATS})
    return found


_TABLE, _EVENT = sql_table(SoaVersion), sql_table(AuditEvent)
_VERSIONS = select(*_TABLE.c).order_by(_TABLE.c.organization_id, _TABLE.c.framework_id, _TABLE.c.number)
_EVENTS = (
    select(_EVENT.c.entity_id, _EVENT.c.body)
    .join(_TABLE, (_TABLE.c.organization_id == _EVENT.c.organization_id) & (_TABLE.c.id == _EVENT.c.entity_id))
    .where(_EVENT.c.entity_type == SoaVersion.__name__)
    .order_by(_EVENT.c.at, _EVENT.c.id)
)
