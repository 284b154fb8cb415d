"""Archiving or restoring many records of any kinds in one transaction, each by the same rules as alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import Select, bindparam, select

from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.security import Write, together
from normata.core.schema.table import new_id, sql_table
from normata.errors import Archived, DomainError, NotArchived, NotFound, RecordsRefused, SlugTaken
from normata.identity.organization_lookup import reached
from normata.records.archive.queries import KINDS
from normata.records.archiving import ArchiveEntry, archive, archive_writes
from normata.records.base import Restorable
from normata.records.restore import restore, restore_writes

MAX_RECORDS = 500

Kind = type[Restorable]


class Outcome(NamedTuple):
    """The outcome for one record: ``refusal`` is the reason why it was not changed, else null."""

    kind: Kind
    id: str
    refusal: DomainError | None


class Outcomes(NamedTuple):
    """The outcomes for several records, in their order. ``archive_id`` names the action; null for a restore."""

    archive_id: str | None
    outcomes: Sequence[Outcome]


def archive_many(
    unit: UnitOfWork,
    organization: str,
    records: Sequence[tuple[Kind, str]],
    *,
    reason: str | None = None,
    each_for_itself: bool = False,
) -> Outcomes:
    """Archive records of an organization: all or none, or each independently.

    Raises NotFound and InsufficientRole if the organization is out of reach, and RecordsRefused.
    """
    organization_id = reached(unit, organization)
    archive_id = new_id()

    def act(kind: Kind, record_id: str) -> None:
        archive(unit, kind, record_id, archive_id=archive_id, reason=reason)

    there = _locked(unit, organization_id, records)
    return Outcomes(archive_id, _outcomes(records, there, act, each_for_itself=each_for_itself))


def restore_many(
    unit: UnitOfWork, organization: str, records: Sequence[tuple[Kind, str]], *, each_for_itself: bool = False
) -> Outcomes:
    """Restore records of an organization: all or none, or each independently. Raises as :func:`archive_many`.

    Of two records with the same slug only the first is restored.
    """
    organization_id = reached(unit, organization)
    return _restored(unit, records, _locked(unit, organization_id, records), each_for_itself=each_for_itself)


def restore_as_one(unit: UnitOfWork, organization: str, archive_id: str, *, each_for_itself: bool = False) -> Outcomes:
    """Restore the records that one action has archived, except those restored or archived again since.

    Raises as :func:`restore_many`, NotFound if there was no such action, and NotArchived if no record is left.
    """
    organization_id = reached(unit, organization)
    entries = unit.rows(_ENTRIES, {"organization": organization_id, "archive": archive_id})
    if not entries:
        raise NotFound
    records = [(kind, row.record_id) for kind in KINDS.values() for row in entries if row.kind == kind.path]
    since = {(KINDS[row.kind], row.record_id): row.archived_at for row in entries}
    there = _locked(unit, organization_id, records)
    left = [record for record in records if there.get(record, "") == since[record]]
    if not left:
        raise NotArchived
    return _restored(unit, left, there, each_for_itself=each_for_itself)


def many_writes() -> tuple[Write, ...]:
    """The writes of archiving and restoring many records."""
    return together(*(write(kind) for kind in KINDS.values() for write in (archive_writes, restore_writes)))


def _restored(
    unit: UnitOfWork, records: Sequence[tuple[Kind, str]], there: _Records, *, each_for_itself: bool
) -> Outcomes:
    def act(kind: Kind, record_id: str) -> None:
        restore(unit, kind, record_id)

    return Outcomes(None, _outcomes(records, there, act, each_for_itself=each_for_itself))


# The archiving times of existing records; null for live ones.
_Records = dict[tuple[Kind, str], str | None]


def _locked(unit: UnitOfWork, organization_id: str, records: Sequence[tuple[Kind, str]]) -> _Records:
    """The organization's records among these, locked until the transaction ends.

    They are locked in a fixed order, so that two requests with the same records do not deadlock.
    """
    ids: defaultdict[Kind, set[str]] = defaultdict(set)
    for kind, record_id in records:
        ids[kind].add(record_id)
    return {
        (kind, row.id): row.archived_at
        for kind in KINDS.values()
        if kind in ids
        for row in unit.rows(_lock(kind), {"organization": organization_id, "ids": sorted(ids[kind])})
    }


def _outcomes(
    records: Sequence[tuple[Kind, str]],
    there: _Records,
    act: Callable[[Kind, str], None],
    *,
    each_for_itself: bool,
) -> list[Outcome]:
    outcomes = [Outcome(kind, record_id, _refusal(kind, record_id, there, act)) for kind, record_id in records]
    refusals = [(place, one.refusal) for place, one in enumerate(outcomes) if one.refusal is not None]
    if refusals and not each_for_itself:
        raise RecordsRefused(refusals)
    return outcomes


def _refusal(kind: Kind, record_id: str, there: _Records, act: Callable[[Kind, str], None]) -> DomainError | None:
    """The reason why a record cannot be archived or restored; null if it was. A refusal has changed nothing."""
    if (kind, record_id) not in there:
        return NotFound()
    try:
        act(kind, record_id)
    except (Archived, NotArchived, SlugTaken) as error:
        return error
    return None


_TABLE = sql_table(ArchiveEntry)
_ENTRIES = (
    select(_TABLE.c.kind, _TABLE.c.record_id, _TABLE.c.archived_at)
    .where(_TABLE.c.organization_id == bindparam("organization"), _TABLE.c.archive_id == bindparam("archive"))
    .order_by(_TABLE.c.record_id)
)


@cache
def _lock(kind: Kind) -> Select[Any]:
    table = kind.sql().c
    ids: Any = bindparam("ids", expanding=True)
    return (
        select(table.id, table.archived_at)
        .where(table.organization_id == bindparam("organization"), table.id.in_(ids))
        .order_by(table.id)
        .with_for_update(key_share=True)
    )
