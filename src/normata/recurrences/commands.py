"""Setting how often a review recurs, and taking back what an undone completion has made."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import bindparam, update

from normata.core.changes.unit_of_work import Change, UnitOfWork, insert_of, update_of
from normata.core.db.security import together
from normata.core.db.upsert import upsert
from normata.core.schema.table import new_id, sql_table
from normata.errors import Archived, WrongState
from normata.records.archiving import archive, archive_writes
from normata.records.base import Restorable
from normata.records.lookup import found_for_change
from normata.recurrences.following import recurrences
from normata.recurrences.kinds import RECURRING, is_done
from normata.recurrences.model import Recurrence
from normata.recurrences.queries import as_answer

RECURRENCE_WRITES = (insert_of(Recurrence), update_of(Recurrence, "frequency"))
TAKING_BACK_WRITES = together(
    *(archive_writes(kind) for kind in RECURRING), (update_of(Recurrence, "next_id", "made_at"),)
)
_REASON = "What it follows is open again."


def set_frequency(unit: UnitOfWork, kind: type[Restorable], record_id: str, frequency: str | None) -> Mapping[str, Any]:
    """Say how often a review recurs, null if it does not any more, and return its recurrence in wire form.

    That is an event of the review. Raises NotFound, InsufficientRole, Archived, and WrongState if it is finished.
    """
    record = found_for_change(unit, kind, record_id)
    if record.archived_at is not None:
        raise Archived
    if is_done(kind, record._asdict()):
        raise WrongState("FINISHED", ("RUNNING",))
    key = record.organization_id, kind, [record_id]
    before = recurrences(unit, *key).get(record_id)
    if frequency != (None if before is None else before.frequency):
        new = {"id": new_id(), "organization_id": record.organization_id, "kind": kind.path, "record_id": record_id}
        unit.rows(_SET, new | {"frequency": frequency, "day": None, "next_id": None, "made_at": None})
        row = record._asdict()
        unit.publish(
            Change("repeat", kind, record.organization_id, record_id, row, row, counts={"frequency": frequency})
        )
    return as_answer(kind, record._asdict(), recurrences(unit, *key).get(record_id), unit.moment)


def take_back(
    unit: UnitOfWork, organization_id: str, moment: str, opened: Iterable[tuple[type[Restorable], str]]
) -> None:
    """Archive what was made at a moment because these were done, which are open again, and let them have a next again.

    What somebody has changed since stays.
    """
    ids: defaultdict[type[Restorable], list[str]] = defaultdict(list)
    for kind, record_id in opened:
        ids[kind].append(record_id)
    archive_id = new_id()
    for kind in (kind for kind in RECURRING if kind in ids):
        for recurrence in recurrences(unit, organization_id, kind, ids[kind]).values():
            if recurrence.next_id is None or recurrence.made_at != moment:
                continue
            if is_done(kind, found_for_change(unit, kind, recurrence.record_id)._asdict()):
                continue
            made = found_for_change(unit, kind, recurrence.next_id)
            if made.archived_at is None and getattr(made, "updated_at", made.created_at) == made.created_at:
                archive(unit, kind, made.id, archive_id=archive_id, reason=_REASON)
                unit.rows(_LET, {"of": recurrence.id})


_TABLE = sql_table(Recurrence)
_SET = upsert(
    _TABLE,
    {column.name: bindparam(column.name, type_=column.type) for column in _TABLE.c},
    key=("organization_id", "kind", "record_id"),
    update=("frequency",),
)
_LET = update(_TABLE).where(_TABLE.c.id == bindparam("of")).values(next_id=None, made_at=None).returning(_TABLE.c.id)
