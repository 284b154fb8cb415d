"""Notifies the members concerned by changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlalchemy import bindparam, insert, select

from normata.core.changes.unit_of_work import Actor, Change, insert_of
from normata.core.db.transaction import Transaction
from normata.core.schema.table import new_id, sql_table
from normata.identity.model import Membership
from normata.notifications.about_comments import commented
from normata.notifications.about_coverage import (
    assessment_assigned,
    conflicts_found,
    coverage_lost,
    rules_changed,
    wordings_changed,
)
from normata.notifications.about_policies import decided, submitted
from normata.notifications.about_records import archived, assigned, reminded, restored, verified
from normata.notifications.about_versions import created
from normata.notifications.message import Message, Rule
from normata.notifications.model import Notification


class NotifyMembers:
    """Subscribes to changes: notifies the members that ``rules`` find, except the author of the change.

    A member is notified of a row once, however often the unit of work has changed it.
    """

    writes = (insert_of(Notification),)

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        self._rules = rules

    def __call__(self, transaction: Transaction, changes: Sequence[Change], actor: Actor, moment: str) -> None:
        """Write what follows from the changes, in their transaction, at ``moment``."""
        notified: set[tuple[str | None, str, str]] = set()
        for change in changes:
            rule = self._rules.get(change.action)
            if rule is None:
                continue
            for message in rule(transaction, change, actor):
                thing = change.row_id, message.member_id, message.payload["titleKey"]
                if change.row_id is not None and thing in notified:
                    continue  # two changes of one row make one notification
                notified.add(thing)
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


def _all(*rules: Rule) -> Rule:
    """All messages of these rules."""

    def messages(transaction: Transaction, change: Change, actor: Actor) -> Iterator[Message]:
        for rule in rules:
            yield from rule(transaction, change, actor)

    return messages


RULES: Mapping[str, Rule] = {
    "assess": assessment_assigned,
    "create": _all(created, commented),
    "update": _all(assigned, commented),
    "archive": archived,
    "restore": restored,
    "submit": submitted,
    "approve": decided,
    "reject": decided,
    "remind": reminded,
    "verify": verified,
    "lose": coverage_lost,
    "conflict": conflicts_found,
    "reword": wordings_changed,
    "compute": rules_changed,
}

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
        Membership.removed_at.is_(None),
    ),
)
