"""Notifies the members concerned by changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import bindparam, func, insert, literal, or_, select

from normata.core.changes.unit_of_work import Actor, Change, insert_of
from normata.core.db.transaction import Transaction, batches
from normata.core.schema.table import new_id, sql_table
from normata.identity.model import Membership, Organization, User
from normata.notifications.about_comments import commented
from normata.notifications.about_coverage import (
    assessment_assigned,
    conflicts_found,
    coverage_lost,
    rules_changed,
    wordings_changed,
)
from normata.notifications.about_policies import decided, requested, submitted
from normata.notifications.about_records import (
    answers_submitted,
    archived,
    assigned,
    finalized,
    reminded,
    restored,
    verified,
)
from normata.notifications.about_versions import created
from normata.notifications.about_webhooks import disabled
from normata.notifications.message import Message, Rule
from normata.notifications.model import Notification, OutgoingMail


class NotifyMembers:
    """Subscribes to changes: notifies the members that ``rules`` find, except the author of the change.

    A member is notified of a row once, however often the unit of work has changed it. If ``mails`` is true, what may
    have to be mailed goes into the outbox.
    """

    writes = (insert_of(Notification), insert_of(OutgoingMail))

    def __init__(self, rules: Mapping[str, Rule], *, mails: bool = False) -> None:
        self._rules = rules
        self._mails = mails

    def __call__(self, transaction: Transaction, changes: Sequence[Change], actor: Actor, moment: str) -> None:
        """Write what follows from the changes, in their transaction, at ``moment``."""
        notified: set[tuple[str | None, str, str]] = set()
        written: list[dict[str, Any]] = []
        for change in changes:
            rule = self._rules.get(change.action)
            if rule is None:
                continue
            for message in rule(transaction, change, actor):
                thing = change.row_id, message.member_id, message.payload["titleKey"]
                if change.row_id is not None and thing in notified:
                    continue  # two changes of one row make one notification
                notified.add(thing)
                key = {
                    "id": new_id(),
                    "organization": change.organization_id,
                    "member": message.member_id,
                    "actor": actor.user_id or "",
                    "created_at": moment,
                }
                content = {"type": message.type, "category": message.category, "payload": message.payload}
                written.append(key | content)
        if len(written) == 1:
            transaction.rows(_NOTIFY, written[0])
        for batch in batches(written) if len(written) > 1 else ():
            transaction.execute_many(_NOTIFY, batch)
        if written and self._mails:
            transaction.execute_many(_MAIL, [{"id": one["id"]} for one in written])


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
    "submit": _all(submitted, answers_submitted),
    "approve": decided,
    "reject": decided,
    "disable": disabled,
    "ask": requested,
    "ask_again": requested,
    "remind": reminded,
    "verify": verified,
    "finalize": finalized,
    "lose": coverage_lost,
    "conflict": conflicts_found,
    "reword": wordings_changed,
    "compute": rules_changed,
}

_columns = sql_table(Notification).c
_IS_NOTIFIED = (
    Membership.id == bindparam("member"),
    Membership.organization_id == bindparam("organization"),
    Membership.user_id != bindparam("actor"),
    Membership.removed_at.is_(None),
)
_NOTIFY = insert(Notification).from_select(
    ["id", "organization_id", "user_id", "type", "category", "payload", "created_at"],
    select(
        bindparam("id", type_=_columns.id.type),
        Membership.organization_id,
        Membership.user_id,
        *(bindparam(name, type_=_columns[name].type) for name in ("type", "category", "payload", "created_at")),
    ).where(*_IS_NOTIFIED),
)
# Who certainly gets no mail is left out. The job that mails decides about the others.
_MAIL = insert(OutgoingMail).from_select(
    ["id", "organization_id", "user_id", "due_at", "attempts"],
    select(
        Notification.id,
        Notification.organization_id,
        Notification.user_id,
        Notification.created_at,
        literal(0, literal_execute=True),
    )
    .join(User, User.id == Notification.user_id)
    .join(Organization, Organization.id == Notification.organization_id)
    .where(
        Notification.id == bindparam("id"),
        User.email.is_not(None),
        or_(User.refused_email.is_(None), User.refused_email != User.email),
        or_(func.coalesce(User.mail, Organization.mail) != "OFF", User.mail_by_type.is_not(None)),
    ),
)
