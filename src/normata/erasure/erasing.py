"""Erasing a person: their own rows are deleted, and their name and address are replaced in all other rows.

An event whose body names them loses its body. Its leaf stays, so that the log can still be proven, and an event of the
same log records which events lost their content, signed with the key of the events. Users of events remain known by an
id that identifies nobody.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from sqlalchemy import Delete, Select, Update, bindparam, delete, select, update

from normata.core.changes.defaults import free_slug
from normata.core.changes.erased_content import erase_content
from normata.core.changes.unit_of_work import Change, UnitOfWork
from normata.core.schema.table import Table, sql_table
from normata.erasure.columns import called, keys_of, own_tables, owner_of, texts_of
from normata.erasure.person import ErasureRequest, Person, find_person
from normata.erasure.survey import Place, Survey, require_files, survey, to_remove, without
from normata.events.content import ERASE
from normata.events.erasures import signed_by, signed_counts
from normata.events.keys import Signer
from normata.events.model import OPERATORS, AuditEvent
from normata.files.searching import FileContents
from normata.identity.model import Membership, User
from normata.policies.erasing import erase_text
from normata.policies.model import PolicyVersion
from normata.policies.versions import hash_of

ERASED_NAME = "Erased person"


@dataclass(slots=True)
class Erased:
    """The result of an erasure: rows deleted and changed by the names of their tables, and the survey.

    ``events`` counts the events that have lost their content. ``documents`` has the rows that have lost their files,
    of every table; the bytes of uploaded ones are still in the store.
    """

    person: Person
    found: Survey
    deleted: Counter[str] = field(default_factory=Counter)
    changed: Counter[str] = field(default_factory=Counter)
    events: int = 0
    documents: dict[type[Table], list[Any]] = field(default_factory=dict)


def erase(unit: UnitOfWork, erasure_request: ErasureRequest, signer: Signer, contents: FileContents) -> Erased:
    """Remove a person's name and address from all data. Repeating it is harmless.

    Raises NoSuchPerson, LastOwner, NoSuchFile, and KeyUnusable if the erased events cannot be signed.
    """
    unit.lock("content")  # else a load in progress could restore what it has read before
    person = find_person(unit, erasure_request)
    require_files(unit, erasure_request)
    erased = Erased(person, survey(unit, person, contents))
    log = _Log()
    for place in erased.found.places:
        _take_out(unit, place, person, erased, log, signer)
    for place in to_remove(erased.found, erasure_request):
        row_id, is_policy = place.key[0], place.table is PolicyVersion
        without_person = person.scan.without
        row = erase_text(unit, row_id, without_person) if is_policy else erase_content(unit, place.table, row_id)
        if row is not None:
            log.note(place.table, row.organization_id)
            erased.documents.setdefault(place.table, []).append(row)
    if person.user_id is not None:
        _erase_own(unit, person.user_id, erased, log)
    log.publish(unit, person.user_id, signer)
    return erased


class _Log:
    """Collects the content of the events: for each organization, or none, counts of rows, and erased events."""

    def __init__(self) -> None:
        self._rows: defaultdict[str | None, Counter[type[Table]]] = defaultdict(Counter)
        self._events: defaultdict[str | None, set[str]] = defaultdict(set)

    def note(self, table: type[Table], organization_id: str | None) -> None:
        """Note that a row was changed or deleted."""
        self._rows[organization_id][table] += 1

    def note_event(self, event_id: str, organization_id: str | None, former: Iterable[str]) -> None:
        """Note that an event has lost its content.

        If it was itself an erasure, ``former`` are the events that it listed.
        """
        self.note(AuditEvent, organization_id)
        self._events[organization_id].update((event_id, *former))

    def publish(self, unit: UnitOfWork, user_id: str | None, signer: Signer) -> None:
        """Publish the changes to each organization, and to the operator."""
        if not self._rows:
            return
        for organization_id in (None, *sorted(name for name in self._rows if name is not None)):
            rows = self._rows[organization_id]
            for table in rows:
                unit.publish(Change(ERASE, table, organization_id))  # for the lists that show rows of this table
            counts = {called(table): rows[table] for table in sorted(rows, key=called)}
            signed = signed_counts(signer, organization_id or OPERATORS, self._events[organization_id])
            event_counts = {"rows": counts, **signed}
            unit.publish(Change(ERASE, User, organization_id, user_id, counts=event_counts))


# --- Texts by others


def _take_out(unit: UnitOfWork, place: Place, person: Person, erased: Erased, log: _Log, signer: Signer) -> None:  # noqa: PLR0917 - all calls share these
    table = place.table
    key = {f"key_{name}": value for name, value in zip(keys_of(table), place.key, strict=True)}
    row = unit.row(_lock(table), key)
    if row is None:  # removed meanwhile
        return
    before = row._asdict()
    owner = owner_of(table)
    organization_id = None if owner is None else before[owner]
    if table.transient:
        unit.rows(_delete(table, keys_of(table)), key)
        erased.deleted[called(table)] += 1
        log.note(table, organization_id)
        return
    after = _row_without(unit, table, before, person)
    changed = tuple(name for name in after if after[name] != before[name])
    if not changed:
        return
    unit.rows(_update(table, changed), {**key, **{f"new_{name}": after[name] for name in changed}})
    if table is AuditEvent:
        erased.events += 1
        former = signed_by(signer, organization_id or OPERATORS, before["body"])
        log.note_event(before["id"], organization_id, former.erased if former is not None and former.is_signed else ())
    else:
        erased.changed[called(table)] += 1
        log.note(table, organization_id)


def _row_without(unit: UnitOfWork, table: type[Table], before: Mapping[str, Any], person: Person) -> dict[str, Any]:
    """The row without the person, with all columns that are derived from its texts."""
    texts = texts_of(table)
    after = dict(before) | {name: without(table, before, name, person) for name in texts}
    if all(after[name] == before[name] for name in texts):
        return after
    for name in texts:
        if texts[name] == "whole":  # it repeats other columns, which have changed
            after[name] = sql_table(table).c[name].info["erased_to"]
        elif texts[name] == "slug" and after[name] != before[name]:
            after[name] = free_slug(unit, table, after, after[name])
    if "updated_at" in after:
        after["updated_at"] = unit.moment
    if table is PolicyVersion and after["content_sha256"] is not None:  # in review
        after["content_sha256"] = hash_of(after["content"])
    table.derive(after)
    return after


# --- The person's own rows


def _erase_own(unit: UnitOfWork, user_id: str, erased: Erased, log: _Log) -> None:
    for table, column in own_tables():
        owner = owner_of(table)
        for row in unit.rows(_delete(table, (column,), returning=owner), {f"key_{column}": user_id}):
            erased.deleted[called(table)] += 1
            log.note(table, row[0] if owner is not None else None)
    for row in unit.rows(_END_MEMBERSHIPS, {"user": user_id, "moment": unit.moment}):
        erased.changed[called(Membership)] += 1
        log.note(Membership, row.organization_id)
    gone = {"user": user_id, "name": ERASED_NAME, "moment": unit.moment}
    if unit.rows(_ERASE_USER, gone):
        erased.changed[called(User)] += 1
        for organization_id in (None, *unit.scalars(_ORGANIZATIONS, {"user": user_id})):
            log.note(User, organization_id)


_USER, _MEMBER = sql_table(User), sql_table(Membership)
_END_MEMBERSHIPS = (
    update(_MEMBER)
    .where(_MEMBER.c.user_id == bindparam("user"), _MEMBER.c.removed_at.is_(None))
    .values(removed_at=bindparam("moment", type_=_MEMBER.c.removed_at.type))
    .returning(_MEMBER.c.organization_id)
)
_ORGANIZATIONS = select(_MEMBER.c.organization_id).where(_MEMBER.c.user_id == bindparam("user"))
_ERASE_USER = (
    update(_USER)
    .where(_USER.c.id == bindparam("user"), _USER.c.removed_at.is_(None) | _USER.c.email.is_not(None))
    .values(
        name=bindparam("name"),
        email=None,
        email_folded=None,
        removed_at=bindparam("moment", type_=_USER.c.removed_at.type),
        time_zone=None,
        date_format=None,
        theme=None,
        mail=None,
        mail_by_type=None,
        refused_email=None,
    )
    .returning(_USER.c.id)
)


# --- Statements


def _is_target(table: type[Table], names: Iterable[str]) -> Any:
    columns = sql_table(table).c
    conditions = [columns[name] == bindparam(f"key_{name}", type_=columns[name].type) for name in names]
    condition, *others = conditions
    for one in others:
        condition &= one
    return condition


@cache
def _lock(table: type[Table]) -> Select[Any]:
    return select(*sql_table(table).c).where(_is_target(table, keys_of(table))).with_for_update(key_share=True)


@cache
def _delete(table: type[Table], names: tuple[str, ...], *, returning: str | None = None) -> Delete:
    sql = sql_table(table)
    return delete(sql).where(_is_target(table, names)).returning(sql.c[returning or names[0]])  # type: ignore[return-value]


@cache
def _update(table: type[Table], names: tuple[str, ...]) -> Update:
    sql = sql_table(table)
    values: dict[str, Any] = {name: bindparam(f"new_{name}", type_=sql.c[name].type) for name in names}
    return update(sql).where(_is_target(table, keys_of(table))).values(values)
