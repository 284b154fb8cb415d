"""Who may name the approver of a policy, and when its title and text may change, on every way of changing records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import bindparam, select

from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.schema.table import sql_table
from normata.errors import Forbidden, InsufficientRole, WrongState
from normata.identity.authority import require_role
from normata.policies.model import PolicyVersion

FREE, REVIEW = "DRAFT", "IN_REVIEW"  # the statuses in which the text of a policy itself is still to be approved
_NAMING = "To name or change the approver of a policy takes the role admin or owner in the organization."


def guard_policy(unit: UnitOfWork, before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> None:
    """Raise Forbidden or WrongState if the actor may not make ``after`` of a policy ``before`` (null: a new one)."""
    if after["approver_id"] != (None if before is None else before["approver_id"]):
        try:
            require_role(unit, after["organization_id"], "admin")
        except InsufficientRole:
            raise Forbidden(_NAMING) from None
        if before is not None and unit.row(_IN_REVIEW, _key(before)) is not None:
            raise WrongState(REVIEW, (FREE,), "Withdraw it to name another approver.")
    is_renamed = before is not None and after["title"] != before["title"]
    if before is not None and is_renamed and (before["status"] == REVIEW or unit.row(_IN_REVIEW, _key(before))):
        raise WrongState(REVIEW, (FREE,), "Withdraw it to change the title.")
    if before is not None and before["status"] != FREE and after["content"] != before["content"]:
        if before["status"] == REVIEW:
            raise WrongState(REVIEW, (FREE,), "Withdraw it to change the text.")
        raise WrongState(before["status"], (FREE,), f"PUT /policies/{before['id']}/draft/ changes its next text.")


def _key(policy: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"organization": policy["organization_id"], "policy": policy["id"]}


_VERSION = sql_table(PolicyVersion)
_IN_REVIEW = select(_VERSION.c.id).where(
    _VERSION.c.organization_id == bindparam("organization"),
    _VERSION.c.policy_id == bindparam("policy"),
    _VERSION.c.state == REVIEW,
)
