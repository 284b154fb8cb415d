"""Erasing the files of versions that name a person. The version, its hashes and its events stay."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterator
from typing import Any

from sqlalchemy import bindparam, select, update

from normata.core.changes.unit_of_work import Change, UnitOfWork
from normata.core.db.transaction import Transaction
from normata.core.schema.table import sql_table
from normata.core.schema.wire import listed_columns
from normata.soa_versions.model import FILE_FORMATS, SoaVersion, file_column


def versions_with(transaction: Transaction, is_named_in: Callable[[str], bool]) -> Iterator[str]:
    """The ids of the versions whose statement, as JSON, names somebody. The other formats say no more than that."""
    for row in transaction.stream(_STATEMENTS):
        if is_named_in(b64decode(row.json_file).decode()):
            yield row.id


def erase_files(unit: UnitOfWork, version_id: str) -> str:
    """Remove the files of a version, and return its organization. An event of the version records it."""
    before: Any = unit.row(_FIND, {"version": version_id})
    after: Any = unit.row(_ERASE, {"version": version_id, "moment": unit.moment})
    unit.publish(Change("erase", SoaVersion, after.organization_id, version_id, after._asdict(), before._asdict()))
    return str(after.organization_id)


_TABLE = sql_table(SoaVersion)
_LISTED = [_TABLE.c[column.name] for column in listed_columns(SoaVersion)]
_STATEMENTS = select(_TABLE.c.id, _TABLE.c.json_file).where(_TABLE.c.json_file.is_not(None)).order_by(_TABLE.c.id)
_FIND = select(*_LISTED).where(_TABLE.c.id == bindparam("version"))
_ERASE = (
    update(_TABLE)
    .where(_TABLE.c.id == bindparam("version"))
    .values(
        {file_column(name): None for name in FILE_FORMATS}
        | {"erased_at": bindparam("moment", type_=_TABLE.c.erased_at.type)}
    )
    .returning(*_LISTED)
)
