"""Whom a change concerns, and what they are told of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from sqlalchemy import bindparam, insert, select

from normata.changes.unit_of_work import Actor, Change, insert_of
from normata.db.transaction import Transaction
from normata.identity.model import Membership
from normata.notifications.model import Notification
from normata.records.base import Restorable
from normata.schema.table import new_id, sql_table


class Message(NamedTuple):
    """A notification to one member."""

    member_id: str
    type: str
    category: str
    payload: dict[str, Any]


# Whom a change concerns and what they are told, found in its own transaction.
Rule = Callable[[Transaction, Change, Actor], Iterable[Message]]


class NotifyMembers:
    """Subscribes to changes: tells those whom ``rules`` find concerned, but never who made the change."""

    writes = (insert_of(Notification),)

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        self._rules = rules

    def __call__(self, transaction: Transaction, changes: Sequence[Change], actor: Actor, moment: str) -> None:
        """See :class:`normata.changes.unit_of_work.Subscriber`."""
        for change in changes:
            rule = self._rules.get(change.action)
            if rule is None or change.row is None:
                continue
            for message in rule(transaction, change, actor):
                transaction.rows(
                    _NOTIFY,
                    {
                        "id": new_id(),
                        "organization": change.organization_id,
                        "member": message.member_id,
                        "actor": actor.user_id or "",
                        "type": message.type,
                        "category": message.category,
                        "payload": message.payload,
                        "created_at": moment,
                    },
                )


def record_restored(_transaction: Transaction, change: Change, actor: Actor) -> Iterator[Message]:
    """Tell the responsible member that a record is back."""
    kind, row = change.table, change.row or {}
    if not issubclass(kind, Restorable) or kind.responsible is None or row[kind.responsible] is None:
        return
    key = f"notifications.{kind.__tablename__}.restored"
    label = row[kind.title_column()]
    yield Message(
        row[kind.responsible],
        "record.restored",
        kind.topic,
        {
            "titleKey": f"{key}.title",
            "bodyKey": f"{key}.body",
            "params": {"label": label, "restoredBy": actor.user_name},
            "url": f"/{kind.path}/{quote(row['id'], safe='')}/",
            "entityType": kind.__name__,
            "entityId": row["id"],
            "entityLabel": label,
            "entityMeta": row.get("slug"),
        },
    )


RULES: Mapping[str, Rule] = {"restore": record_restored}

_columns = sql_table(Notification).c
_NOTIFY = insert(Notification).from_select(
    ["id", "organization_id", "user_id", "type", "category", "payload", "created_at"],
    select(
        bindparam("id", type_=_columns.id.type),
        Membership.organization_id,
        Membership.user_id,
        *(bindparam(name, type_=_columns[name].type) for name in ("type", "category", "payload", "created_at")),
    ).where(
        Membership.id == bindparam("member"),
        Membership.organization_id == bindparam("organization"),
        Membership.user_id != bindparam("actor"),
    ),
)
