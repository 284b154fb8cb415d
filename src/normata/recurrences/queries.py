"""Reading the recurrence of a task or a review."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field
from sqlalchemy import bindparam

from normata.core.db.transaction import Transaction
from normata.core.db.types import now
from normata.core.schema.fields import Timestamp
from normata.core.schema.wire import Wire
from normata.errors import NotFound
from normata.records.base import Restorable
from normata.records.lookup import find
from normata.recurrences.following import recurrences
from normata.recurrences.kinds import frequency_of, is_done, turn_after


class RecurrenceAnswer(Wire):
    """How often a task or a review recurs, and what comes next."""

    frequency: str | None = Field(
        description="How often: `DAILY`, `WEEKLY`, `MONTHLY`, `QUARTERLY`, `HALF_YEARLY` or `YEARLY`; null if it does"
        " not recur."
    )
    next_deadline: Timestamp | None = Field(
        description="The deadline that the next one would have if this one were done now; null if none would be made."
    )
    next_id: str | None = Field(description="The id of the next one; null until it is made.")


def read_recurrence(
    transaction: Transaction, kind: type[Restorable], organization_id: str, record_id: str
) -> Mapping[str, Any]:
    """The members of :class:`RecurrenceAnswer`, of a record that is live or archived. Raises NotFound."""
    row = transaction.row(_found(kind), {"record": record_id, "organization": organization_id})
    if row is None:
        raise NotFound
    found = recurrences(transaction, organization_id, kind, [record_id]).get(record_id)
    return as_answer(kind, row._asdict(), found, now())


def as_answer(kind: type[Restorable], row: Mapping[str, Any], recurrence: Any, moment: str) -> Mapping[str, Any]:
    """The members of :class:`RecurrenceAnswer`, from the row of a record, and what is stored of its recurrence."""
    is_over = is_done(kind, row) or row["archived_at"] is not None
    found = None if is_over else turn_after(kind, row, recurrence, moment)
    return {
        "frequency": frequency_of(kind, row, recurrence),
        "nextDeadline": None if found is None else found[0].deadline,
        "nextId": None if recurrence is None else recurrence.next_id,
    }


def _found(kind: type[Restorable]) -> Any:
    return find(kind).where(kind.sql().c.organization_id == bindparam("organization"))
