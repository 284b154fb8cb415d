"""Tokens over HTTP: people's own, those of service accounts, and those that reach an organization."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from datetime import timedelta
from typing import Annotated, Any

from pydantic import Field
from sqlalchemy import ColumnElement, Select, and_, bindparam, or_, select, true

from normata.core.changes.source import Fault, FaultyInput
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.transaction import Transaction
from normata.core.db.types import now
from normata.core.http.caller import Caller
from normata.core.http.roles import SCIM, TokenScope, scope_suffices
from normata.core.schema.fields import NOT_BLANK, Identifier, Name, Timestamp
from normata.core.schema.paging import OwnPageQuery, PageQuery, QueryFlag, envelope, fetch_page
from normata.core.schema.table import sql_table
from normata.core.schema.wire import Input, Wire
from normata.errors import Forbidden, NotFound, TokenSpansOrganizations
from normata.identity.model import AccessToken, Membership, User
from normata.identity.organization_lookup import seen
from normata.identity.tokens.tokens import SHOWN, Issued, end, issue, later, reaches

USUAL = timedelta(days=90)
LONGEST = timedelta(days=366)  # of a token that expires; a later date is mostly a mistake


class Token(Wire):
    """An access token, without the token itself, which is shown once."""

    id: str
    user_id: str = Field(description="The id of the user whom the token acts as.")
    organization_id: str | None = Field(
        description="The only organization that the token reaches; null if it reaches all that its user is a member of."
    )
    name: str | None = Field(
        description="What its user calls it. Null to others where it reaches other organizations as well."
    )
    scope: TokenScope = Field(description="What the token may do.")
    created_at: Timestamp
    expires_at: Timestamp | None = Field(description="When it expires; null if it does not.")
    last_used_at: Timestamp | None = Field(description="When it was last used, to the minute; null if it never was.")
    revoked_at: Timestamp | None = Field(description="When it was revoked; null if it was not.")


class NewToken(Token):
    """A new access token."""

    token: str = Field(description="The token itself. It is shown this once, and stored nowhere.")


class TokenWanted(Input):
    """A token to make."""

    name: Annotated[Name, Field(description="What to call it, so that people know what it is for.", pattern=NOT_BLANK)]
    scope: Annotated[
        TokenScope,
        Field(
            description="What it may do: no more than the token of the request. With `scim` it maintains people at"
            " `/scim/v2/`, and does nothing else; it is narrowed to an organization, and its user is an admin there."
        ),
    ]
    expires_at: Annotated[
        Timestamp | None,
        Field(
            default_factory=lambda: None,
            description="When it expires, at most 366 days from now; null for never. Left out: in 90 days.",
        ),
    ]


class OwnQuery(OwnPageQuery):
    """The query of the list of one's own tokens."""

    active_only: Annotated[
        QueryFlag, Field(description="Whether only tokens are listed that are neither revoked nor expired.")
    ] = False


class ReachingQuery(PageQuery):
    """The query of the list of tokens that reach an organization."""

    active_only: Annotated[
        QueryFlag, Field(description="Whether only tokens are listed that are neither revoked nor expired.")
    ] = False
    user_id: Annotated[Identifier | None, Field(description="Only the tokens of this user.")] = None


# --- The user's own


def list_own(transaction: Transaction, caller: Caller, query: OwnQuery) -> dict[str, Any]:
    """A page of a caller's own tokens, newest first. With a narrowed token, only those of its organization."""
    return _page(transaction, [_is_own(caller.user_id, caller.narrowed_to)], query, active_only=query.active_only)


def one_own(transaction: Transaction, caller: Caller, token_id: str) -> dict[str, Any]:
    """One of a caller's own tokens. Raises NotFound."""
    return as_wire(_own(transaction, caller.user_id, caller.narrowed_to, token_id))


def make_own(unit: UnitOfWork, caller: Caller, wanted: TokenWanted, organization: str | None) -> Issued:
    """Create a token of the caller, narrowed to ``organization`` (its id or slug) unless that is null.

    Raises Forbidden, FaultyInput, and NotFound for an organization that the token of the request does not reach.
    """
    _require_scope(caller, wanted)
    narrowed_to = caller.narrowed_to if organization is None else seen(unit, organization)
    return issue(
        unit,
        caller.user_id,
        scope=wanted.scope,
        name=wanted.name.strip(),
        organization_id=narrowed_to,
        expires_at=_expiry(unit, wanted),
    )


def revoke_own(unit: UnitOfWork, user_id: str, token_id: str, *, narrowed_to: str | None = None) -> Any:
    """End one of a user's own tokens, and return its row. Repeating it is harmless. Raises NotFound.

    With a token that is ``narrowed_to`` an organization, only tokens of the same organization can be ended.
    """
    return end(unit, _own(unit, user_id, narrowed_to, token_id))


# --- Of an organization


def list_reaching(transaction: Transaction, query: ReachingQuery) -> dict[str, Any]:
    """A page of the tokens that reach an organization, newest first."""
    conditions = [reaches(query.organization_id)]
    if query.user_id is not None:
        conditions.append(_TOKEN.c.user_id == query.user_id)
    return _page(transaction, conditions, query, active_only=query.active_only, of=query.organization_id)


def one_reaching(transaction: Transaction, organization_id: str, token_id: str) -> dict[str, Any]:
    """One of the tokens that reach an organization. Raises NotFound."""
    row = transaction.row(_ONE.where(reaches(organization_id)), {"token": token_id})
    if row is None:
        raise NotFound
    return as_wire(row, organization_id)


def revoke_reaching(unit: UnitOfWork, token_id: str) -> Any:
    """End a token that is narrowed to an organization of the actor's, and return its row.

    Raises NotFound, InsufficientRole, and TokenSpansOrganizations if it is narrowed to none.
    """
    readable, writable = (unit.scope.readable, unit.scope.writable) if unit.scope is not None else ((), ())
    reached = unit.rows(_REACHED, {"token": token_id, "organizations": list(readable)})
    if not reached:
        raise NotFound
    here = next((row for row in reached if row.reached_id in writable), reached[0])
    unit.require_reach(here.reached_id)
    if here.organization_id is None:
        raise TokenSpansOrganizations
    return end(unit, unit.row(_ONE, {"token": token_id}), here.organization_id)


def make_for_account(
    unit: UnitOfWork, caller: Caller, user_id: str, wanted: TokenWanted, organization: str | None
) -> Issued:
    """A new token of a service account, whose ``organization`` (its id or slug) may be named.

    Raises InsufficientRole, Forbidden, FaultyInput, and NotFound, also where it is the account of another organization.
    """
    account = unit.row(_ACCOUNT, {"user": user_id})
    if account is None or account.organization_id is None or account.removed_at is not None:
        raise NotFound
    unit.require_reach(account.organization_id)
    if organization is not None and seen(unit, organization) != account.organization_id:
        raise NotFound
    _require_scope(caller, wanted)
    return issue(
        unit,
        user_id,
        scope=wanted.scope,
        name=wanted.name.strip(),
        organization_id=account.organization_id,
        expires_at=_expiry(unit, wanted),
        log_of=account.organization_id,
    )


# --- Wire form


def as_wire(row: Any, of: str | None = None) -> dict[str, Any]:
    """A token in wire form: to its user, or to the admins ``of`` an organization.

    Admins do not see the name of a token that also reaches other organizations.
    """
    return {
        "id": row.id,
        "userId": row.user_id,
        "organizationId": row.organization_id,
        "name": row.name if of in (None, row.organization_id) else None,
        "scope": row.scope,
        "createdAt": row.created_at,
        "expiresAt": row.expires_at,
        "lastUsedAt": row.last_used_at,
        "revokedAt": row.revoked_at,
    }


def new_as_wire(issued: Issued) -> dict[str, Any]:
    """A new token in wire form, with the token itself, which is shown once."""
    return as_wire(issued.row) | {"token": issued.token}


def _page(
    transaction: Transaction,
    conditions: list[ColumnElement[bool]],
    query: OwnPageQuery,
    *,
    active_only: bool,
    of: str | None = None,
) -> dict[str, Any]:
    if active_only:
        is_unexpired = or_(_TOKEN.c.expires_at.is_(None), _TOKEN.c.expires_at > now())
        conditions = [*conditions, _TOKEN.c.revoked_at.is_(None), is_unexpired]
    statement: Select[Any] = select(*SHOWN).where(*conditions)
    found = fetch_page(transaction, statement, [_TOKEN.c.created_at.desc(), _TOKEN.c.id.desc()], query)
    return envelope([as_wire(row, of) for row in found.rows], found, query)


def _is_own(user_id: str, narrowed_to: str | None) -> ColumnElement[bool]:
    is_seen = true() if narrowed_to is None else _TOKEN.c.organization_id == narrowed_to
    return and_(_TOKEN.c.user_id == user_id, is_seen)


def _own(transaction: Transaction, user_id: str, narrowed_to: str | None, token_id: str) -> Any:
    row = transaction.row(_ONE.where(_is_own(user_id, narrowed_to)), {"token": token_id})
    if row is None:
        raise NotFound
    return row


def _require_scope(caller: Caller, wanted: TokenWanted) -> None:
    if not scope_suffices(caller.scope, "admin" if wanted.scope == SCIM else wanted.scope):
        raise Forbidden(f"A token of the scope {caller.scope} makes none of the scope {wanted.scope}.")


def _expiry(unit: UnitOfWork, wanted: TokenWanted) -> str | None:
    """When the token expires. Raises FaultyInput."""
    sent_fields: AbstractSet[str] = wanted.model_fields_set
    if "expires_at" not in sent_fields:
        return later(unit.moment, USUAL)
    if wanted.expires_at is None:
        return None
    if wanted.expires_at <= unit.moment:
        raise FaultyInput([Fault("body", "/expiresAt", "must be in the future")])
    if wanted.expires_at > later(unit.moment, LONGEST):
        raise FaultyInput([Fault("body", "/expiresAt", "must be at most 366 days from now, or null for never")])
    return wanted.expires_at


_TOKEN, _MEMBER, _USER = sql_table(AccessToken), sql_table(Membership), sql_table(User)
_ONE = select(*SHOWN).where(_TOKEN.c.id == bindparam("token"))
# Those of some organizations that a token reaches.
_REACHED = (
    select(_TOKEN.c.organization_id, _MEMBER.c.organization_id.label("reached_id"))
    .join(_MEMBER, _MEMBER.c.user_id == _TOKEN.c.user_id)
    .where(
        _TOKEN.c.id == bindparam("token"),
        _MEMBER.c.organization_id.in_(bindparam("organizations", expanding=True)),
        or_(
            _TOKEN.c.organization_id == _MEMBER.c.organization_id,
            and_(_TOKEN.c.organization_id.is_(None), _MEMBER.c.removed_at.is_(None)),
        ),
    )
    .order_by(_MEMBER.c.organization_id)
)
_ACCOUNT = select(_USER.c.organization_id, _USER.c.removed_at).where(_USER.c.id == bindparam("user"))
