"""When the date on which an entitlement review was finished follows from a step, for every way of changing records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import bindparam, select

from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.schema.table import sql_table
from normata.entitlements.model import EntitlementReviewItem

_NONE: Mapping[str, str] = {}


def finished_by_step(unit: UnitOfWork, review: Mapping[str, Any]) -> Mapping[str, str]:
    """The columns of a stored review that follow from a step, and the step: none without items."""
    key = {"organization": review["organization_id"], "review": review["id"]}
    return _NONE if unit.row(_ANY, key) is None else {"finished_at": "/finish/"}


_ITEM = sql_table(EntitlementReviewItem).c
_ANY = (
    select(_ITEM.id)
    .where(_ITEM.organization_id == bindparam("organization"), _ITEM.entitlement_review_id == bindparam("review"))
    .limit(1)
)
