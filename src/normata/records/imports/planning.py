"""What an import would do with each row of a register: which record it is about, and which fields it changes.

This needs no lock and writes nothing, so it goes before the transaction of the change, which checks that the records
are still as they were here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Select, bindparam, select

from normata.core.changes.merge_patch import is_same, merge_patch, patch_between
from normata.core.changes.source import Fault
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.changes.writing import BODY
from normata.core.db.transaction import batches
from normata.core.http.negotiation import entity_tag
from normata.core.schema.faults import describe
from normata.core.schema.text import unguarded
from normata.core.schema.wire import as_wire, columns, encode
from normata.external_ids.commands import holders
from normata.external_ids.model import External
from normata.records.base import Restorable
from normata.records.change_operations import creation_model, patch_model
from normata.records.imports.reading import RegisterTable, place_of
from normata.records.registers.cells import may_be_cut, value_of, workbook_text
from normata.records.registers.columns import EXTERNAL_ID, SOURCE, Kind, RegisterColumn, register_columns
from normata.records.registers.references import References, value_of_reference
from normata.records.writing import sendable

_ID, _SLUG, _UPDATED = "id", "slug", "updatedAt"
_MOST_NAMED = 3  # rows that an ambiguous name may mean


@dataclass(slots=True)
class PlannedRow:
    """A row of a register: the record that it is about, null if it is new, and the fields that it sets.

    ``before`` is the record in wire form, ``external`` an external id that it gets, ``tag`` the entity tag of its
    state. It is ``lost`` if it names a record that is not there.
    """

    number: int
    cells: Mapping[str, str]
    faults: list[Fault] = field(default_factory=list)
    record_id: str | None = None
    before: Mapping[str, Any] | None = None
    external: External | None = None
    values: dict[str, Any] = field(default_factory=dict)
    tag: str | None = None
    lost: bool = False

    @property
    def is_unchanged(self) -> bool:
        """Whether there is nothing to do for it."""
        return self.before is not None and not self.faults and not self.values and self.external is None

    def fault(self, column: str | None, reason: str, code: str = "invalid") -> None:
        """Add a fault of the row, or of a cell."""
        self.faults.append(Fault(BODY, place_of(self.number, column), reason, code))


@dataclass(frozen=True, slots=True)
class Plan:
    """What becomes of each row of a register of an organization, and what is wrong with the file as a whole."""

    organization_id: str
    rows: Sequence[PlannedRow]
    faults: Sequence[Fault]


def planned(unit: UnitOfWork, kind: Kind, organization_id: str, table: RegisterTable) -> Plan:
    """The plan of an import. It raises nothing: what is wrong is in the rows, or with the file as a whole."""
    if table.faults:
        return Plan(organization_id, (), table.faults)
    rows = [PlannedRow(number, cells) for number, cells in table.rows]
    _find(unit, kind, organization_id, rows)
    _fault_repeated(rows)
    references = References(unit, organization_id)
    decoded = [(row, _decoded(kind, row)) for row in rows]
    targets = [one for one in register_columns(kind) if one.target]
    named = {one.name: references.named(one.target, _texts(one, decoded)) for one in targets}
    for row, values in decoded:
        for column in targets:
            if values.get(column.name) is not None:
                values[column.name] = _resolved(row, column, values[column.name], named[column.name])
        if row.lost:
            continue
        _compare(kind, row, values)
        if row.faults:
            _fault_values(kind, row)
    return Plan(organization_id, rows, table.faults)


# --- Which record a row is about


def _find(unit: UnitOfWork, kind: Kind, organization_id: str, rows: Sequence[PlannedRow]) -> None:
    """Find the record of each row: by its id, else by its external id, else by its slug."""
    externals = {row.number: _external(row) for row in rows}
    held = holders(unit, kind, organization_id, {one for one in externals.values() if one is not None})
    with_slug = _SLUG in {column.name for column in register_columns(kind)}
    slugs = [slug for row in rows if with_slug and (slug := _cell(row, _SLUG))]
    by_slug = dict(_by_slug(unit, kind, organization_id, slugs))
    for row in rows:
        external = externals[row.number]
        holder = None if external is None else held.get(external)
        row.record_id = _cell(row, _ID) or holder or by_slug.get(_cell(row, _SLUG) if with_slug else "")
        if holder is None or holder != row.record_id:
            row.external = external
    stored = dict(_stored(unit, kind, organization_id, [row.record_id for row in rows if row.record_id]))
    for row in rows:
        if row.record_id is None:
            continue
        found = stored.get(row.record_id)
        if found is None:
            row.fault(_ID, f"names no {kind.words()} of this organization; a new one has no id", "not_found")
            row.record_id, row.lost = None, True
            continue
        row.before = as_wire(kind, found)
        row.tag = entity_tag(encode(row.before), "identity").decode()


def _external(row: PlannedRow) -> External | None:
    source, foreign_id = _cell(row, SOURCE), _cell(row, EXTERNAL_ID)
    if bool(source) == bool(foreign_id):
        return External(source, foreign_id) if source else None
    missing, there = (SOURCE, EXTERNAL_ID) if foreign_id else (EXTERNAL_ID, SOURCE)
    row.fault(missing, f"is required with {there}", "required")
    return None


def _cell(row: PlannedRow, name: str) -> str:
    return unguarded(row.cells.get(name, ""))


def _fault_repeated(rows: Sequence[PlannedRow]) -> None:
    """Refuse rows about a record that an earlier row is about, or that create the same one."""
    seen: dict[tuple[str, Any], PlannedRow] = {}
    for row in rows:
        slug = _cell(row, _SLUG)
        keys: list[tuple[str, Any]] = [(_ID, row.record_id)] if row.record_id else [(_SLUG, slug)] if slug else []
        keys += [(EXTERNAL_ID, row.external)] if row.external else []
        for key in keys:
            first = seen.setdefault(key, row)
            if first is not row and not row.faults:
                # An external id that the row would add has not found the record.
                names = (key[0], _SLUG if row.external else EXTERNAL_ID, _SLUG)
                name = next(name for name in names if row.cells.get(name))
                row.fault(name, f"names the same record as row {first.number}", "repeated")


# --- What it says


def _decoded(kind: Kind, row: PlannedRow) -> dict[str, Any]:
    """The values of the cells by column; references are still texts. What no value can be goes to the faults."""
    values = {}
    for column in register_columns(kind):
        cell = row.cells.get(column.name)
        if cell is None or column.name == _ID or _is_cut(column, row, cell):
            continue
        try:
            values[column.name] = value_of(column.sort, cell)
        except ValueError as error:
            row.fault(column.name, str(error))
    return values


def _texts(column: RegisterColumn, decoded: Iterable[tuple[PlannedRow, Mapping[str, Any]]]) -> set[str]:
    return {text for _, values in decoded if (text := values.get(column.name)) is not None}


def _resolved(row: PlannedRow, column: RegisterColumn, text: str, named: Mapping[str, Any]) -> str | None:
    found = named[text]
    value = value_of_reference(text, found, is_checked=column.is_checked)
    if value is None and found.ids:
        some = ", ".join(found.ids[:_MOST_NAMED])
        more = ", …" if len(found.ids) > _MOST_NAMED else ""
        row.fault(column.name, f"names {len(found.ids)} rows: write the id of one ({some}{more})", "ambiguous")
    elif value is None:
        row.fault(column.name, "names nothing here: write an id, slug, email address, identifier or name", "not_found")
    return value


def _compare(kind: Kind, row: PlannedRow, values: Mapping[str, Any]) -> None:
    """Find the fields that a row sets. What it cannot set goes to its faults."""
    faulty = {fault.place for fault in row.faults}
    is_new = row.before is None
    for column in register_columns(kind):
        name = column.name
        if name not in values or name == _UPDATED or (faulty and place_of(row.number, name) in faulty):
            continue
        value, stored = values[name], None if row.before is None else row.before[name]
        if value is None and (is_new or not column.may_be_null):
            continue  # it has its default, or stays
        if is_new and value == []:
            continue
        if not is_new and is_same(value, stored):
            continue
        if column.column not in sendable(kind):
            row.fault(name, "is set by the service: leave the cell as it was, or empty for a new record", "read_only")
        else:
            row.values[name] = _sent(row, column, stored, value)
    _fault_outdated(row, values.get(_UPDATED))


def _fault_values(kind: Kind, row: PlannedRow) -> None:
    """Add what is wrong with the other values of a row that is refused, which no batch will look at."""
    try:
        (creation_model(kind) if row.before is None else patch_model(kind)).model_validate(row.values)
    except ValidationError as error:
        faulty = {fault.place for fault in row.faults}
        for found in error.errors():
            code, message, _ = describe(found)
            name = str(found["loc"][0])
            if place_of(row.number, name) not in faulty:
                row.fault(name, message, code)


def _sent(row: PlannedRow, column: RegisterColumn, stored: Any, value: Any) -> Any:
    """The value for the request: of a document, the patch of what is stored."""
    if column.sort != "document":
        return value
    patch = patch_between(stored, value)
    if not is_same(merge_patch(stored, patch), value):
        row.fault(column.name, "has a member that is null, which no change can set")
    return patch


def _is_cut(column: RegisterColumn, row: PlannedRow, cell: str) -> bool:
    """Whether a workbook has cut the cell of the value that is stored, which then stays as it is."""
    if row.before is None or not may_be_cut(cell):
        return False
    return cell == workbook_text(column.sort, row.before[column.name])


def _fault_outdated(row: PlannedRow, updated_at: Any) -> None:
    """Refuse changes of a record that somebody has changed since it was exported."""
    if row.before is None:
        if updated_at is not None:
            row.fault(_UPDATED, "is set by the service: leave the cell empty for a new record", "read_only")
    elif row.values and updated_at is not None and updated_at != row.before[_UPDATED]:
        reason = "has been changed since it was exported: export it again, or empty this cell to change it anyway"
        row.fault(_UPDATED, reason, "changed_since")


# --- Statements


def _by_slug(unit: UnitOfWork, kind: Kind, organization_id: str, slugs: Sequence[str]) -> Iterator[tuple[str, str]]:
    for batch in batches(sorted(set(slugs))):
        for row in unit.rows(_live_slugs(kind), {"organization": organization_id, "slugs": batch}):
            yield row.slug, row.id


def _stored(unit: UnitOfWork, kind: Kind, organization_id: str, ids: Sequence[str]) -> Iterator[tuple[str, Any]]:
    for batch in batches(sorted(set(ids))):
        for row in unit.rows(_records(kind), {"organization": organization_id, "ids": batch}):
            yield row.id, row


@cache
def _live_slugs(kind: type[Restorable]) -> Select[Any]:
    table = kind.sql().c
    return select(table.id, table.slug).where(
        table.organization_id == bindparam("organization"),
        table.archived_at.is_(None),
        table.slug.in_(bindparam("slugs", expanding=True)),
    )


@cache
def _records(kind: type[Restorable]) -> Select[Any]:
    table = kind.sql().c
    return select(*columns(kind)).where(
        table.organization_id == bindparam("organization"), table.id.in_(bindparam("ids", expanding=True))
    )
