"""How the restoring of a record becomes a notification."""

from __future__ import annotations

from urllib.parse import quote

from sqlalchemy import Connection, RowMapping, insert, select

from normata.identity.access import Caller
from normata.identity.model import Membership
from normata.notifications.model import Notification
from normata.records.base import Restorable
from normata.vocabulary import new_id


def notify_of_restore(
    connection: Connection, kind: type[Restorable], row: RowMapping, caller: Caller, moment: str
) -> None:
    """Tell the member who answers for the record that it is back, unless it is the caller who brought it back."""
    member_id = kind.answerable and row[kind.answerable]
    if not member_id:
        return
    user_id = connection.scalar(
        select(Membership.user_id).where(
            Membership.id == member_id, Membership.organization_id == row["organization_id"]
        )
    )
    if user_id is None or user_id == caller.user_id:
        return
    key = f"notifications.{kind.__tablename__}.restored"
    connection.execute(
        insert(Notification).values(
            id=new_id(),
            organization_id=row["organization_id"],
            user_id=user_id,
            type="record.restored",
            category=kind.topic,
            payload={
                "titleKey": f"{key}.title",
                "bodyKey": f"{key}.body",
                "params": {"label": row[kind.title_column()], "restoredBy": caller.user_name},
                "url": f"/{kind.path}/{quote(row['id'], safe='')}/",
                "entityType": kind.__name__,
                "entityId": row["id"],
                "entityLabel": row[kind.title_column()],
                "entityMeta": row.get("slug"),
            },
            created_at=moment,
        )
    )
