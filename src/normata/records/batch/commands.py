"""Creating and changing many records of a kind in one transaction, each by the same rules as alone.

It looks up, checks and writes in sets, so that the number of statements hardly grows with that of the items.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Select, bindparam, select

from normata.core.changes.rows import PendingRow
from normata.core.changes.source import Fault, FaultyInput, Row, pointer
from normata.core.changes.unit_of_work import Change, UnitOfWork
from normata.core.changes.writing import BODY, judged_rows, write
from normata.core.db.security import Write, together
from normata.core.db.transaction import batches
from normata.core.http.negotiation import matches_any
from normata.core.http.problems import PreconditionFailed, error_type_of
from normata.core.schema.faults import describe
from normata.core.schema.table import new_id
from normata.core.schema.wire import as_wire, columns, encode, wire_names
from normata.errors import Archived, ExternalIdTaken, NotArchived, NotFound, RecordsRefused, SlugTaken
from normata.external_ids.commands import ADDING_WRITES, add_external_ids, facts_of, holders, lock_external_ids
from normata.external_ids.model import External, ExternalId
from normata.identity.organization_lookup import reached
from normata.records.batch.items import ITEMS, Entry, IfArchived, Item, Kind, Outcome, check_key
from normata.records.change_operations import creation_model, patch_model
from normata.records.restore import restore, restore_writes
from normata.records.writing import change_writes, creation_writes, lock_slugs, merged_documents, rules_of

ADDED = "add_external_id"  # the action of the event of a record that gets an external id, and changes in nothing else
_MOST_FAULTS = 100  # of the values of an item, which may have thousands of unknown fields; no kind has so many
_PASSES = 10  # of checking, where items refer to others that are refused
_MANY = 2_000  # written records, beside which it takes little time to count what is in a table
_STATE = ("archived_at", "updated_at")  # what a restore sets


def write_batch(
    unit: UnitOfWork,
    kind: Kind,
    organization: str,
    items: Sequence[Item],
    *,
    each_for_itself: bool = False,
    if_archived: IfArchived | None = None,
) -> list[Outcome]:
    """Create and change records of a kind, all or none, or each for itself; return the outcomes in their order.

    An item that changes nothing writes nothing. An archived record is refused, unless ``if_archived`` says to leave it
    as it is, or to restore it first. Raises NotFound and InsufficientRole if the organization is out of reach; unless
    each is for itself, FaultyInput with all faults, and RecordsRefused if records are refused without a fault.
    """
    organization_id = reached(unit, organization)
    entries = [Entry(item, pointer(ITEMS, place)) for place, item in enumerate(items)]
    for entry in entries:
        check_key(entry)
    _find(unit, kind, organization_id, entries)
    _lock(unit, kind, organization_id, entries)
    for entry in entries:
        _prepare(kind, organization_id, entry, if_archived)
    _judge(unit, kind, organization_id, entries, each_for_itself=each_for_itself)
    _raise_refusals(entries, each_for_itself=each_for_itself)
    _restore(unit, kind, entries)
    _raise_refusals(entries, each_for_itself=each_for_itself)
    written = _write(unit, kind, organization_id, entries)
    return [_outcome(entry, written) for entry in entries]


def batch_writes(kind: Kind) -> tuple[Write, ...]:
    """The writes of :func:`write_batch`."""
    return together(creation_writes(kind), change_writes(kind), restore_writes(kind), ADDING_WRITES)


# --- Which record each item is about


def _find(unit: UnitOfWork, kind: Kind, organization_id: str, entries: Sequence[Entry]) -> None:
    """Find the record of each item. The second of two items about one record, or with one external id, is a fault."""
    named = [entry for entry in entries if not entry.faults]
    wanted = {entry.item.external for entry in named if entry.item.external is not None}
    addable = {entry.item.external for entry in named if entry.item.action != "update" or entry.item.id is not None}
    found = holders(unit, kind, organization_id, wanted)
    missing = {one for one in wanted - found.keys() if one in addable}
    if missing:
        # Of simultaneous requests with one external id, those after the first find what that has added.
        lock_external_ids(unit, kind, organization_id)
        found |= holders(unit, kind, organization_id, missing)
    by_external: dict[External, Entry] = {}
    by_record: dict[str, Entry] = {}
    for entry in named:
        item = entry.item
        holder = None if item.external is None else found.get(item.external)
        entry.is_found = holder is not None
        entry.record_id = item.id if item.id is not None else holder
        if item.external is not None:
            _fault_repeated(entry, by_external.setdefault(item.external, entry), "external")
        if entry.record_id is not None and not entry.faults:
            _fault_repeated(entry, by_record.setdefault(entry.record_id, entry), "id" if item.id else "external")
        if holder is not None and (item.action == "create" or holder != entry.record_id):
            entry.refusal = ExternalIdTaken(holder)
        elif entry.record_id is None and item.action == "update":
            entry.refusal = NotFound()


def _fault_repeated(entry: Entry, first: Entry, name: str) -> None:
    if first is not entry:
        entry.fault(f"names the same record as {first.place[1:]}", name, code="repeated")


def _lock(unit: UnitOfWork, kind: Kind, organization_id: str, entries: Sequence[Entry]) -> None:
    """Lock the records to change, in a fixed order, so that two requests with the same records do not deadlock."""
    about = {entry.record_id: entry for entry in entries if not entry.is_refused and entry.record_id is not None}
    for batch in batches(sorted(about)):
        for row in unit.rows(_locking(kind), {"organization": organization_id, "ids": batch}):
            about[row.id].before = row


# --- What becomes of it


def _prepare(kind: Kind, organization_id: str, entry: Entry, if_archived: IfArchived | None) -> None:
    """Make the row of an item, unless it is refused."""
    if entry.is_refused:
        return
    if entry.record_id is None:
        values = _checked(creation_model(kind), entry, f"is not a field of {kind.plural()} that can be set")
        if entry.item.if_match is not None:
            entry.refusal = PreconditionFailed()
        values |= {"id": new_id(), "organizationId": organization_id}
    else:
        values = _checked(patch_model(kind), entry, f"is not a field of {kind.plural()} that can be changed")
        _judge_state(kind, entry, if_archived)
        values |= {"id": entry.record_id} | ({"archivedAt": None} if entry.is_restored else {})
        if entry.before is None or entry.is_skipped:
            return
    if not entry.faults:
        entry.row = merged_documents(kind, entry.before, Row(kind.array, BODY, entry.place, values), entry.faults)


def _judge_state(kind: Kind, entry: Entry, if_archived: IfArchived | None) -> None:
    """Refuse an item whose record is not there, or not in the state that the item takes."""
    if entry.before is None:
        entry.refusal = NotFound()
    elif entry.before.archived_at is not None and if_archived is None:
        entry.refusal = Archived()
    else:
        is_archived = entry.before.archived_at is not None
        entry.is_skipped = is_archived and if_archived == "skip"
        entry.is_restored = is_archived and if_archived == "restore"
        if_match = entry.item.if_match
        if not entry.is_skipped and if_match is not None and not _is_current(kind, entry.before, if_match):
            entry.refusal = PreconditionFailed()


def _checked(model: Any, entry: Entry, unknown: str) -> dict[str, Any]:
    """The values of an item as the model of a single request has them; what is wrong becomes faults of the item."""
    try:
        checked = model.model_validate(entry.item.values)
    except ValidationError as error:
        for found in error.errors()[:_MOST_FAULTS]:
            code, message, _ = describe(found)
            is_unknown = found["type"] == "extra_forbidden" and len(found["loc"]) == 1
            entry.fault(unknown if is_unknown else message, *map(str, found["loc"]), code=code)
        return {}
    values: dict[str, Any] = checked.model_dump(by_alias=True, exclude_unset=True)
    return values


def _is_current(kind: Kind, row: Any, if_match: str) -> bool:
    return matches_any(if_match.encode(errors="replace"), encode(as_wire(kind, row)))


def _judge(
    unit: UnitOfWork, kind: Kind, organization_id: str, entries: Sequence[Entry], *, each_for_itself: bool
) -> None:
    """Judge the rows of all items that are not refused."""
    title = wire_names(kind)[kind.title_column()]
    judged = [entry for entry in entries if entry.row is not None]
    new = [entry.row.values for entry in judged if entry.row is not None and entry.record_id is None]
    lock_slugs(unit, kind, organization_id, [one[title] for one in new if "slug" not in one and one.get(title)])
    left = [entry for entry in judged if not entry.is_refused] if each_for_itself else judged
    for _ in range(_PASSES):
        rows = [(entry.row, entry.faults) for entry in left if entry.row is not None]
        depends = False
        for entry, found in zip(left, judged_rows(unit, kind, rows, own_rules=rules_of(kind)), strict=True):
            was_refused = entry.refusal
            entry.take(found)
            entry.refusal = entry.refusal or was_refused
            depends |= found.depends  # what refers to the record of a refused item may be right without that
        if not each_for_itself or not depends:
            break
        left = [entry for entry in left if not entry.is_refused]
    else:
        for entry in left:
            if entry.pending is not None and entry.pending.faulty:
                entry.fault("refers to items that are refused")


def _raise_refusals(entries: Sequence[Entry], *, each_for_itself: bool) -> None:
    """Raise what is wrong with any item, unless each is for itself."""
    if each_for_itself:
        return
    refused = [(place, entry) for place, entry in enumerate(entries) if entry.is_refused]
    if any(entry.faults for _, entry in refused):
        raise FaultyInput([fault for _, entry in refused for fault in _all_faults(entry)])
    if refused:
        refusals = [(place, entry.refusal) for place, entry in refused if entry.refusal is not None]
        raise RecordsRefused(refusals, ITEMS)


def _all_faults(entry: Entry) -> Iterator[Fault]:
    yield from entry.faults
    if entry.refusal is not None:
        yield Fault(BODY, entry.place, str(entry.refusal), code_of(entry.refusal))


def code_of(refusal: Exception) -> str:
    """The code of a refusal, as a request for the record alone would get it."""
    found = error_type_of(refusal)
    return "validation" if found is None else found.code


# --- Writing


def _restore(unit: UnitOfWork, kind: Kind, entries: Sequence[Entry]) -> None:
    """Restore the archived records that are about to change."""
    for entry in entries:
        if not entry.is_open or not entry.is_restored or entry.record_id is None or entry.pending is None:
            continue
        try:
            entry.before = restore(unit, kind, entry.record_id)
        except (NotArchived, SlugTaken) as error:
            entry.refusal = error
            continue
        _note_restored(entry.pending, entry.before)


def _note_restored(pending: PendingRow, row: Any) -> None:
    """Leave of a change of an archived record what its restore has not done."""
    stored = pending.stored or {}
    restored = {name: getattr(row, name) for name in _STATE if name in stored}
    pending.stored, pending.final = stored | restored, pending.final | restored
    before, after = (dict((long or {}).items()) for long in (pending.stored_long, pending.long))
    if json.dumps(before) == json.dumps(after):  # in JSON 1, 1.0 and true differ
        pending.long = None


def _write(unit: UnitOfWork, kind: Kind, organization_id: str, entries: Sequence[Entry]) -> Mapping[str, Any]:
    """Write what has changed, publish it, and return the written rows by id, as they are stored: 3.0 is stored as 3."""
    pending = [entry.pending for entry in entries if entry.is_open and entry.pending is not None]
    written = {row.id for row in write(unit, kind, pending, hands_over=False)}
    adding = [entry for entry in entries if entry.is_open and entry.adds]
    add_external_ids(unit, kind, organization_id, list(_added(adding)))
    if len(written) >= _MANY:
        # Else PostgreSQL reads all records in each statement that follows, as long as it thinks that there are few.
        unit.analyze({kind.sql().name: len(written), str(ExternalId.__tablename__): len(adding)})
    now = dict(_stored(unit, kind, written))
    for entry in entries:
        if not entry.is_open or entry.pending is None:
            continue
        known = None if entry.before is None else entry.before._asdict()
        facts = facts_of(entry.item.external) if entry.item.external is not None and entry.adds else None
        row = now[entry.pending.id]._asdict() if entry.pending.id in now else known
        if entry.pending.id in now:
            action = "create" if known is None else "update"
        elif facts is not None:
            action = ADDED
        else:
            continue
        unit.publish(Change(action, kind, organization_id, entry.pending.id, row, known, counts=facts))
    return now


def _added(adding: Iterable[Entry]) -> Iterator[tuple[str, External]]:
    for entry in adding:
        if entry.pending is not None and entry.item.external is not None:
            yield entry.pending.id, entry.item.external


def _stored(unit: UnitOfWork, kind: Kind, ids: Iterable[str]) -> Iterator[tuple[str, Any]]:
    for batch in batches(sorted(ids)):
        for row in unit.rows(_reading(kind), {"ids": batch}):
            yield row.id, row


def _outcome(entry: Entry, written: Mapping[str, Any]) -> Outcome:
    if entry.is_refused:
        return Outcome(entry.record_id, None, entry.refusal or FaultyInput(entry.faults))
    if entry.is_skipped or entry.pending is None:
        return Outcome(entry.record_id, "unchanged")
    if entry.record_id is None:
        return Outcome(entry.pending.id, "created")
    has_changed = entry.record_id in written or entry.adds or entry.is_restored
    return Outcome(entry.record_id, "updated" if has_changed else "unchanged")


@cache
def _reading(kind: Kind) -> Select[Any]:
    table = kind.sql()
    return select(*columns(kind)).where(table.c.id.in_(bindparam("ids", expanding=True)))


@cache
def _locking(kind: Kind) -> Select[Any]:
    table = kind.sql()
    statement = _reading(kind).where(table.c.organization_id == bindparam("organization"))
    # No key is changed, so those who refer to the records need not wait.
    return statement.order_by(table.c.id).with_for_update(key_share=True)
