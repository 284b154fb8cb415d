"""Notifications about assessments and lost coverage.

The owner of an assessment is notified when it is assigned, and reminded of its review, as for a record. Coverage may be
lost anywhere. So admins and owners are notified of all lost coverage. The owner of an assessment and members with an
open task about it are notified of that of its control. Each is notified once of a change, however many controls it
affects. Categories are left out, as in reports: they lose what the controls below them lose. The owner of the
assessment is notified of a conflict, or the admins and owners if it has none. If changed wordings make assessments
stale, admins and owners are notified of all of them, and the owner of an assessment of that one. If an upgrade has
changed coverage, admins and owners are notified of that once, and of nothing else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from sqlalchemy import BindParameter, CompoundSelect, Select, bindparam, select

from normata.core.changes.unit_of_work import Actor, Change
from normata.core.db.transaction import Transaction, batches
from normata.core.schema.table import sql_table
from normata.coverage.lapses import LAPSES
from normata.coverage.published import ConflictsFound, CoverageLost, RulesChanged, WordingsChanged
from normata.coverage.upgrading import NOTIFICATION_TYPE, rules_changed_payload
from normata.frameworks.model import ControlCoverage
from normata.frameworks.named_controls import named_controls
from normata.identity.model import Membership
from normata.notifications.message import Message, name_of, payload
from normata.notifications.model import Notification
from normata.records.kinds import Task

_FIRST = 5  # controls that the text lists


def coverage_lost(transaction: Transaction, change: Change, actor: Actor) -> Iterator[Message]:
    """Notify the members concerned of lost coverage."""
    assert isinstance(change, CoverageLost)  # noqa: S101 - narrows the type; nothing else is published as "lose"
    found = named_controls(transaction, change.controls, requirements=True)
    if not found:
        return
    has_lapsed = actor.command == LAPSES.name
    for member, controls in _by_member(transaction, change, found, _RESPONSIBLE).items():
        if has_lapsed:
            yield _message(member, controls, sort="coverage.lost", key="coverage_lapsed")
        else:
            yield _message(member, controls, sort="coverage.lost", key="coverage_lost", changedBy=name_of(actor))


def assessment_assigned(transaction: Transaction, change: Change, actor: Actor) -> Iterator[Message]:
    """Notify the new owner of an assessment.

    If a command has changed it, nobody is notified, as for a record.
    """
    before, after = change.before or {}, change.row or {}
    if actor.user_id is not None and before.get("owner_id") != after.get("owner_id"):
        yield from _to_owner(transaction, change, "assigned", "record.assigned", {"assignedBy": name_of(actor)})


def review_reminded(transaction: Transaction, change: Change, which: str) -> Iterator[Message]:
    """Remind the owner of an assessment of its review, a week before or on the day."""
    due_at = (change.row or {})["review_by"]
    params = {"dueOn": due_at[: len("2026-11-20")], "dueAt": due_at}
    yield from _to_owner(transaction, change, f"review_by_{which}", f"record.due_{which}", params)


def _to_owner(
    transaction: Transaction, change: Change, key: str, sort: str, params: Mapping[str, Any]
) -> Iterator[Message]:
    row = change.row or {}
    if row.get("owner_id") is None:
        return
    [control] = named_controls(transaction, [row["control_id"]])
    yield Message(
        row["owner_id"],
        sort,
        "CONTROLS",
        payload(
            f"assessment.{key}",
            {"label": f"{control.identifier} {control.name}", **params},
            f"/controls/{quote(control.id, safe='')}/",
            {"type": "Control", "id": control.id, "label": control.name, "meta": control.identifier},
        ),
    )


def conflicts_found(transaction: Transaction, change: Change, actor: Actor) -> Iterator[Message]:
    """Notify the members responsible for assessments of conflicts."""
    assert isinstance(change, ConflictsFound)  # noqa: S101 - narrows the type; nothing else is published as "conflict"
    key = {"organization": change.organization_id}
    found = named_controls(transaction, change.controls)
    owners = {
        row.control_id: row.owner_id
        for batch in batches(change.controls)
        for row in transaction.rows(_OWNERS, {**key, "ids": batch})
    }
    concerned: dict[str, list[Any]] = {}
    admins = transaction.scalars(ADMINS, key)
    for row in found:
        for member in [owners[row.id]] if owners.get(row.id) else admins:
            concerned.setdefault(member, []).append(row)
    for member, controls in concerned.items():
        yield _message(member, controls, sort="coverage.conflict", key="coverage_conflict", changedBy=name_of(actor))


def wordings_changed(transaction: Transaction, change: Change, actor: Actor) -> Iterator[Message]:
    """Notify admins and owners of assessments that are stale by changed wordings, and their owners of their own."""
    assert isinstance(change, WordingsChanged)  # noqa: S101 - narrows the type; nothing else is published as "reword"
    if not change.stale:
        return
    found = named_controls(transaction, change.stale)
    for member, controls in _by_member(transaction, change, found, _OWNERS).items():
        yield _message(member, controls, sort="coverage.reworded", key="reworded", changedBy=name_of(actor))


def rules_changed(transaction: Transaction, change: Change, _actor: Actor) -> Iterator[Message]:
    """Notify admins and owners that an upgrade has changed coverage, unless they have such an unread notification."""
    if isinstance(change, RulesChanged) and change.organization_id is not None:
        for member in transaction.scalars(_ADMINS_TO_NOTIFY, {"organization": change.organization_id}):
            yield Message(member, NOTIFICATION_TYPE, "CONTROLS", rules_changed_payload(change.organization_id))


def _by_member(
    transaction: Transaction, change: Change, found: list[Any], others: CompoundSelect[Any] | Select[Any]
) -> dict[str, list[Any]]:
    """The controls for each member: all for admins and owners, and their own for ``others`` (a member, a control)."""
    key = {"organization": change.organization_id}
    concerned: dict[str, list[Any]] = dict.fromkeys(transaction.scalars(ADMINS, key), found)
    by_id = {row.id: row for row in found}
    for batch in batches(list(by_id)):
        controls: defaultdict[str, set[str]] = defaultdict(set)
        for member, control in transaction.rows(others, {**key, "ids": batch}):
            controls[member].add(control)
        for member in sorted(controls):
            if concerned.get(member) is not found:
                own = controls[member]
                concerned.setdefault(member, []).extend(by_id[one] for one in batch if one in own)
    return concerned


def _message(member: str, controls: Sequence[Any], *, sort: str, key: str, **params: str) -> Message:
    first = controls[0]
    named = ", ".join(f"{row.identifier} {row.name}" for row in controls[:_FIRST])
    more = ", …" if len(controls) > _FIRST else ""
    return Message(
        member,
        sort,
        "CONTROLS",
        payload(
            f"control.{key}",
            {"count": len(controls), "controls": f"{named}{more}", **params},
            f"/controls/{quote(first.id, safe='')}/",
            {"type": "Control", "id": first.id, "label": first.name, "meta": first.identifier},
        ),
    )


_STATEMENT = sql_table(ControlCoverage)
_MEMBER, _TASK = sql_table(Membership), Task.sql()
_ORGANIZATION: BindParameter[str] = bindparam("organization")
_IDS: BindParameter[str] = bindparam("ids", expanding=True)

_OWNERS = (
    select(_STATEMENT.c.owner_id, _STATEMENT.c.control_id)
    .join(_MEMBER, (_MEMBER.c.id == _STATEMENT.c.owner_id) & _MEMBER.c.removed_at.is_(None))
    .where(_STATEMENT.c.organization_id == _ORGANIZATION, _STATEMENT.c.control_id.in_(_IDS))
)
ADMINS = (
    select(_MEMBER.c.id)
    .where(
        _MEMBER.c.organization_id == _ORGANIZATION,
        _MEMBER.c.role.in_(("admin", "owner")),
        _MEMBER.c.removed_at.is_(None),
    )
    .order_by(_MEMBER.c.id)
)
_NOTIFICATION = sql_table(Notification)
_NOTIFIED = (
    select(_NOTIFICATION.c.id)
    .where(
        _NOTIFICATION.c.organization_id == _ORGANIZATION,
        _NOTIFICATION.c.user_id == _MEMBER.c.user_id,
        _NOTIFICATION.c.type == NOTIFICATION_TYPE,
        _NOTIFICATION.c.read_at.is_(None),
    )
    .correlate(_MEMBER)
    .exists()
)
_ADMINS_TO_NOTIFY = ADMINS.where(~_NOTIFIED)
_DONE = _TASK.c.deadline.info["due"].at
_WITH_TASKS = (
    select(_TASK.c.assignee_member_id, _STATEMENT.c.control_id)
    .join(_STATEMENT, _STATEMENT.c.id == _TASK.c.control_coverage_id)
    .where(
        _TASK.c.organization_id == _ORGANIZATION,
        _STATEMENT.c.organization_id == _ORGANIZATION,
        _STATEMENT.c.control_id.in_(_IDS),
        _TASK.c.archived_at.is_(None),
        _TASK.c.control_coverage_id.is_not(None),  # the condition of the list's index
        _TASK.c.status.not_in(_DONE),
        _TASK.c.assignee_member_id.is_not(None),
    )
)
_RESPONSIBLE = _WITH_TASKS.union(_OWNERS)  # each once
