"""Writes an audit event for each change that somebody makes over HTTP."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import bindparam, insert

from normata.changes.unit_of_work import Actor, Change, insert_of
from normata.db.transaction import Transaction
from normata.events.model import AuditEvent
from normata.schema.table import new_id, sql_table


class RecordEvents:
    """Subscribes to changes: each that names its row becomes an event.

    Commands have no user to name, and bulk changes no row, so they leave none.
    """

    writes = (insert_of(AuditEvent),)

    def __call__(self, transaction: Transaction, changes: Sequence[Change], actor: Actor, moment: str) -> None:
        """See :class:`normata.changes.unit_of_work.Subscriber`."""
        if actor.user_id is None:
            return
        for change in changes:
            if change.row_id is not None and change.organization_id is not None:
                transaction.rows(
                    _EVENT,
                    {
                        "id": new_id(),
                        "organization_id": change.organization_id,
                        "at": moment,
                        "action": change.action,
                        "entity_type": change.table.__name__,
                        "entity_id": change.row_id,
                        "user_id": actor.user_id,
                        "token_id": actor.token_id,
                        "request_id": actor.request_id,
                    },
                )


_EVENT = insert(AuditEvent).values(
    {column.name: bindparam(column.name, type_=column.type) for column in sql_table(AuditEvent).c}
)
