"""Makes the next of a recurring task or review, in the transaction in which this one is done."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from sqlalchemy import BindParameter, bindparam, insert, or_, select, update

from normata.core.changes.rows import PendingRow
from normata.core.changes.source import FaultyInput, Row
from normata.core.changes.unit_of_work import Actor, Change, UnitOfWork, insert_of, update_of
from normata.core.changes.writing import BODY, valid_rows, write
from normata.core.db.security import together
from normata.core.db.transaction import Transaction, batches
from normata.core.schema.table import new_id, sql_table
from normata.links.commands import CREATION_WRITES, Wanted, make_links
from normata.links.model import OWNS, End, Link, ends_of
from normata.records.base import Restorable
from normata.records.writing import creation_writes, lock_slugs, rules_of
from normata.recurrences.dates import Turn
from normata.recurrences.kinds import RECURRING, copied, is_done, turn_after
from normata.recurrences.model import Recurrence

FOLLOWS = "FOLLOWS"
# What stays so from one to the next. What else is linked is about the one that is done.
_LASTING = (OWNS, "IMPLEMENTS", "SUPPORTS", "TREATS")
_LOADS = ("load", "import")  # what they contain has its past elsewhere


class _Done(NamedTuple):
    """A record that is done now, its stored recurrence, when the next is due, and on which day of the month."""

    row: Mapping[str, Any]
    recurrence: Any
    turn: Turn
    day: int


class MakeNext:
    """Subscribes to changes by which recurring records are done: makes the next of each, once.

    It publishes what it makes, so it is the first subscriber. ``name`` has the id of the next one of a record.
    """

    writes = together(
        *(creation_writes(kind) for kind in RECURRING),
        (insert_of(Recurrence), update_of(Recurrence, "day", "next_id", "made_at")),
        CREATION_WRITES,
    )

    def __init__(self, name: Callable[[str], str] = lambda _record_id: new_id()) -> None:
        self._name = name

    def __call__(self, unit: UnitOfWork, changes: Sequence[Change], actor: Actor, moment: str) -> None:
        """Make the next of each record that is done by these changes."""
        del actor
        finished = {(change.table, str(change.row_id)): change for change in changes if _is_finished(change)}
        if not finished:
            return
        for (organization_id, kind), found in groupby(sorted(finished.values(), key=_order), key=_place):
            of_kind = list(found)
            stored = recurrences(unit, organization_id, kind, [str(change.row_id) for change in of_kind])
            done = list(_recurring(kind, of_kind, stored, moment))
            if done:
                _make(unit, organization_id, kind, done, self._name)


def recurrences(
    transaction: Transaction, organization_id: str, kind: type[Restorable], ids: Sequence[str]
) -> dict[str, Any]:
    """What is stored of the recurrence of records of a kind with these ids, by id."""
    key = {"organization": organization_id, "kind": kind.path}
    return {
        row.record_id: row for batch in batches(sorted(ids)) for row in transaction.rows(_STORED, {**key, "ids": batch})
    }


def _is_finished(change: Change) -> bool:
    before, row = change.before, change.row
    if change.action in _LOADS or before is None or row is None or change.table not in RECURRING:
        return False
    kind = change.table
    assert issubclass(kind, Restorable)  # noqa: S101 - narrows the type
    return is_done(kind, row) and not is_done(kind, before)


def _recurring(
    kind: type[Restorable], changes: Sequence[Change], stored: Mapping[str, Any], moment: str
) -> Iterator[_Done]:
    for change in changes:
        row: Any = change.row
        recurrence = stored.get(row["id"])
        found = turn_after(kind, row, recurrence, moment)
        if found is not None:
            yield _Done(row, recurrence, *found)


def _place(change: Change) -> tuple[str, Any]:
    return str(change.organization_id), change.table


def _order(change: Change) -> tuple[str, str, str]:
    return str(change.organization_id), change.table.array, str(change.row_id)


def _make(
    unit: UnitOfWork,
    organization_id: str,
    kind: type[Restorable],
    done: Sequence[_Done],
    name: Callable[[str], str],
) -> None:
    """Make the next records of some of a kind, with their links."""
    nexts = {one.row["id"]: name(one.row["id"]) for one in done}
    lock_slugs(unit, kind, organization_id, (one.row[kind.title_column()] for one in done))
    made = _valid(unit, organization_id, kind, done, nexts)
    write(unit, kind, made)
    for one, row in zip(done, made, strict=True):
        facts: dict[str, Any] = {"follows": one.row["id"]}
        if one.turn.skipped_count:
            facts |= {"skipped": list(one.turn.skipped), "skippedCount": one.turn.skipped_count}
        unit.publish(Change("create", kind, organization_id, row.id, dict(row.after.items()), counts=facts))
    _note(unit, organization_id, kind, done, nexts)
    make_links(unit, organization_id, list(_links(unit, organization_id, kind, nexts)), each_for_itself=True)


def _valid(
    unit: UnitOfWork, organization_id: str, kind: type[Restorable], done: Sequence[_Done], nexts: Mapping[str, str]
) -> list[PendingRow]:
    """The next records, by the rules for new ones. What may not be named now, such as a removed member, is left out."""
    rows = []
    for place, one in enumerate(done):
        values = {to: one.row[name] for name, to in copied(kind).items()}
        ours = {"id": nexts[one.row["id"]], "organizationId": organization_id, "deadline": one.turn.deadline}
        rows.append(Row(kind.array, BODY, f"/{place}", values | ours))
    try:
        return valid_rows(unit, kind, rows, own_rules=rules_of(kind), are_new=True)
    except FaultyInput as error:
        unnamed: defaultdict[str, set[str]] = defaultdict(set)
        for fault in error.faults:
            above, _, name = fault.place.rpartition("/")
            unnamed[above].add(name)
    left = [
        Row(row.array, row.file, row.place, {k: v for k, v in row.values.items() if k not in unnamed[row.place]})
        for row in rows
    ]
    return valid_rows(unit, kind, left, own_rules=rules_of(kind), are_new=True)


def _note(
    unit: UnitOfWork, organization_id: str, kind: type[Restorable], done: Sequence[_Done], nexts: Mapping[str, str]
) -> None:
    """Store that these records have had their next ones, and what these have of them."""
    new, noted = [], []
    for one in done:
        record_id, stored = one.row["id"], one.recurrence
        frequency = None if stored is None else stored.frequency
        had = {"next_id": nexts[record_id], "made_at": unit.moment, "day": one.day}
        row = {"organization_id": organization_id, "kind": kind.path, "frequency": frequency} | had
        if stored is None:
            new.append({**row, "id": new_id(), "record_id": record_id})
        else:
            noted.append({f"new_{name}": value for name, value in had.items()} | {"of": stored.id})
        new.append({**row, "id": new_id(), "record_id": nexts[record_id], "next_id": None, "made_at": None})
    unit.execute_many(_INSERT, new)
    if noted:
        unit.execute_many(_NOTE, noted)


def _links(
    unit: UnitOfWork, organization_id: str, kind: type[Restorable], nexts: Mapping[str, str]
) -> Iterator[Wanted]:
    """The links of the next records: the lasting ones of those before, and one to each of these."""
    for batch in batches(sorted(nexts)):
        for row in unit.rows(_LINKS, {"organization": organization_id, "ids": batch}):
            start, end = (
                End(kind.path, nexts[one.id]) if one.kind == kind.path and one.id in nexts else one
                for one in ends_of(row._asdict())
            )
            yield Wanted(start, end, row.relation, row.note, sets_note=True)
    for done_id, next_id in nexts.items():
        yield Wanted(End(kind.path, next_id), End(kind.path, done_id), FOLLOWS)


_TABLE, _LINK = sql_table(Recurrence), sql_table(Link)
_IDS: BindParameter[Any] = bindparam("ids", expanding=True)
_STORED = select(*_TABLE.c).where(
    _TABLE.c.organization_id == bindparam("organization"),
    _TABLE.c.kind == bindparam("kind"),
    _TABLE.c.record_id.in_(_IDS),
)
_INSERT = insert(_TABLE).values({column.name: bindparam(column.name, type_=column.type) for column in _TABLE.c})
_NOTE = (
    update(_TABLE)
    .where(_TABLE.c.id == bindparam("of"))
    .values({name: bindparam(f"new_{name}", type_=_TABLE.c[name].type) for name in ("next_id", "made_at", "day")})
)
_LINKS = select(*_LINK.c).where(
    _LINK.c.organization_id == bindparam("organization"),
    or_(*(_LINK.c[name].in_(_IDS) for name in ("from_id", "to_id"))),
    _LINK.c.relation.in_(_LASTING),
    _LINK.c.removed_at.is_(None),
)
