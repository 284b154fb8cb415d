"""Accepting a residual risk, which its owner alone can do (ISO/IEC 27001, 6.1.3 f)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import bindparam, update

from normata.core.changes.unit_of_work import Change, UnitOfWork, update_of
from normata.core.schema.wire import columns
from normata.errors import Archived, Forbidden, InsufficientRole, NotRated
from normata.identity.authority import own_membership
from normata.records.assurance import Risk
from normata.records.lookup import found_for_change

_SET = ("accepted_at", "accepted_by_id", "updated_at")
ACCEPTANCE_WRITES = (update_of(Risk, *_SET),)
_NOT_OWNER = "Only the owner of the risk can accept it."


def accept(unit: UnitOfWork, risk_id: str, *, require_current: Callable[[Any], None]) -> Any:
    """Accept the residual risk as it is now, also again, and return its row.

    ``require_current`` gets the row before, and raises if that is not the state that the caller knows. Raises NotFound,
    Archived, Forbidden unless the actor is the owner, whatever their role, and NotRated if residual values are missing.
    """
    try:
        before = found_for_change(unit, Risk, risk_id)
    except InsufficientRole:  # an auditor, who is responsible for nothing
        raise Forbidden(_NOT_OWNER) from None
    if before.owner_id is None or own_membership(unit, before.organization_id) != before.owner_id:
        raise Forbidden(_NOT_OWNER)
    if before.archived_at is not None:
        raise Archived
    if before.residual_probability is None or before.residual_impact is None:
        raise NotRated
    require_current(before)
    row: Any = unit.row(_ACCEPT, {"risk": risk_id, "owner": before.owner_id, "moment": unit.moment})
    unit.publish(Change("accept", Risk, row.organization_id, row.id, row._asdict(), before._asdict(), changed=_SET))
    return row


_TABLE = Risk.sql()
_MOMENT = bindparam("moment", type_=_TABLE.c.accepted_at.type)
_ACCEPT = (
    update(_TABLE)
    .where(_TABLE.c.id == bindparam("risk"))
    .values(accepted_at=_MOMENT, accepted_by_id=bindparam("owner"), updated_at=_MOMENT)
    .returning(*columns(Risk))
)
