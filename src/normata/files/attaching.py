"""Notes which files a record has, and which it has given up: these stay for as long as the organization keeps them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from sqlalchemy import bindparam, func, select, update

from normata.core.changes.unit_of_work import Actor, Change, update_of
from normata.core.db.transaction import ConstraintViolation, Transaction, batches
from normata.core.schema.table import Table, sql_table
from normata.files.model import File


class NoteAttached:
    """Notes that a record has files, or has given them up, in the transaction that does so."""

    writes = (update_of(File, "attached_at", "detached_at"),)

    def __call__(self, transaction: Transaction, changes: Sequence[Change], actor: Actor, moment: str) -> None:
        """Note it of the files that these changes name."""
        del actor
        found = sorted({one for change in changes for one in _named(change)})
        for batch in batches(sorted({one for change in changes for one in _detached(change)}.difference(found))):
            transaction.rows(_DETACH, {"ids": batch, "moment": moment})
        for batch in batches(found):
            # Locked, so that none of them expires meanwhile. The change is made again if one just has, and refused.
            if len(transaction.rows(_LOCK, {"ids": batch})) < len(batch):
                raise ConstraintViolation
            transaction.rows(_ATTACH, {"ids": batch, "moment": moment})


def _named(change: Change) -> Iterator[str]:
    if change.row is not None:
        for name in columns_with_files(change.table):
            if change.before is None or change.before[name] != change.row[name]:
                yield from change.row[name] or ()


def _detached(change: Change) -> Iterator[str]:
    """Another record may have it still. That is found out before its bytes are erased."""
    if change.row is not None and change.before is not None:
        for name in columns_with_files(change.table):
            yield from set(change.before[name] or ()).difference(change.row[name] or ())


@cache
def columns_with_files(table: type[Table]) -> tuple[str, ...]:
    """The columns of a table with lists of files."""
    return tuple(column.name for column in sql_table(table).columns if column.info.get("lists") == File.__tablename__)


_TABLE = sql_table(File)
_LOCK = select(_TABLE.c.id).where(_TABLE.c.id.in_(bindparam("ids", expanding=True))).with_for_update()
_ATTACH = (
    update(_TABLE)
    .where(
        _TABLE.c.id.in_(bindparam("ids", expanding=True)),
        _TABLE.c.attached_at.is_(None) | _TABLE.c.detached_at.is_not(None),
    )
    .values(
        attached_at=func.coalesce(_TABLE.c.attached_at, bindparam("moment", type_=_TABLE.c.attached_at.type)),
        detached_at=None,
    )
)
_DETACH = (
    update(_TABLE)
    .where(_TABLE.c.id.in_(bindparam("ids", expanding=True)))
    .values(detached_at=bindparam("moment", type_=_TABLE.c.detached_at.type))
)
