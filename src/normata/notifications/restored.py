"""How the restoring of a record becomes a notification."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from sqlalchemy import bindparam, insert, literal, select

from normata.database import Script
from normata.identity.access import Caller
from normata.identity.model import Membership
from normata.notifications.model import Notification
from normata.records.base import Restorable
from normata.vocabulary import new_id, sql_table


def notify_of_restore(kind: type[Restorable], row: Mapping[str, Any], caller: Caller, moment: str) -> Script[None]:
    """Tell the member who answers for the record that it is back, unless it is the caller who brought it back."""
    member_id = kind.answerable and row[kind.answerable]
    if not member_id:
        return
    key = f"notifications.{kind.__tablename__}.restored"
    notification = {
        "id": new_id(),
        "organization": row["organization_id"],
        "member": member_id,
        "caller": caller.user_id,
        "category": kind.topic,
        "payload": {
            "titleKey": f"{key}.title",
            "bodyKey": f"{key}.body",
            "params": {"label": row[kind.title_column()], "restoredBy": caller.user_name},
            "url": f"/{kind.path}/{quote(row['id'], safe='')}/",
            "entityType": kind.__name__,
            "entityId": row["id"],
            "entityLabel": row[kind.title_column()],
            "entityMeta": row.get("slug"),
        },
        "created_at": moment,
    }
    yield _NOTIFY, notification


_columns = sql_table(Notification).c
_NOTIFY = insert(Notification).from_select(
    ["id", "organization_id", "user_id", "type", "category", "payload", "created_at"],
    select(
        bindparam("id", type_=_columns.id.type),
        Membership.organization_id,
        Membership.user_id,
        literal("record.restored", _columns.type.type),
        bindparam("category", type_=_columns.category.type),
        bindparam("payload", type_=_columns.payload.type),
        bindparam("created_at", type_=_columns.created_at.type),
    ).where(
        Membership.id == bindparam("member"),
        Membership.organization_id == bindparam("organization"),
        Membership.user_id != bindparam("caller"),
    ),
)
