"""The caller, and the organizations of which they are a member."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field
from sqlalchemy import bindparam, select

from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.transaction import Transaction
from normata.core.http.caller import Caller
from normata.core.http.roles import Role, TokenScope
from normata.core.schema.fields import Timestamp
from normata.core.schema.paging import OwnPageQuery, envelope, fetch_page
from normata.core.schema.table import sql_table
from normata.core.schema.wire import Wire
from normata.errors import Forbidden, NotFound
from normata.identity import preferences, users
from normata.identity.mail_choices import MailByType, MailChoice
from normata.identity.model import DateFormat, Days, Membership, Operator, Organization, Theme, TimeZone, User
from normata.identity.preferences import (
    DATE_FORMAT,
    IS_MAIL_REFUSED,
    MAIL,
    MAIL_BY_TYPE,
    THEME,
    TIME_ZONE,
    Preferences,
)


class OwnOrganization(Wire):
    """An organization that the caller is a member of."""

    id: str
    name: str
    slug: str = Field(description="A readable name for addresses, unique among all organizations.")
    member_id: str = Field(description="The id of the caller's membership.")
    role: Role = Field(description="What the caller may do there.")
    expires_at: Timestamp | None = Field(description="When the membership ends; null if it does not.")


KEEP_REPLACED_FILES = (
    "For how many days the bytes of a file are kept after the last record has given it up. Then they are erased; its"
    " hash and its events stay. Null: for ever."
)
SCOPE = (
    "What the organization's management system is about, in its own words (ISO/IEC 27001, 4.3); null if it has not said"
    " so."
)


ORGANIZATION_MAIL = (
    "When notifications are mailed to members who have not chosen: `IMMEDIATELY`, each by itself; `DAILY`, the unread"
    " ones in the morning; or `OFF`."
)
ALLOWS_SELF_APPROVAL = (
    "Whether the approver of a policy may approve a text that they submitted or edited last themselves; usually not."
)
VERIFIES_FINDINGS = (
    "Whether a finding is closed only once somebody else has verified it: neither an owner nor who has resolved it."
)


class OwnOrganizationDetails(OwnOrganization):
    """An organization that the caller is a member of, with its scope and what it has set."""

    scope: str | None = Field(description=SCOPE)
    mail: MailChoice = Field(description=ORGANIZATION_MAIL)
    keep_replaced_files_days: Days | None = Field(description=KEEP_REPLACED_FILES)
    allows_self_approval: bool = Field(description=ALLOWS_SELF_APPROVAL)
    verifies_findings: bool = Field(description=VERIFIES_FINDINGS)


class Me(Wire):
    """Who makes the request, and with what."""

    id: str = Field(description="The id of the user.")
    name: str
    email: str | None = Field(description="The email address; null for a service account.")
    is_operator: bool = Field(description="Whether the user runs the instance.")
    token_id: str = Field(description="The id of the token that the request came with.")
    scope: TokenScope = Field(description="What the token may do.")
    organization_id: str | None = Field(
        description="The only organization that the token sees; null if it sees all that the user is a member of."
    )
    time_zone: TimeZone | None = Field(description=TIME_ZONE)
    date_format: DateFormat | None = Field(description=DATE_FORMAT)
    theme: Theme | None = Field(description=THEME)
    mail: MailChoice | None = Field(description=MAIL)
    mail_by_type: MailByType = Field(description=MAIL_BY_TYPE)
    is_mail_refused: bool = Field(description=IS_MAIL_REFUSED)
    organizations: list[OwnOrganization] = Field(description="Where the user is a member, as far as the token sees.")


def me(transaction: Transaction, caller: Caller) -> dict[str, Any]:
    """The data of a caller, in three statements. The caller's own rows are in the scope of ``transaction``."""
    user = transaction.row(_USER_ROW, {"user": caller.user_id})
    organizations = transaction.rows(_OWN.order_by(*_ORDER), _parameters(caller))
    return {
        "id": caller.user_id,
        "name": caller.user_name if user is None else user.name,
        "email": None if user is None else user.email,
        "isOperator": transaction.scalar(_OPERATOR_ROW, {"user": caller.user_id}) is not None,
        "tokenId": caller.token_id,
        "scope": caller.scope,
        "organizationId": caller.narrowed_to,
        "timeZone": None if user is None else user.time_zone,
        "dateFormat": None if user is None else user.date_format,
        "theme": None if user is None else user.theme,
        "mail": None if user is None else user.mail,
        "mailByType": (None if user is None else user.mail_by_type) or {},
        "isMailRefused": user is not None and user.email is not None and user.refused_email == user.email,
        "organizations": [as_wire(row) for row in organizations],
    }


def change(unit: UnitOfWork, caller: Caller, name: str | None, preferred: Mapping[str, Any]) -> dict[str, Any]:
    """Give the caller another name and other preferences, and return :func:`me`. Raises Forbidden.

    All organizations of a person see the name. The admins of its organization rename a service account.
    """
    user = unit.row(_USER_ROW, {"user": caller.user_id})
    if caller.narrowed_to is not None or user is None or user.organization_id is not None:
        raise Forbidden("Only a person can do this, with a token that is not narrowed to an organization.")
    if name is not None:
        users.rename(unit, caller.user_id, name)
    preferences.change(unit, caller.user_id, preferred)
    return me(unit, caller)


def list_own(transaction: Transaction, caller: Caller, query: OwnPageQuery) -> dict[str, Any]:
    """A page of the organizations that the caller is a member of, by name."""
    found = fetch_page(transaction, _OWN, _ORDER, query, _parameters(caller))
    return envelope([as_wire(row) for row in found.rows], found, query)


def one_own(transaction: Transaction, caller: Caller, organization_id: str) -> dict[str, Any]:
    """One organization that the caller is a member of. Raises NotFound."""
    found = transaction.row(
        _OWN_IN_DETAIL,
        {"user": caller.user_id, "organizations": [organization_id] if organization_id in caller.roles else []},
    )
    if found is None:
        raise NotFound
    settings = {
        "mail": found.mail,
        "keepReplacedFilesDays": found.keep_replaced_files_days,
        "allowsSelfApproval": found.allows_self_approval,
        "verifiesFindings": found.verifies_findings,
    }
    return as_wire(found) | {"scope": found.scope} | settings


def as_wire(row: Any) -> dict[str, Any]:
    """An organization of the caller's, in wire form."""
    return {
        "id": row.id,
        "name": row.name,
        "slug": row.slug,
        "memberId": row.member_id,
        "role": row.role,
        "expiresAt": row.expires_at,
    }


def _parameters(caller: Caller) -> dict[str, Any]:
    return {"user": caller.user_id, "organizations": list(caller.roles)}


_ORGANIZATION, _MEMBER, _USER, _OPERATOR = (sql_table(one) for one in (Organization, Membership, User, Operator))
_OWN = (
    select(
        *(_ORGANIZATION.c[name] for name in ("id", "name", "slug")),
        _MEMBER.c.id.label("member_id"),
        _MEMBER.c.role,
        _MEMBER.c.expires_at,
    )
    .join(_MEMBER, _MEMBER.c.organization_id == _ORGANIZATION.c.id)
    .where(
        _MEMBER.c.user_id == bindparam("user"),
        _MEMBER.c.removed_at.is_(None),
        _ORGANIZATION.c.id.in_(bindparam("organizations", expanding=True)),
    )
)
_OWN_IN_DETAIL = _OWN.add_columns(
    *(_ORGANIZATION.c[name] for name in ("scope", "mail", "keep_replaced_files_days")),
    *(_ORGANIZATION.c[name] for name in ("allows_self_approval", "verifies_findings")),
)
_ORDER = [_ORGANIZATION.c.name, _ORGANIZATION.c.id]
_USER_ROW = select(
    *(_USER.c[name] for name in ("email", "name", "organization_id", "mail", "mail_by_type", "refused_email")),
    *(_USER.c[name] for name in Preferences._fields),
).where(_USER.c.id == bindparam("user"))
_OPERATOR_ROW = select(_OPERATOR.c.user_id).where(_OPERATOR.c.user_id == bindparam("user"))
