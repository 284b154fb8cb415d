"""Archiving a record of any kind: it stays as it is, and can be restored."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from sqlalchemy import Index, Insert, Update, bindparam, update
from sqlalchemy.orm import Mapped, mapped_column

from normata.core.changes.unit_of_work import Change, UnitOfWork, insert_of, update_of
from normata.core.db.security import Write
from normata.core.db.upsert import upsert
from normata.core.schema.fields import Identifier, Name, ShortName, ShortText, Timestamp
from normata.core.schema.table import CODED, Table, foreign_key, names_person, sql_table
from normata.core.schema.wire import columns
from normata.errors import Archived
from normata.records.base import Restorable
from normata.records.lookup import found_for_change


class ArchiveEntry(Table):
    """The archiving of a record: who, when, and why.

    ``kind`` is the path of the record's kind. All records of one action have the same ``archive_id``. ``user_name`` is
    the user's name at that time; user and name are null if a command has archived it. A restore does not change the
    entry, so that it remains one statement: an entry is valid only as long as its ``archived_at`` is that of the
    record.
    """

    __tablename__ = "archive_entry"
    published = False

    organization_id: Mapped[Identifier] = mapped_column(foreign_key("organization.id"), primary_key=True)
    kind: Mapped[ShortName] = mapped_column(primary_key=True)
    record_id: Mapped[Identifier] = mapped_column(primary_key=True)
    archive_id: Mapped[Identifier] = mapped_column(info=CODED)
    archived_at: Mapped[Timestamp]
    user_id: Mapped[Identifier | None] = mapped_column(info=CODED)
    reason: Mapped[ShortText | None]
    user_name: Mapped[Name | None] = names_person()

    __table_args__ = (Index(None, "organization_id", "archive_id"),)


_KEY = ("organization_id", "kind", "record_id")
_ENTRY_COLUMNS = ("archive_id", "archived_at", "user_id", "user_name", "reason")


def archive_writes(kind: type[Restorable]) -> tuple[Write, ...]:
    """The writes of :func:`archive`."""
    changed = ("archived_at", "updated_at") if "updated_at" in kind.sql().c else ("archived_at",)
    return (update_of(kind, *changed), insert_of(ArchiveEntry), update_of(ArchiveEntry, *_ENTRY_COLUMNS))


def archive(
    unit: UnitOfWork,
    kind: type[Restorable],
    record_id: str,
    *,
    archive_id: str,
    reason: str | None = None,
    require_current: Callable[[Any], None] = lambda _row: None,
) -> Any:
    """Archive a live record, and return its new row. All other fields stay as they were.

    ``archive_id`` names the action that archives it. ``require_current`` gets the row before, and raises if that is not
    the state that the caller knows. Raises NotFound (unknown, foreign, or of another kind), InsufficientRole and
    Archived, and then changes nothing.
    """
    before = found_for_change(unit, kind, record_id)
    if before.archived_at is not None:
        raise Archived
    require_current(before)
    # If the clock was set back, a record must not be archived before it was created.
    moment = max(unit.moment, before.created_at)
    row = unit.row(_archive(kind), {"record": record_id, "moment": moment})
    assert row is not None  # noqa: S101 - narrows the type; the row is locked
    unit.rows(
        _note(),
        {
            "organization_id": row.organization_id,
            "kind": kind.path,
            "record_id": row.id,
            "archive_id": archive_id,
            "archived_at": moment,
            "user_id": unit.actor.user_id,
            "user_name": unit.actor.user_name or None,
            "reason": reason,
        },
    )
    change = Change("archive", kind, row.organization_id, row.id, row._asdict(), before._asdict(), reason=reason)
    unit.publish(change)
    return row


@cache
def _archive(kind: type[Restorable]) -> Update:
    table = kind.sql()
    names = [name for name in ("archived_at", "updated_at") if name in table.c]
    values: dict[str, Any] = {name: bindparam("moment", type_=table.c[name].type) for name in names}
    return update(table).where(table.c.id == bindparam("record")).values(values).returning(*columns(kind))


@cache
def _note() -> Insert:
    table = sql_table(ArchiveEntry)
    values = {name: bindparam(name, type_=table.c[name].type) for name in (*_KEY, *_ENTRY_COLUMNS)}
    return upsert(table, values, key=_KEY, update=_ENTRY_COLUMNS)
