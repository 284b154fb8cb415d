"""Marking notifications as read or unread."""

from __future__ import annotations

from typing import Any

from sqlalchemy import bindparam, select, update

from normata.core.changes.unit_of_work import Change, UnitOfWork, update_of
from normata.core.schema.table import sql_table
from normata.errors import NotFound
from normata.identity.organization_lookup import reached
from normata.notifications.inbox import as_item
from normata.notifications.model import Notification

MARKING_WRITES = (update_of(Notification, "read_at"),)


def mark(unit: UnitOfWork, notification_id: str, *, is_read: bool, prefix: str = "") -> dict[str, Any]:
    """Mark a notification of the actor as read or unread, and return it in wire form.

    Repeating it changes nothing. ``prefix`` is put before the path of its link. Raises NotFound.
    """
    before = unit.row(_FIND, {"notification": notification_id, "user": unit.actor.user_id})
    if before is None:
        raise NotFound
    unit.require_reach(before.organization_id)
    if (before.read_at is not None) == is_read:
        return as_item(before, prefix)
    row = unit.row(_MARK, {"notification": notification_id, "new_read_at": unit.moment if is_read else None})
    assert row is not None  # noqa: S101 - it has just been found, and is locked
    unit.publish(
        Change(
            "read" if is_read else "unread",
            Notification,
            row.organization_id,
            row.id,
            row._asdict(),
            before._asdict(),
        )
    )
    return as_item(row, prefix)


def mark_all(unit: UnitOfWork, organization: str, until: str) -> int:
    """Mark all notifications of the actor in an organization as read, up to a moment. Returns how many were unread.

    Raises NotFound.
    """
    organization_id = reached(unit, organization)
    parameters = {"organization": organization_id, "user": unit.actor.user_id, "until": until}
    rows = unit.rows(_MARK_ALL, {**parameters, "new_read_at": unit.moment})
    for row in sorted(rows, key=lambda one: (one.created_at, one.id)):
        now = row._asdict()
        unit.publish(Change("read", Notification, organization_id, row.id, now, {**now, "read_at": None}))
    return len(rows)


_TABLE = sql_table(Notification)
_IS_OWN = _TABLE.c.user_id == bindparam("user")
_FIND = select(*_TABLE.c).where(_TABLE.c.id == bindparam("notification"), _IS_OWN).with_for_update()
_READ = update(_TABLE).values(read_at=bindparam("new_read_at", type_=_TABLE.c.read_at.type)).returning(*_TABLE.c)
_MARK = _READ.where(_TABLE.c.id == bindparam("notification"))
_MARK_ALL = _READ.where(
    _TABLE.c.organization_id == bindparam("organization"),
    _IS_OWN,
    _TABLE.c.read_at.is_(None),
    _TABLE.c.created_at <= bindparam("until", type_=_TABLE.c.created_at.type),
)
