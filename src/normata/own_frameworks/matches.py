"""An organization's own matches, made because it judges two controls differently from published mappings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import and_, bindparam, delete, select

from normata.core.changes.source import Fault, Row, pointer
from normata.core.changes.unit_of_work import Change, UnitOfWork
from normata.core.changes.writing import BODY, write
from normata.core.db.transaction import batches
from normata.core.schema.table import new_id, sql_table
from normata.coverage.recompute import Touched, lock_coverage
from normata.errors import Forbidden, NotFound
from normata.frameworks.model import Control, ControlMatch, Framework, FrameworkAdoption
from normata.frameworks.visibility import visible_to
from normata.identity.organization_lookup import reached
from normata.own_frameworks.match_list import is_published, matches_by_id
from normata.own_frameworks.pairs import Pair, own_between, pair_of
from normata.own_frameworks.set_aside import forget
from normata.own_frameworks.writing import follow, frameworks_of, valid_rows

MAX_AT_ONCE = 500  # also fits one statement

WRITABLE = ("source_control_id", "target_control_id", "match_level", "justification")

_ENDS = ("sourceControlId", "targetControlId")
_PUBLISHED = (
    "A published match stays as it is. Set it aside, or make one of your own between the same controls: the stronger"
    " one counts."
)


def create(unit: UnitOfWork, organization: str, matches: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Create an organization's own matches, and return them in the form of the list, in the same order.

    Each has all of :data:`WRITABLE` by its wire names. The controls are of any frameworks that the organization can
    see. Raises NotFound, InsufficientRole, and FaultyInput with all faults.
    """
    organization_id = reached(unit, organization)
    lock_coverage(unit, organization_id)
    rows = [
        Row("controlMatches", BODY, pointer("matches", number), {**match, "id": new_id()})
        for number, match in enumerate(matches)
    ]
    frameworks = _is_visible(unit, organization_id, sorted({row.values[end] for row in rows for end in _ENDS}))
    faults = [*_not_visible(rows, frameworks), *_unjustified(rows), *_pointless(unit, organization_id, rows)]
    known = [row for row in rows if all(row.values[end] in frameworks for end in _ENDS)]
    owned = [Row(row.array, row.file, row.place, {**row.values, "organizationId": organization_id}) for row in known]
    pending = valid_rows(unit, ControlMatch, owned, faults)
    for written in write(unit, ControlMatch, pending):
        unit.publish(Change("create", ControlMatch, organization_id, written.id, written.after))
    ends = {row.values[end] for row in known for end in _ENDS}
    follow(unit, organization_id, frameworks.values(), Touched(matches=ends))
    found = matches_by_id(unit, organization_id, [row.id for row in pending])
    return [found[row.id] for row in pending]


def remove(unit: UnitOfWork, organization: str, match_id: str) -> None:
    """Delete an own match of the organization.

    Raises NotFound, Forbidden if the match is a published one, and InsufficientRole.
    """
    organization_id = reached(unit, organization)
    lock_coverage(unit, organization_id)
    key = {"organization": organization_id, "match": match_id}
    if unit.scalar(_IS_OWN_MATCH, key) is not None:
        forget(unit, organization_id, match_id)
    row = unit.row(_DELETE, key)
    if row is None:
        raise Forbidden(_PUBLISHED) if is_published(unit, organization_id, match_id) else NotFound
    unit.publish(Change("delete", ControlMatch, organization_id, match_id, before=row._asdict()))
    ends = [row.source_control_id, row.target_control_id]
    follow(unit, organization_id, frameworks_of(unit, ends), Touched(matches=ends))


def _is_visible(unit: UnitOfWork, organization_id: str, ids: Sequence[str]) -> dict[str, str]:
    """The framework of each of these controls, if the organization can see it."""
    return {
        row.id: row.framework_id
        for batch in batches(ids)
        for row in unit.rows(_ENDS_VISIBLE, {"organization": organization_id, "ids": batch})
    }


def _not_visible(rows: Sequence[Row], frameworks: Mapping[str, str]) -> list[Fault]:
    return [
        row.fault(end, "names no control that the organization can see")
        for row in rows
        for end in _ENDS
        if row.values[end] not in frameworks
    ]


def _unjustified(rows: Sequence[Row]) -> list[Fault]:
    return [
        row.fault("justification", "is required: say why, for an auditor")
        for row in rows
        if not row.values["justification"].strip()
    ]


def _pointless(unit: UnitOfWork, organization_id: str, rows: Sequence[Row]) -> list[Fault]:
    """Matches of a control with itself, and those that exist already: in the request, or stored."""
    faults: list[Fault] = []
    seen: dict[Pair, Row] = {}
    for row in rows:
        source, target = pair_of(row)
        if source == target:
            faults.append(row.fault("targetControlId", "is the source itself"))
        elif (first := seen.setdefault((source, target), row)) is not row:
            faults.append(row.fault(None, f"matches the same controls as {first.place[1:]}"))
    for pair, ids in own_between(unit, organization_id, seen.keys()).items():
        faults += (
            seen[pair].fault(None, f"is there already: {one!r}; to change it, delete that one first") for one in ids
        )
    return faults


_MATCH, _CONTROL, _FRAMEWORK = sql_table(ControlMatch), sql_table(Control), sql_table(Framework)
_ADOPTION = sql_table(FrameworkAdoption)
_IS_OWN = _MATCH.c.organization_id == bindparam("organization")

_ENDS_VISIBLE = (
    select(_CONTROL.c.id, _CONTROL.c.framework_id)
    .join(_FRAMEWORK, _FRAMEWORK.c.id == _CONTROL.c.framework_id)
    .outerjoin(
        _ADOPTION,
        and_(_ADOPTION.c.framework_id == _FRAMEWORK.c.id, _ADOPTION.c.organization_id == bindparam("organization")),
    )
    .where(_CONTROL.c.id.in_(bindparam("ids", expanding=True)), visible_to(bindparam("organization")))
)
_IS_OWN_MATCH = select(_MATCH.c.id).where(_IS_OWN, _MATCH.c.id == bindparam("match"))
_DELETE = delete(_MATCH).where(_IS_OWN, _MATCH.c.id == bindparam("match")).returning(*_MATCH.c)
