"""Entitlement reviews: the state in which their items change, and finishing them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import Field
from sqlalchemy import bindparam, func, select, update

from normata.core.changes.source import FaultyInput, Row
from normata.core.changes.unit_of_work import Change, UnitOfWork, update_of
from normata.core.changes.writing import BODY, valid_rows, write
from normata.core.db.transaction import batches
from normata.core.schema.fields import Identifier, Timestamp
from normata.core.schema.table import new_id, sql_table
from normata.core.schema.wire import Input, columns
from normata.entitlements.model import CHANGE, REMOVE, EntitlementReviewItem
from normata.errors import Archived, WrongState
from normata.identity.model import Membership
from normata.records.kinds import EntitlementReview, Task
from normata.records.lookup import found_for_change
from normata.records.steps import step_writes, take_step
from normata.records.writing import creation_writes, rules_of

RUNNING, FINISHED = "RUNNING", "FINISHED"
UNDECIDED, DECIDED = "UNDECIDED", "DECIDED"
_TITLE = 500  # characters


class ReviewFinish(Input):
    """Who gets the tasks of a review that is finished, and by when."""

    assignee_member_id: Identifier | None = Field(
        default=None, description="The member who gets the tasks; left out or null, the coordinator."
    )
    deadline: Timestamp | None = Field(default=None, description="By when they have to be done.")


FINISH_WRITES = (
    *step_writes(EntitlementReview, "finished_at"),
    update_of(EntitlementReviewItem, "task_id"),
    *creation_writes(Task),
)


def running_review(unit: UnitOfWork, review_id: str) -> Any:
    """The row of a review that is live and not finished, locked until the transaction ends.

    Raises NotFound, InsufficientRole, Archived and WrongState.
    """
    review = found_for_change(unit, EntitlementReview, review_id)
    if review.archived_at is not None:
        raise Archived
    if review.finished_at is not None:
        raise WrongState(FINISHED, [RUNNING])
    return review


def finish(unit: UnitOfWork, review_id: str, body: ReviewFinish | None) -> Any:
    """Finish a review whose items are all decided, and return its row. Each removal and change gets a task.

    Raises NotFound, InsufficientRole, Archived, FaultyInput for who or when, and WrongState if it is finished, or an
    item is not decided.
    """
    review = running_review(unit, review_id)
    key = {"organization": review.organization_id, "review": review_id}
    left = unit.scalar(_LEFT, key)
    if left:
        more = f"{left:,} item{'s have' if left > 1 else ' has'} no decision."
        raise WrongState(UNDECIDED, [DECIDED], more)
    items = unit.rows(_TO_DO, key)
    if items:
        sent = body.model_dump(by_alias=True, exclude_none=True) if body is not None else {}
        values = {"assigneeMemberId": _live_member(unit, review)} | sent
        _make_tasks(unit, review, items, values)
    return take_step(unit, "finish", EntitlementReview, review, {"finished_at": unit.moment})


def _live_member(unit: UnitOfWork, review: Any) -> str | None:
    found: str | None = unit.scalar(_MEMBER, {"member": review.coordinator_id})
    return found


def _make_tasks(unit: UnitOfWork, review: Any, items: Iterable[Any], values: Mapping[str, Any]) -> None:
    """Make the task of each item, and note it there."""
    task_of = {new_id(): item for item in items}
    of_review = {"organizationId": review.organization_id, "entitlementReviewId": review.id}
    rows = [
        Row(Task.array, BODY, "", {**_task(item), **values, **of_review, "id": task_id})
        for task_id, item in task_of.items()
    ]
    try:
        pending = valid_rows(unit, Task, rows, own_rules=rules_of(Task), are_new=True)
    except FaultyInput as error:  # each task has the same
        raise FaultyInput([*dict.fromkeys(error.faults)]) from None
    write(unit, Task, pending)
    for ids in batches([*task_of]):
        for task in unit.rows(_TASKS, {"ids": ids}):
            unit.publish(Change("create", Task, task.organization_id, task.id, task._asdict()))
    parameters = [{"of": item.id, "task": task_id} for task_id, item in task_of.items()]
    for batch in batches(parameters):
        unit.execute_many(_NOTE_TASK, batch)
    for task_id, item in task_of.items():
        before = item._asdict()
        after = before | {"task_id": task_id}
        unit.publish(Change("update", EntitlementReviewItem, review.organization_id, item.id, after, before))


def _task(item: Any) -> dict[str, Any]:
    """What a task says that carries out the decision about an item."""
    words = ("Remove", "from") if item.decision == REMOVE else ("Change", "of")
    title = f"{words[0]} {item.entitlement} in {item.system} {words[1]} {item.person}"
    lines = [f"Change to: {item.change}"] if item.decision == CHANGE else []
    lines += [f"Remark: {item.remark}"] if item.remark else []
    return {
        "title": title if len(title) <= _TITLE else f"{title[: _TITLE - 1]}…",
        "description": "\n\n".join(lines) or None,
        "type": "REVIEW",
    }


# --- Statements

_ITEMS = sql_table(EntitlementReviewItem)
_MEMBERSHIP = sql_table(Membership)
_OF_REVIEW = (
    _ITEMS.c.organization_id == bindparam("organization"),
    _ITEMS.c.entitlement_review_id == bindparam("review"),
)
_LEFT = select(func.count()).select_from(_ITEMS).where(*_OF_REVIEW, _ITEMS.c.decision.is_(None))
_TO_DO = (
    select(*_ITEMS.c)
    .where(*_OF_REVIEW, _ITEMS.c.decision.in_((REMOVE, CHANGE)))
    .order_by(_ITEMS.c.created_at, _ITEMS.c.id)
)
_MEMBER = select(_MEMBERSHIP.c.id).where(_MEMBERSHIP.c.id == bindparam("member"), _MEMBERSHIP.c.removed_at.is_(None))
_TASKS = select(*columns(Task)).where(Task.sql().c.id.in_(bindparam("ids", expanding=True))).order_by(Task.sql().c.id)
_NOTE_TASK = update(_ITEMS).where(_ITEMS.c.id == bindparam("of")).values(task_id=bindparam("task"))
