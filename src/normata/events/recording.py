"""Writes an audit event for each change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import bindparam, insert

from normata.core.changes.unit_of_work import Actor, Change, insert_of
from normata.core.db.transaction import Transaction, batches
from normata.core.schema.table import new_id, sql_table
from normata.events.content import body_of
from normata.events.model import AuditEvent, UnsealedEvent
from normata.frameworks.model import ControlCoverage


class RecordEvents:
    """Subscribes to changes: each with a row, or with counts, becomes an event.

    Others only concern the revisions of lists.
    """

    # A trigger notes each event, with the rights of the user who writes it.
    writes = (insert_of(AuditEvent), insert_of(UnsealedEvent))

    def __call__(self, transaction: Transaction, changes: Sequence[Change], actor: Actor, moment: str) -> None:
        """Write what follows from the changes, in their transaction, at ``moment``."""
        recorded = [change for change in changes if change.row_id is not None or change.counts is not None]
        if len(recorded) == 1:
            transaction.rows(_EVENT, _event(recorded[0], actor, moment))
            return
        for batch in batches(recorded):
            transaction.execute_many(_EVENT, [_event(change, actor, moment) for change in batch])


def _event(change: Change, actor: Actor, moment: str) -> dict[str, Any]:
    event_id = new_id()
    return {
        "id": event_id,
        "organization_id": change.organization_id,
        "at": moment,
        "action": change.action,
        "entity_type": change.table.__name__,
        "entity_id": change.row_id,
        "user_id": actor.user_id,
        "token_id": actor.token_id,
        "request_id": actor.request_id,
        "body": body_of(event_id, change, actor, moment),
        "control_id": _control_of(change),
    }


def _control_of(change: Change) -> str | None:
    """The control of an assessment; null if the change names only what has changed."""
    row = change.row or change.before
    return row.get("control_id") if change.table is ControlCoverage and row is not None else None


_EVENT = insert(AuditEvent).values(
    {column.name: bindparam(column.name, type_=column.type) for column in sql_table(AuditEvent).c}
)
