"""The one restore, for every kind of record."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NoReturn

from sqlalchemy import Connection, Select, Update, bindparam, func, insert, or_, select, update

from normata.database import Script, Unavailable, now
from normata.errors import Forbidden, NotArchived, NotFound
from normata.identity.access import Caller
from normata.identity.model import EDITORS, AuditEvent, Membership
from normata.notifications.restored import notify_of_restore
from normata.records.base import Restorable
from normata.vocabulary import new_id, sql_table


def restore(
    kind: type[Restorable], record_id: str, caller: Caller, *, request_id: str, organization_id: str | None = None
) -> Script[Mapping[str, Any]]:
    """Bring an archived record back and return its row, all other fields as they were.

    One statement decides, so that of many callers at once exactly one succeeds. ``organization_id``, where given, must
    be the record's. Raises NotFound (unknown, foreign, or not of this kind: all alike), Forbidden (a role too small),
    NotArchived, and IntegrityError where a live record has taken the slug: :func:`live_namesake` tells which. Then
    nothing is changed.
    """
    moment = now()
    asked = {"record": record_id, "user": caller.user_id, "moment": moment, "organization": organization_id}
    rows = yield _decision(kind), asked
    if not rows:
        yield from _refuse(kind, record_id, caller, organization_id)
    (row,) = rows
    yield _AUDIT, _event(kind, row, caller, request_id=request_id, moment=moment)
    yield from notify_of_restore(kind, row, caller, moment)
    return row


@cache
def _decision(kind: type[Restorable]) -> Update:
    table = kind.sql()
    moment = bindparam("moment", type_=table.c.created_at.type)
    changes = {"archived_at": None} | ({"updated_at": moment} if "updated_at" in table.c else {})
    editable = select(Membership.organization_id).where(
        # Written out: a list is expanded anew for each execution.
        Membership.user_id == bindparam("user"),
        or_(*(Membership.role == role for role in EDITORS)),
    )
    return (
        update(table)
        .where(
            table.c.id == bindparam("record"),
            table.c.archived_at.is_not(None),
            table.c.organization_id.in_(editable),
            table.c.organization_id == func.coalesce(bindparam("organization"), table.c.organization_id),
        )
        .values(changes)
        .returning(*table.c)
    )


def _refuse(kind: type[Restorable], record_id: str, caller: Caller, organization_id: str | None) -> Script[NoReturn]:
    """Find out why there was nothing to restore, and say no more of it than the caller may know."""
    rows = yield _found(kind), {"record": record_id, "user": caller.user_id}
    if not rows or organization_id not in (None, rows[0]["organization_id"]):
        raise NotFound
    (found,) = rows
    if found["role"] not in EDITORS:
        raise Forbidden("Your role in the organization is viewer; restoring takes editor, admin or owner.")
    if found["archived_at"] is None:
        raise NotArchived
    # Archived and allowed now, but not a moment ago: somebody changed it in between.
    raise Unavailable("the record was changed while it was being restored")


@cache
def _found(kind: type[Restorable]) -> Select[Any]:
    table = kind.sql()
    return (
        select(table.c.organization_id, table.c.archived_at, Membership.role)
        .join(Membership, Membership.organization_id == table.c.organization_id)
        .where(table.c.id == bindparam("record"), Membership.user_id == bindparam("user"))
    )


def live_namesake(connection: Connection, kind: type[Restorable], record_id: str) -> str | None:
    """The id of the live record that has an archived one's slug; null where none has."""
    table = kind.sql()
    if "slug" not in table.c:
        return None
    archived = table.alias("archived")
    return connection.scalar(
        select(table.c.id)
        .join(
            archived,
            (archived.c.organization_id == table.c.organization_id) & (archived.c.slug == table.c.slug),
        )
        .where(archived.c.id == record_id, table.c.archived_at.is_(None))
    )


_AUDIT = insert(AuditEvent).values(
    {column.name: bindparam(column.name, type_=column.type) for column in sql_table(AuditEvent).c}
)


def _event(
    kind: type[Restorable], row: Mapping[str, Any], caller: Caller, *, request_id: str, moment: str
) -> dict[str, Any]:
    return {
        "id": new_id(),
        "organization_id": row["organization_id"],
        "at": moment,
        "action": "restore",
        "entity_type": kind.__name__,
        "entity_id": row["id"],
        "user_id": caller.user_id,
        "token_id": caller.token_id,
        "request_id": request_id,
    }
