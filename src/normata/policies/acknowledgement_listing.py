"""Who has acknowledged the published version of a policy, and who has not."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field
from sqlalchemy import and_, bindparam, func, or_, select

from normata.core.db.transaction import Transaction
from normata.core.schema.fields import Identifier, Timestamp
from normata.core.schema.paging import Page, PageQuery, envelope, fetch_page
from normata.core.schema.table import sql_table
from normata.core.schema.wire import Wire
from normata.errors import NotFound
from normata.identity.model import Membership, User
from normata.policies.acknowledgement_model import Acknowledgement
from normata.policies.acknowledging import is_requested
from normata.policies.model import PolicyVersion
from normata.policies.versions import Versions
from normata.records.kinds import Policy
from normata.records.lookup import find


class AcknowledgementQuery(PageQuery):
    """The query of the acknowledgements of a policy."""

    state: Literal["DONE", "OPEN"] | None = Field(
        default=None, description="Only who has acknowledged the published version, or only who has not."
    )
    member_id: Identifier | None = Field(default=None, description="Only this member.")


class MemberAcknowledgement(Wire):
    """A member, and how far they have acknowledged a policy."""

    member_id: str = Field(description="The id of the membership.")
    name: str = Field(description="The name of the member.")
    requested_at: Timestamp | None = Field(description="When they were asked; null if they will be, or did it unasked.")
    acknowledged_at: Timestamp | None = Field(description="When they have acknowledged the published version, or null.")
    acknowledged_version: int | None = Field(description="The newest version that they have acknowledged, or null.")


class AcknowledgementPage(Page[MemberAcknowledgement]):
    """A page of members who are asked to acknowledge a policy, or have done so."""

    version: int | None = Field(description="The number of the published version; null if none is published.")


def list_acknowledgements(transaction: Transaction, policy_id: str, query: AcknowledgementQuery, moment: str) -> Any:
    """A page of the members, by name, in four statements. Raises NotFound."""
    policy: Any = transaction.row(find(Policy), {"record": policy_id})
    if policy is None or policy.organization_id != query.organization_id:
        raise NotFound
    version = Versions(transaction, policy).last("PUBLISHED")
    statement = _MEMBERS
    if query.state is not None:
        done = _NOW.c.acknowledged_at
        statement = statement.where(done.is_not(None) if query.state == "DONE" else done.is_(None))
    if query.member_id is not None:
        statement = statement.where(_MEMBER.c.id == query.member_id)
    parameters = {
        "organization": query.organization_id,
        "policy": policy_id,
        "version": "" if version is None else version.id,
        "roles": [] if version is None else version.acknowledging_roles or [],
        "moment": moment,
    }
    found = fetch_page(transaction, statement, [_USER.c.name, _MEMBER.c.id], query, parameters)
    items = [
        {
            "memberId": row.id,
            "name": row.name,
            "requestedAt": row.requested_at,
            "acknowledgedAt": row.acknowledged_at,
            "acknowledgedVersion": row.newest,
        }
        for row in found.rows
    ]
    answer = envelope(items, found, query)
    answer["version"] = None if version is None else version.number
    return answer


_MEMBER, _USER, _VERSION = sql_table(Membership), sql_table(User), sql_table(PolicyVersion)
_NOW, _EVER = sql_table(Acknowledgement).alias("of_version"), sql_table(Acknowledgement).alias("of_policy")
_NEWEST = (
    select(func.max(_VERSION.c.number))
    .join(_EVER, and_(_EVER.c.organization_id == _VERSION.c.organization_id, _EVER.c.version_id == _VERSION.c.id))
    .where(
        _VERSION.c.organization_id == bindparam("organization"),
        _VERSION.c.policy_id == bindparam("policy"),
        _EVER.c.member_id == _MEMBER.c.id,
        _EVER.c.acknowledged_at.is_not(None),
    )
    .correlate(_MEMBER)
    .scalar_subquery()
)
_MEMBERS = (
    select(_MEMBER.c.id, _USER.c.name, _NOW.c.requested_at, _NOW.c.acknowledged_at, _NEWEST.label("newest"))
    .join(_USER, _USER.c.id == _MEMBER.c.user_id)
    .outerjoin(
        _NOW,
        and_(
            _NOW.c.organization_id == _MEMBER.c.organization_id,
            _NOW.c.version_id == bindparam("version"),
            _NOW.c.member_id == _MEMBER.c.id,
        ),
    )
    .where(
        _MEMBER.c.organization_id == bindparam("organization"),
        or_(is_requested(bindparam("roles", expanding=True)), _NOW.c.acknowledged_at.is_not(None)),
    )
)
