"""Matches that an organization sets aside, because it does not agree with them: they do not count for it."""

from __future__ import annotations

from typing import Any

from sqlalchemy import and_, bindparam, delete, select

from normata.core.changes.source import Fault, FaultyInput, Row, pointer
from normata.core.changes.unit_of_work import Change, UnitOfWork
from normata.core.changes.writing import BODY, write
from normata.core.schema.table import new_id, sql_table
from normata.coverage.recompute import Touched, lock_coverage
from normata.errors import NotFound
from normata.frameworks.model import ControlMatch, SetAsideMatch
from normata.identity.organization_lookup import reached
from normata.own_frameworks.match_list import is_visible, matches_by_id
from normata.own_frameworks.writing import follow, frameworks_of, valid_rows


def set_aside(unit: UnitOfWork, organization: str, match_id: str, justification: str) -> dict[str, Any]:
    """Set a match aside, so that it does not count for the organization, and return it in the form of the list.

    If it is already set aside, it gets the new justification. Raises NotFound, InsufficientRole and FaultyInput.
    """
    organization_id = reached(unit, organization)
    lock_coverage(unit, organization_id)
    ends = _ends(unit, organization_id, match_id)
    if not justification.strip():
        raise FaultyInput([Fault(BODY, pointer("justification"), "is required: say why, for an auditor")])
    key = {"organization": organization_id, "match": match_id}
    values = {
        "id": unit.scalar(_FIND, key) or new_id(),
        "organizationId": organization_id,
        "matchId": match_id,
        "justification": justification.strip(),
    }
    pending = valid_rows(unit, SetAsideMatch, [Row("setAsideMatches", BODY, "", values)])
    for row in write(unit, SetAsideMatch, pending):
        action = "create" if row.stored is None else "update"
        unit.publish(Change(action, SetAsideMatch, organization_id, row.id, row.after, row.before))
        if row.stored is None:
            follow(unit, organization_id, frameworks_of(unit, ends), Touched(matches=ends))
    return matches_by_id(unit, organization_id, [match_id])[match_id]


def take_up(unit: UnitOfWork, organization: str, match_id: str) -> dict[str, Any]:
    """Let a match count again for the organization, and return it in the form of the list. Repeating it is harmless.

    Raises NotFound and InsufficientRole.
    """
    organization_id = reached(unit, organization)
    lock_coverage(unit, organization_id)
    ends = _ends(unit, organization_id, match_id)
    if forget(unit, organization_id, match_id):
        follow(unit, organization_id, frameworks_of(unit, ends), Touched(matches=ends))
    return matches_by_id(unit, organization_id, [match_id])[match_id]


def forget(unit: UnitOfWork, organization_id: str, match_id: str) -> bool:
    """Remove the row that sets a match aside, and return whether there was one. The caller updates coverage."""
    row = unit.row(_DELETE, {"organization": organization_id, "match": match_id})
    if row is None:
        return False
    unit.publish(Change("delete", SetAsideMatch, organization_id, row.id, before=row._asdict()))
    return True


def _ends(unit: UnitOfWork, organization_id: str, match_id: str) -> list[str]:
    """The controls of a match that the organization can see. Raises NotFound and InsufficientRole."""
    if not is_visible(unit, organization_id, match_id):
        raise NotFound
    unit.require_reach(organization_id)
    return list(unit.row(_ENDS, {"match": match_id}) or ())


_MATCH, _SET_ASIDE = sql_table(ControlMatch), sql_table(SetAsideMatch)
_ENDS = select(_MATCH.c.source_control_id, _MATCH.c.target_control_id).where(_MATCH.c.id == bindparam("match"))
_ITSELF = and_(_SET_ASIDE.c.organization_id == bindparam("organization"), _SET_ASIDE.c.match_id == bindparam("match"))
_FIND = select(_SET_ASIDE.c.id).where(_ITSELF)
_DELETE = delete(_SET_ASIDE).where(_ITSELF).returning(*_SET_ASIDE.c)
