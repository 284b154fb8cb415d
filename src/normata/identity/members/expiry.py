"""Memberships that end by themselves: from their moment on they allow nothing, and then a job removes them.

Who asks is refused by the moment alone, which the lookups of tokens and sessions carry. The job does what follows from
a removal: records cannot newly name the member, their tokens for the organization are revoked, and an event tells it.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import bindparam, select
from sqlalchemy import text as sql_text

from normata.core.changes.jobs import DueJob, JobType
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.transaction import Transaction
from normata.core.schema.table import sql_table
from normata.identity.authority import lock_members
from normata.identity.members import members
from normata.identity.model import WILL_EXPIRE, Membership

AT_ONCE = 100  # memberships in one transaction


def _run(unit: UnitOfWork, job: DueJob) -> str | None:
    lock_members(unit, job.owner)
    found = unit.scalars(_EXPIRED, {"organization": job.owner, "moment": job.moment})
    for member_id in found:
        members.end(unit, members.member_named(unit, member_id), "expire")
    return job.moment if len(found) == AT_ONCE else None


def _find(transaction: Transaction, organizations: Sequence[str], moment: str) -> list[str]:
    """The organizations among these with a membership that has expired."""
    return transaction.scalars(_ORGANIZATIONS, {"organizations": organizations, "moment": moment})


EXPIRIES = JobType("expiries", _run, writes=members.REMOVAL_WRITES, find=_find)

_MEMBER = sql_table(Membership)
_HAS_EXPIRED = sql_text(WILL_EXPIRE), _MEMBER.c.expires_at <= bindparam("moment", type_=_MEMBER.c.expires_at.type)
_EXPIRED = (
    select(_MEMBER.c.id)
    .where(_MEMBER.c.organization_id == bindparam("organization"), *_HAS_EXPIRED)
    .order_by(_MEMBER.c.id)
    .limit(AT_ONCE)
)
_ORGANIZATIONS = (
    select(_MEMBER.c.organization_id)
    .where(_MEMBER.c.organization_id.in_(bindparam("organizations", expanding=True)), *_HAS_EXPIRED)
    .distinct()
)
