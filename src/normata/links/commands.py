"""Making and removing links."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import and_, bindparam, select, update

from normata.core.changes.rows import PendingRow, read_row
from normata.core.changes.source import Fault, FaultyInput, Row, pointer
from normata.core.changes.unit_of_work import Change, UnitOfWork, insert_of, update_of
from normata.core.changes.validity import make_valid
from normata.core.changes.writing import BODY, write
from normata.core.db.transaction import batches
from normata.core.schema.table import new_id, sql_table
from normata.errors import NotFound
from normata.identity.organization_lookup import reached
from normata.links.model import OWNS, End, Link, ends_of, oriented
from normata.links.rules import check_new

MAX_AT_ONCE = 500

CREATION_WRITES = (insert_of(Link), update_of(Link, "note"))
REMOVAL_WRITES = (update_of(Link, "removed_at"),)


_Key = tuple[End, End, str]


class Wanted(NamedTuple):
    """A link to make. Without ``sets_note`` the note of one that there is stays. ``place`` is that in the input."""

    start: End
    end: End
    relation: str
    note: str | None = None
    sets_note: bool = False
    place: str = ""
    link_id: str = ""  # of a new one; generated unless it is given

    @property
    def key(self) -> _Key:
        """What no two live links have in common: the ends as they are stored, and the relation."""
        return (*oriented(self.start, self.end, self.relation), self.relation)


@dataclass(slots=True)
class Outcome:
    """The id of a link, and whether it is new; if it could not be made, the ``faults``."""

    link_id: str
    is_new: bool = False
    faults: list[Fault] = field(default_factory=list)


def make_links(
    unit: UnitOfWork, organization: str, wanted: Sequence[Wanted], *, each_for_itself: bool = False
) -> tuple[str, list[Outcome]]:
    """Make links, all or none, or each for itself; return the organization's id, and the outcomes in their order.

    A link that there is already is the outcome, with the note that is wanted now. Raises NotFound, InsufficientRole,
    and FaultyInput with all faults unless each is for itself.
    """
    organization_id = reached(unit, organization)
    lock_links(unit, organization_id)  # so that of equal links made at once the later ones find the first
    by_key = {one.key: one for one in wanted}
    notes = {key: one.note for key, one in by_key.items() if one.sets_note}
    stored = _stored(unit, organization_id, by_key)
    outcomes = {key: Outcome(row.id) for key, row in stored.items()}
    pending: list[PendingRow] = []
    for key, one in by_key.items():
        if key not in stored:
            outcomes[key] = Outcome(one.link_id or new_id(), is_new=True)
            row = read_row(Link, _row_of(one, organization_id, outcomes[key].link_id), outcomes[key].faults)
            pending += [] if row is None else [row]
    make_valid(unit, {Link: pending}, own_rules={Link: check_new}, are_new=True)
    for outcome in outcomes.values():
        outcome.faults = [as_sent(fault, _SENT) for fault in outcome.faults]
    faults = [fault for outcome in outcomes.values() for fault in outcome.faults]
    if faults and not each_for_itself:
        raise FaultyInput(faults)
    for row in write(unit, Link, [row for row in pending if not row.faulty]):
        unit.publish(Change("create", Link, organization_id, row.id, row.after))
    for key, row in stored.items():
        if key in notes and notes[key] != row.note:
            _set_note(unit, row, notes[key])
    return organization_id, list(_in_order(wanted, outcomes))


def _in_order(wanted: Sequence[Wanted], outcomes: Mapping[_Key, Outcome]) -> Iterator[Outcome]:
    """The outcome of each: of equal ones, only the first makes the link."""
    seen: set[_Key] = set()
    for one in wanted:
        outcome = outcomes[one.key]
        yield Outcome(outcome.link_id, faults=outcome.faults) if one.key in seen else outcome
        seen.add(one.key)


def lock_links(unit: UnitOfWork, organization_id: str) -> None:
    """Let nobody else make links of an organization until the transaction ends."""
    unit.lock(f"links of {organization_id}")


def change_owner(unit: UnitOfWork, organization_id: str, owner: End, new_owner: End, owned: Sequence[End]) -> None:
    """Remove the live links by which somebody owns these, and make those of the new owner, with the same notes.

    What the new owner has already stays as it is. Raises as :func:`make_links`.
    """
    stored = _stored(unit, organization_id, [(owner, one, OWNS) for one in owned])
    there = _stored(unit, organization_id, [(new_owner, one, OWNS) for one in owned])
    for row in stored.values():
        remove_link(unit, row.id)
    wanted = [
        Wanted(new_owner, end, OWNS, row.note, sets_note=True)
        for (_, end, _), row in stored.items()
        if (new_owner, end, OWNS) not in there
    ]
    make_links(unit, organization_id, wanted)


def remove_link(unit: UnitOfWork, link_id: str) -> None:
    """Remove a link. Raises NotFound and InsufficientRole."""
    before = unit.row(_FIND, {"link": link_id})
    if before is None:
        raise NotFound
    unit.require_reach(before.organization_id)
    if not unit.rows(_REMOVE, {"link": link_id, "moment": unit.moment}):
        raise NotFound  # somebody else has just removed it
    unit.publish(Change("delete", Link, before.organization_id, link_id, before=before._asdict()))


def _row_of(one: Wanted, organization_id: str, link_id: str) -> Row:
    values = {
        "id": link_id,
        "organizationId": organization_id,
        "fromKind": one.start.kind,
        "fromId": one.start.id,
        "toKind": one.end.kind,
        "toId": one.end.id,
        "relation": one.relation,
        "note": one.note,
    }
    return Row(Link.array, BODY, one.place, values)


_SENT = {"fromKind": ("from", "kind"), "fromId": ("from", "id"), "toKind": ("to", "kind"), "toId": ("to", "id")}


def as_sent(fault: Fault, sent: Mapping[str, tuple[str, str]]) -> Fault:
    """A fault of a row with its place in a body with objects: ``sent`` has where each field is."""
    above, _, name = fault.place.rpartition("/")
    return Fault(fault.file, above + pointer(*sent.get(name, (name,))), fault.reason, fault.code)


def _stored(unit: UnitOfWork, organization_id: str, keys: Iterable[_Key]) -> dict[_Key, Any]:
    """The live links with these keys."""
    found: dict[_Key, Any] = {}
    wanted = {*keys}
    for batch in batches(sorted(wanted)):
        ids = {"starts": sorted({start.id for start, _, _ in batch}), "ends": sorted({end.id for _, end, _ in batch})}
        for row in unit.rows(_AMONG, {"organization": organization_id, **ids}):
            key = (*ends_of(row._asdict()), row.relation)
            if key in wanted:
                found[key] = row
    return found


def _set_note(unit: UnitOfWork, before: Any, note: str | None) -> None:
    unit.rows(_SET_NOTE, {"link": before.id, "new_note": note})
    known = before._asdict()
    unit.publish(Change("update", Link, before.organization_id, before.id, known | {"note": note}, known))


_LINK = sql_table(Link)
_AMONG = select(*_LINK.c).where(
    _LINK.c.organization_id == bindparam("organization"),
    _LINK.c.from_id.in_(bindparam("starts", expanding=True)),
    _LINK.c.to_id.in_(bindparam("ends", expanding=True)),
    _LINK.c.removed_at.is_(None),
)
_OF_LINK = and_(_LINK.c.id == bindparam("link"), _LINK.c.removed_at.is_(None))
_FIND = select(*_LINK.c).where(_OF_LINK)
_REMOVE = (
    update(_LINK)
    .where(_OF_LINK)
    .values(removed_at=bindparam("moment", type_=_LINK.c.removed_at.type))
    .returning(_LINK.c.id)
)
_SET_NOTE = update(_LINK).where(_OF_LINK).values(note=bindparam("new_note")).returning(_LINK.c.id)
