"""Who is told that controls have lost coverage, and what.

Nobody answers for a control. So the admins and owners are told of all that was lost, and whoever has an open task about
what is stated of a control of that control. Each is told once of a change, however many controls it has reached.
Categories are left out, as reports leave them out: what they have lost is what the controls below them have lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

from sqlalchemy import BindParameter, bindparam, select

from normata.core.changes.unit_of_work import Actor, Change
from normata.core.db.transaction import Transaction, batches
from normata.core.schema.table import sql_table
from normata.coverage.recompute import CoverageLost
from normata.frameworks.model import Control, ControlCoverage, Framework
from normata.identity.model import Membership
from normata.notifications.message import Message, name_of, payload
from normata.records.kinds import Task

_FIRST = 5  # controls that are named


def coverage_lost(transaction: Transaction, change: Change, actor: Actor) -> Iterator[Message]:
    """Tell those who have to see to it that controls are covered less than they were."""
    assert isinstance(change, CoverageLost)  # noqa: S101 - narrows the type; nothing else is published as "lose"
    key = {"organization": change.organization_id}
    found = [row for batch in batches(change.controls) for row in transaction.rows(_LEAVES, {"ids": batch})]
    if not found:
        return
    found.sort(key=lambda row: (row.identifier_key, row.framework_id, row.position))
    concerned: dict[str, list[Any]] = dict.fromkeys(transaction.scalars(_ADMINS, key), found)
    by_id = {row.id: row for row in found}
    for batch in batches(list(by_id)):
        for member, control in transaction.rows(_WITH_TASKS, {**key, "ids": batch}):
            if concerned.get(member) is not found:
                concerned.setdefault(member, []).append(by_id[control])
    for member, controls in concerned.items():
        yield _message(member, controls, name_of(actor))


def _message(member: str, controls: Sequence[Any], changed_by: str) -> Message:
    first = controls[0]
    named = ", ".join(f"{row.identifier} {row.name}" for row in controls[:_FIRST])
    more = ", …" if len(controls) > _FIRST else ""
    return Message(
        member,
        "coverage.lost",
        "CONTROLS",
        payload(
            "control.coverage_lost",
            {"count": len(controls), "controls": f"{named}{more}", "changedBy": changed_by},
            f"/controls/{quote(first.id, safe='')}/",
            {"type": "Control", "id": first.id, "label": first.name, "meta": first.identifier},
        ),
    )


_CONTROL, _FRAMEWORK, _STATEMENT = sql_table(Control), sql_table(Framework), sql_table(ControlCoverage)
_MEMBER, _TASK = sql_table(Membership), Task.sql()
_CHILD = _CONTROL.alias("child")
_ORGANIZATION: BindParameter[str] = bindparam("organization")
_IDS: BindParameter[str] = bindparam("ids", expanding=True)

_LEAVES = (
    select(
        _CONTROL.c.id,
        _CONTROL.c.identifier,
        _CONTROL.c.name,
        _CONTROL.c.framework_id,
        _CONTROL.c.position,
        _FRAMEWORK.c.identifier_key,
    )
    .join(_FRAMEWORK, _FRAMEWORK.c.id == _CONTROL.c.framework_id)
    .where(_CONTROL.c.id.in_(_IDS), ~select(_CHILD.c.id).where(_CHILD.c.parent_id == _CONTROL.c.id).exists())
)
_ADMINS = (
    select(_MEMBER.c.id)
    .where(
        _MEMBER.c.organization_id == _ORGANIZATION,
        _MEMBER.c.role.in_(("admin", "owner")),
        _MEMBER.c.removed_at.is_(None),
    )
    .order_by(_MEMBER.c.id)
)
_DONE = _TASK.c.deadline.info["due"].at
_WITH_TASKS = (
    select(_TASK.c.assignee_member_id, _STATEMENT.c.control_id)
    .join(_STATEMENT, _STATEMENT.c.id == _TASK.c.control_coverage_id)
    .where(
        _TASK.c.organization_id == _ORGANIZATION,
        _STATEMENT.c.organization_id == _ORGANIZATION,
        _STATEMENT.c.control_id.in_(_IDS),
        _TASK.c.archived_at.is_(None),
        _TASK.c.control_coverage_id.is_not(None),  # as the index of the list says it
        _TASK.c.status.not_in(_DONE),
        _TASK.c.assignee_member_id.is_not(None),
    )
    .distinct()
    .order_by(_TASK.c.assignee_member_id, _STATEMENT.c.control_id)
)
