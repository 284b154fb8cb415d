"""When findings are closed and verified, and when a verification ends. It holds for every way of changing records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import bindparam, select

from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.schema.table import sql_table
from normata.errors import WrongState
from normata.identity.model import Organization

VERIFIED, CLOSED = "VERIFIED", "CLOSED"
RESOLVED = ("RESOLVED", CLOSED)
VERIFICATION = ("verified_at", "verified_by_id", "verified_by_name", "verification_note")


def is_to_verify(status: str, verified_at: str | None) -> bool:
    """Whether a finding can be verified: it is resolved, and was not verified since."""
    return verified_at is None and status in (*RESOLVED, VERIFIED)  # VERIFIED, as a load may have it


def end_verification(before: Mapping[str, Any] | None, after: dict[str, Any]) -> None:
    """Clear the verification of a finding that is reopened."""
    if before is not None and before["status"] != after["status"] not in (VERIFIED, CLOSED):
        after.update(dict.fromkeys(VERIFICATION))


def needs_verification(unit: UnitOfWork, organization_id: str) -> bool:
    """Whether a finding of the organization must be verified by somebody else before it is closed."""
    return bool(unit.scalar(_NEEDS, {"organization": organization_id}))


def guard_finding(unit: UnitOfWork, before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> None:
    """Raise WrongState for closing a finding that is not verified, if the organization requires that."""
    state = "OPEN" if before is None else before["status"]
    if after["status"] != CLOSED or state == CLOSED or after["verified_at"] is not None:
        return
    if needs_verification(unit, after["organization_id"]):
        raise WrongState(state, [VERIFIED])


_ORGANIZATION = sql_table(Organization).c
_NEEDS = select(_ORGANIZATION.verifies_findings).where(_ORGANIZATION.id == bindparam("organization"))
