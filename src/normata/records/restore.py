"""The one restore, for every kind of record."""

from __future__ import annotations

from typing import NoReturn

from sqlalchemy import Connection, RowMapping, insert, select, update
from sqlalchemy.exc import IntegrityError

from normata.database import Unavailable, now
from normata.errors import Forbidden, NotArchived, NotFound, SlugTaken
from normata.identity.access import Caller
from normata.identity.model import EDITORS, AuditEvent, Membership
from normata.notifications.restored import notify_of_restore
from normata.records.base import Restorable
from normata.vocabulary import new_id


def restore(
    connection: Connection,
    kind: type[Restorable],
    record_id: str,
    caller: Caller,
    *,
    request_id: str,
    organization_id: str | None = None,
) -> RowMapping:
    """Bring an archived record back and return its row, all other fields as they were.

    One statement decides, so that of many callers at once exactly one succeeds. ``organization_id``, where given, must
    be the record's. Raises NotFound (unknown, foreign, or not of this kind: all alike), Forbidden (a role too small),
    NotArchived and SlugTaken; then nothing is changed.
    """
    table = kind.sql()
    moment = now()
    changes = {"archived_at": None} | ({"updated_at": moment} if "updated_at" in table.c else {})
    editable = select(Membership.organization_id).where(
        Membership.user_id == caller.user_id, Membership.role.in_(EDITORS)
    )
    statement = (
        update(table)
        .where(table.c.id == record_id, table.c.archived_at.is_not(None), table.c.organization_id.in_(editable))
        .values(changes)
        .returning(*table.c)
    )
    if organization_id is not None:
        statement = statement.where(table.c.organization_id == organization_id)
    try:
        with connection.begin_nested():
            row = connection.execute(statement).mappings().one_or_none()
    except IntegrityError:
        namesake = _live_namesake(connection, kind, record_id)
        if namesake is None:
            raise  # it was another constraint, so a fault of ours
        raise SlugTaken(conflicting_id=namesake) from None
    if row is None:
        _refuse(connection, kind, record_id, caller, organization_id)
    _remember(connection, kind, row, caller, request_id=request_id, moment=moment)
    notify_of_restore(connection, kind, row, caller, moment)
    return row


def _refuse(
    connection: Connection, kind: type[Restorable], record_id: str, caller: Caller, organization_id: str | None
) -> NoReturn:
    """Find out why there was nothing to restore, and say no more of it than the caller may know."""
    table = kind.sql()
    found = connection.execute(
        select(table.c.organization_id, table.c.archived_at, Membership.role)
        .join(Membership, Membership.organization_id == table.c.organization_id)
        .where(table.c.id == record_id, Membership.user_id == caller.user_id)
    ).one_or_none()
    if found is None or organization_id not in (None, found.organization_id):
        raise NotFound
    if found.role not in EDITORS:
        raise Forbidden("Your role in the organization is viewer; restoring takes editor, admin or owner.")
    if found.archived_at is None:
        raise NotArchived
    # Archived and allowed now, but not a moment ago: somebody changed it in between.
    raise Unavailable("the record was changed while it was being restored")


def _live_namesake(connection: Connection, kind: type[Restorable], record_id: str) -> str | None:
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


def _remember(
    connection: Connection, kind: type[Restorable], row: RowMapping, caller: Caller, *, request_id: str, moment: str
) -> None:
    connection.execute(
        insert(AuditEvent).values(
            id=new_id(),
            organization_id=row["organization_id"],
            at=moment,
            action="restore",
            entity_type=kind.__name__,
            entity_id=row["id"],
            user_id=caller.user_id,
            token_id=caller.token_id,
            request_id=request_id,
        )
    )
