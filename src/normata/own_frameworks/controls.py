"""Creating and changing controls of an organization's own frameworks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import and_, bindparam, select, update

from normata.core.changes.rows import PendingRow
from normata.core.changes.source import Fault, Row, pointer
from normata.core.changes.unit_of_work import Change, UnitOfWork
from normata.core.changes.writing import BODY, write
from normata.core.db.transaction import batches
from normata.core.schema.fields import MAX_NUMBER
from normata.core.schema.table import new_id, sql_table
from normata.core.schema.wire import as_wire
from normata.coverage.affected import MATTERS
from normata.coverage.recompute import Touched, lock_coverage
from normata.errors import Forbidden, NotFound
from normata.frameworks.model import Control, Framework, FrameworkAdoption
from normata.frameworks.rules import count_controls
from normata.frameworks.visibility import visible_to
from normata.identity.organization_lookup import reached
from normata.own_frameworks.frameworks import CENTRALIZED, require_own
from normata.own_frameworks.writing import follow, valid_rows

MAX_AT_ONCE = 500

# The fields of a control that people can write, besides `parent` and `after`.
WRITABLE = (
    *("parent_id", "identifier", "name", "slug", "purpose", "type", "description", "is_mandatory"),
    "is_decomposed",
)

WireValues = Mapping[str, Any]  # values by their wire names


def create(
    unit: UnitOfWork, organization: str, framework_id: str, controls: Sequence[WireValues], place: WireValues
) -> list[dict[str, Any]]:
    """Add controls to a framework of the organization's own, and return them in wire form, in the same order.

    Each may name its parent by ``parentId``, or by ``parent``: the identifier of another new or existing control.
    ``place`` may have ``after``: the id of the control that they follow in catalog order, null for the first place; by
    default they come last. Raises NotFound, Forbidden, InsufficientRole, and FaultyInput with all faults.
    """
    organization_id = reached(unit, organization)
    lock_coverage(unit, organization_id)
    require_own(unit, organization_id, framework_id)
    rows = [
        Row("controls", BODY, pointer("controls", number), {**body, "id": new_id(), "frameworkId": framework_id})
        for number, body in enumerate(controls)
    ]
    named = _named(unit, framework_id, rows)
    faults = [*_repeated(rows), *_taken(rows, named)]
    parents = {row.values["identifier"]: row.values["id"] for row in reversed(rows)}
    rows = [_with_parent(row, parents, named, faults) for row in rows]
    first = _following(unit, framework_id, place, faults)
    pending = valid_rows(unit, Control, rows, faults)
    if first is not None:
        make_room(unit, framework_id, first, pending)
    written = write(unit, Control, pending)
    count_controls(unit, [framework_id])
    _publish(unit, "create", organization_id, written)
    follow(unit, organization_id, [framework_id], Touched(controls={row.id for row in written}))
    return _as_they_are(unit, [row.id for row in pending])


def change(unit: UnitOfWork, organization: str, control_id: str, body: WireValues) -> dict[str, Any]:
    """Change the fields in ``body`` of an own control of the organization, and return it in wire form.

    Besides fields, ``body`` may have ``parent`` and ``after``, as for :func:`create`. Raises NotFound, Forbidden if the
    control is centralized, InsufficientRole, and FaultyInput with all faults.
    """
    organization_id = reached(unit, organization)
    lock_coverage(unit, organization_id)
    framework_id = _framework_of(unit, organization_id, control_id)
    place = {name: value for name, value in body.items() if name == "after"}
    values = {name: value for name, value in body.items() if name != "after"}
    rows = [Row("controls", BODY, "", {**values, "id": control_id})]
    named = _named(unit, framework_id, rows)
    faults = _taken(rows, named)
    rows = [_with_parent(rows[0], {}, named, faults)]
    first = _following(unit, framework_id, place, faults)
    [pending] = valid_rows(unit, Control, rows, faults)
    if first is not None:
        move(unit, framework_id, first, pending)
    before: Mapping[str, Any] = pending.stored or {}
    written = write(unit, Control, [pending])
    _publish(unit, "update", organization_id, written)
    if any(before.get(name) != pending.final[name] for name in MATTERS[Control]):
        moved = (pending.id, before.get("parent_id"))
        follow(unit, organization_id, [framework_id], Touched(controls=[one for one in moved if one is not None]))
    return _as_they_are(unit, [control_id])[0]


def _framework_of(unit: UnitOfWork, organization_id: str, control_id: str) -> str:
    """The organization's own framework of a control. Raises NotFound and Forbidden."""
    row = unit.row(_OWNER, {"organization": organization_id, "control": control_id})
    if row is None:
        raise NotFound
    if row.organization_id is None:
        raise Forbidden(CENTRALIZED)
    return str(row.framework_id)


def _publish(unit: UnitOfWork, action: str, organization_id: str, written: Iterable[PendingRow]) -> None:
    for row in written:
        unit.publish(Change(action, Control, organization_id, row.id, row.after, row.before))


def _as_they_are(unit: UnitOfWork, control_ids: Sequence[str]) -> list[dict[str, Any]]:
    found = {row.id: row for batch in batches(control_ids) for row in unit.rows(_BY_ID, {"ids": batch})}
    return [as_wire(Control, found[control_id]) for control_id in control_ids]


# --- Identifiers are unique in a framework, so a repeated request adds nothing


def _named(unit: UnitOfWork, framework_id: str, rows: Sequence[Row]) -> Mapping[str, list[str]]:
    """The ids of stored controls by identifier: those of these rows, and of their parents."""
    wanted = {row.values[name] for row in rows for name in ("identifier", "parent") if row.values.get(name)}
    named: defaultdict[str, list[str]] = defaultdict(list)
    for batch in batches(sorted(wanted)):
        for row in unit.rows(_BY_IDENTIFIER, {"framework": framework_id, "identifiers": batch}):
            named[row.identifier].append(row.id)
    return named


def _repeated(rows: Sequence[Row]) -> list[Fault]:
    first: dict[str, Row] = {}
    return [
        row.fault("identifier", f"is the same as that of {known.place[1:]}")
        for row in rows
        if (known := first.setdefault(row.values["identifier"], row)) is not row
    ]


def _taken(rows: Sequence[Row], named: Mapping[str, list[str]]) -> list[Fault]:
    return [
        row.fault("identifier", f"is taken by the control {holders[0]!r} of this framework")
        for row in rows
        if (holders := [one for one in named.get(row.values.get("identifier", ""), ()) if one != row.values["id"]])
    ]


def _with_parent(row: Row, new: Mapping[str, str], named: Mapping[str, list[str]], faults: list[Fault]) -> Row:
    """The row, with the parent's identifier replaced by its id."""
    values = dict(row.values)
    if "parent" not in values:
        return row
    parent = values.pop("parent")
    origin = {"parentId": "parent"}
    if "parentId" in values:
        faults.append(row.fault("parent", "is said twice: by parent and by parentId"))
    elif parent is None:
        values["parentId"] = None
    elif parent in new:
        values["parentId"] = new[parent]
    elif len(found := named.get(parent, [])) == 1:
        values["parentId"] = found[0]
    elif found:
        faults.append(row.fault("parent", f"is ambiguous; name it by parentId: {', '.join(sorted(found))}"))
    else:
        faults.append(row.fault("parent", "is the identifier of no control of this request or framework"))
    return Row(row.array, row.file, row.place, values, origin)


def _following(unit: UnitOfWork, framework_id: str, place: WireValues, faults: list[Fault]) -> int | None:
    """The position in ``place``; null if there is none."""
    if "after" not in place:
        return None
    if place["after"] is None:
        return 0
    position = unit.scalar(_POSITION, {"framework": framework_id, "control": place["after"]})
    if position is None:
        faults.append(Fault(BODY, pointer("after"), "names no control of this framework"))
        return None
    return int(position) + 1


_CONTROL, _FRAMEWORK, _ADOPTION = sql_table(Control), sql_table(Framework), sql_table(FrameworkAdoption)
_IN_FRAMEWORK = _CONTROL.c.framework_id == bindparam("framework")

_OWNER = (
    select(_CONTROL.c.framework_id, _CONTROL.c.organization_id)
    .join(_FRAMEWORK, _FRAMEWORK.c.id == _CONTROL.c.framework_id)
    .outerjoin(
        _ADOPTION,
        and_(_ADOPTION.c.framework_id == _FRAMEWORK.c.id, _ADOPTION.c.organization_id == bindparam("organization")),
    )
    .where(_CONTROL.c.id == bindparam("control"), visible_to(bindparam("organization")))
)
_BY_ID = select(_CONTROL).where(_CONTROL.c.id.in_(bindparam("ids", expanding=True)))
_BY_IDENTIFIER = select(_CONTROL.c.id, _CONTROL.c.identifier).where(
    _IN_FRAMEWORK, _CONTROL.c.identifier.in_(bindparam("identifiers", expanding=True))
)
_POSITION = select(_CONTROL.c.position).where(_IN_FRAMEWORK, _CONTROL.c.id == bindparam("control"))


def make_room(unit: UnitOfWork, framework_id: str, first: int, new: Sequence[PendingRow]) -> None:
    """Give new controls the positions from ``first`` on, and move the existing ones."""
    _shift(unit, framework_id, len(new), first, MAX_NUMBER)
    for number, row in enumerate(new):
        row.final["position"] = first + number


def move(unit: UnitOfWork, framework_id: str, first: int, control: PendingRow) -> None:
    """Move a stored control to the position ``first``, counted before the move."""
    now = control.final["position"]
    if first > now + 1:
        _shift(unit, framework_id, -1, now + 1, first - 1)
        control.final["position"] = first - 1
    elif first < now:
        _shift(unit, framework_id, 1, first, now - 1)
        control.final["position"] = first


def _shift(unit: UnitOfWork, framework_id: str, by: int, first: int, last: int | None) -> None:
    unit.rows(
        _SHIFT, {"framework": framework_id, "by": by, "first": first, "last": 2**31 - 1 if last is None else last}
    )


_CONTROL = sql_table(Control)
_SHIFT = (
    update(_CONTROL)
    .where(
        _CONTROL.c.framework_id == bindparam("framework"),
        _CONTROL.c.position.between(bindparam("first"), bindparam("last")),
    )
    .values(position=_CONTROL.c.position + bindparam("by"))
)
