"""Creating and changing records of all kinds, by the same rules as a load."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any
from zlib import crc32

from normata.core.changes.merge_patch import merge_patch
from normata.core.changes.references import References
from normata.core.changes.rows import PendingRow
from normata.core.changes.short_ids import COUNTER_WRITES
from normata.core.changes.source import Fault, Row
from normata.core.changes.unit_of_work import Change, UnitOfWork, insert_of
from normata.core.changes.validity import OwnRules
from normata.core.changes.writing import BODY, every_column_of, valid_rows, write_one
from normata.core.db.security import Write
from normata.core.db.types import Document
from normata.core.schema.table import new_id
from normata.core.schema.text import slugify
from normata.core.schema.wire import columns, wire_names
from normata.errors import Archived, DomainError
from normata.identity.organization_lookup import reached
from normata.records.base import Restorable
from normata.records.lookup import found_for_change

MAX_DOCUMENT_BYTES = (
    4 * 2**20
)  # of a request, since a record may have several texts of 100,000 characters; and of a document

_SLUG_LOCKS = 64  # of a kind in an organization

WireValues = Mapping[str, Any]  # values by their wire names

# Fields that only the service writes.
_OURS = frozenset({"id", "organization_id", "short_id", "created_at", "updated_at", "archived_at"})


@cache
def writable(kind: type[Restorable]) -> tuple[str, ...]:
    """The columns that a request may write."""
    return tuple(column.name for column in columns(kind) if column.name not in _OURS and "set_by" not in column.info)


@cache
def set_by_steps(kind: type[Restorable]) -> Mapping[str, str]:
    """The columns that follow from steps, and the step of each. A request may only send back what is there."""
    return {column.name: column.info["set_by"] for column in columns(kind) if "set_by" in column.info}


@cache
def sendable(kind: type[Restorable]) -> tuple[str, ...]:
    """The columns that a request may have: :func:`writable` ones and those of :func:`set_by_steps`."""
    return (*writable(kind), *set_by_steps(kind))


def rules_of(kind: type[Restorable]) -> OwnRules:
    """The rules for requests that create or change records of a kind, beyond those that loads follow, too."""
    return {kind: _follow_steps}


@cache
def values_by_steps(kind: type[Restorable]) -> Mapping[tuple[str, str], str]:
    """The columns with a value that follows from a step, and the step of each. No other request sets such a value."""
    return {
        (column.name, value): step
        for column in columns(kind)
        for value, step in column.info.get("by_steps", {}).items()
    }


def step_to(kind: type[Restorable], name: str, value: Any, stored: Mapping[str, Any]) -> str | None:
    """The step that alone gives a column this value, for a record with the ``stored`` columns; null if any request may.

    What the step has done may be there still: from CLOSED, what was verified can become VERIFIED again.
    """
    step = values_by_steps(kind).get((name, value))
    if step is None or stored.get(name) == value:
        return None
    is_done = any(stored.get(other) is not None for other, by in set_by_steps(kind).items() if by == step)
    return None if is_done else step


def _follow_steps(unit: UnitOfWork, rows: Sequence[PendingRow], _references: References) -> None:
    for row in rows:
        kind = row.table
        assert issubclass(kind, Restorable)  # noqa: S101 - narrows the type; the rules are declared for it
        if not row.changed:
            continue
        before, after = row.before, dict(row.after.items())
        _fault_by_hand(unit, kind, row, before, after)
        if row.faulty:
            continue
        if kind.guard is not None:
            try:
                kind.guard(unit, before, after)
            except DomainError as refusal:
                row.refuse(refusal)
                continue
        kind.follow(before, after)
        row.replace(after)


def _fault_by_hand(
    unit: UnitOfWork,
    kind: type[Restorable],
    row: PendingRow,
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any],
) -> None:
    """Add faults for what follows from steps, and has another value than is there."""
    stored = _first_values(kind) if before is None else before
    by_steps = set_by_steps(kind)
    if kind.held is not None and before is not None:
        by_steps = {**by_steps, **kind.held(unit, before)}
    for name, step in by_steps.items():
        if after[name] != stored[name]:
            row.add_fault(name, f"is set by `POST {_address(kind, step)}` only", "read_only")
    for name, value in values_by_steps(kind):
        by_step = step_to(kind, name, value, stored) if after[name] == value else None
        if by_step is not None:
            row.add_fault(name, f"becomes {value} by `POST /{kind.path}/{{id}}{by_step}` only", "read_only")


def _address(kind: type[Restorable], step: str) -> str:
    """The address of a step, which may be that of another kind of records."""
    return step if "{id}" in step else f"/{kind.path}/{{id}}{step}"


@cache
def _first_values(kind: type[Restorable]) -> Mapping[str, Any]:
    """What a new record has in the columns that steps set."""
    return {name: kind.sql().c[name].info.get("default") for name in set_by_steps(kind)}


def creation_writes(kind: type[Restorable]) -> tuple[Write, ...]:
    """The writes of :func:`create`."""
    return (insert_of(kind), *COUNTER_WRITES)


def change_writes(kind: type[Restorable]) -> tuple[Write, ...]:
    """The writes of :func:`change`."""
    return (every_column_of(kind), *COUNTER_WRITES)


def create(
    unit: UnitOfWork, kind: type[Restorable], organization: str, body: WireValues, *, record_id: str | None = None
) -> Any:
    """Create a record, and return its row.

    ``organization`` is an id or slug. ``body`` has values of :func:`writable` columns, the title at least; the rest
    gets its defaults. The id is new, or ``record_id``, which must be free. Raises NotFound, InsufficientRole,
    SlugTaken, and FaultyInput with all faults.
    """
    organization_id = reached(unit, organization)
    ours = {"id": record_id or new_id(), "organizationId": organization_id}
    title = body.get(wire_names(kind)[kind.title_column()])
    if "slug" not in body and title:
        lock_slugs(unit, kind, organization_id, [title])
    [pending] = valid_rows(
        unit, kind, [Row(kind.array, BODY, "", {**body, **ours})], own_rules=rules_of(kind), are_new=True
    )
    return _store(unit, "create", kind, pending, None)


def change(
    unit: UnitOfWork,
    kind: type[Restorable],
    record_id: str,
    body: WireValues,
    *,
    require_current: Callable[[Any], None] = lambda _row: None,
) -> Any:
    """Change the fields in ``body`` of a live record (RFC 7396), and return its new row.

    ``require_current`` gets the row before, and raises if that is not the state that the caller knows. A body that
    changes nothing leaves the record as it is. Raises NotFound (unknown, foreign, or of another kind),
    InsufficientRole, Archived, SlugTaken, and FaultyInput with all faults.
    """
    before = found_for_change(unit, kind, record_id)
    if before.archived_at is not None:
        raise Archived
    faults: list[Fault] = []
    row = merged_documents(kind, before, Row(kind.array, BODY, "", {**body, "id": record_id}), faults)
    [pending] = valid_rows(unit, kind, [row], faults, own_rules=rules_of(kind))
    require_current(before)
    return _store(unit, "update", kind, pending, before) if pending.changed else before


def lock_slugs(unit: UnitOfWork, kind: type[Restorable], organization_id: str, titles: Iterable[str]) -> None:
    """Let nobody else look for free slugs for records with these titles, until the transaction ends.

    Without the locks, all but one of many new records with the same title would compete for a slug. There are few
    locks, whatever the number of titles, since a database has room for some thousand.
    """
    if "slug" in kind.sql().c:
        for number in sorted({crc32(slugify(title).encode()) % _SLUG_LOCKS for title in titles}):
            unit.lock(f"slug {kind.path} {organization_id} {number}")


def merged_documents(kind: type[Restorable], before: Any, row: Row, faults: list[Fault]) -> Row:
    """The input of a change, with the documents that its patches make of those of the record ``before`` it.

    A new record has none before. What is too large goes to ``faults``.
    """
    values = dict(row.values)
    for column in columns(kind):
        name = wire_names(kind)[column.name]
        if isinstance(column.type, Document) and name in values:
            if before is not None:
                values[name] = merge_patch(getattr(before, column.name), values[name])
            document = values[name]
            if len(json.dumps(document, ensure_ascii=False).encode()) > MAX_DOCUMENT_BYTES:
                most = f"must have at most {MAX_DOCUMENT_BYTES:,} bytes as JSON, merged with what is there"
                faults.append(row.fault(name, most))
    return replace(row, values=values)


def _store(unit: UnitOfWork, action: str, kind: type[Restorable], pending: PendingRow, before: Any) -> Any:
    row = write_one(unit, kind, pending)
    known = None if before is None else before._asdict()
    unit.publish(Change(action, kind, row.organization_id, row.id, row._asdict(), known))
    return row
