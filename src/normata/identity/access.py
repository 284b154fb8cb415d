"""Who is asking, and what they may do."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request
from sqlalchemy import Connection, select

from normata.database import Database, Sight, now
from normata.errors import Forbidden, NotAcceptable, NotFound, TooManyRequests, Unauthenticated
from normata.identity.model import AccessToken, Membership, User
from normata.identity.tokens import digest, is_well_formed

_REALM = 'Bearer realm="normata"'


@dataclass(frozen=True, slots=True)
class Caller:
    """The user whom a token acts as, with the organizations that the user is a member of, and the token's limits."""

    user_id: str
    user_name: str
    token_id: str
    scope: str
    last_used_at: str | None
    organizations: tuple[str, ...]


async def authenticated(request: Request) -> Caller:
    """The caller of a request. Raises Unauthenticated (RFC 6750, section 3), NotAcceptable and TooManyRequests.

    It reads nothing but headers: what is wrong with the rest of a request is told to those only who have a token.
    """
    token = _bearer_token(request)
    database: Database = request.app.state.database
    digested = digest(token)
    caller = await database.read(lambda connection: _owner(connection, digested), Sight(token=digested))
    if caller is None:
        raise _challenge("the token is unknown, expired or revoked")
    request.state.caller = caller
    request.app.state.last_use.note(caller.token_id, caller.last_used_at)
    wait = request.app.state.rate_limit.seconds_to_wait(caller.token_id)
    if wait:
        raise TooManyRequests(headers={"Retry-After": str(wait)})
    if not _accepts_json(request.headers.getlist("accept")):
        raise NotAcceptable
    return caller


CurrentCaller = Annotated[Caller, Depends(authenticated)]


async def authenticated_writer(caller: CurrentCaller) -> Caller:
    """The caller, whose token must have the scope ``write``. Raises Forbidden with RFC 6750's challenge."""
    if caller.scope != "write":
        raise Forbidden(
            "The token has the scope read; this needs the scope write.",
            headers={"WWW-Authenticate": f'{_REALM}, error="insufficient_scope", scope="write"'},
        )
    return caller


CurrentWriter = Annotated[Caller, Depends(authenticated_writer)]


def member_sight(caller: Caller, organization_id: str) -> Sight:
    """What the caller may see of an organization.

    Raises NotFound unless the caller is a member: an organization that is not there looks the same.
    """
    if organization_id not in caller.organizations:
        raise NotFound
    return Sight((organization_id,))


def _bearer_token(request: Request) -> str:
    headers = request.headers.getlist("authorization")
    if not headers:
        # RFC 6750, section 3.1: a request without any credentials is told of no error.
        raise Unauthenticated(headers={"WWW-Authenticate": _REALM})
    if len(headers) == 1 and not headers[0].lower().startswith("bearer"):
        raise Unauthenticated(headers={"WWW-Authenticate": _REALM})  # nor is one with another scheme
    match = re.fullmatch(r"bearer +(\S+)", headers[0].strip(), re.IGNORECASE)
    if len(headers) > 1 or match is None or not is_well_formed(match[1]):
        raise _challenge("the token is malformed")
    return match[1]


def _challenge(reason: str) -> Unauthenticated:
    return Unauthenticated(
        headers={"WWW-Authenticate": f'{_REALM}, error="invalid_token", error_description="{reason}"'}
    )


def _owner(connection: Connection, digested: str) -> Caller | None:
    """The user of a token that is good now, in one statement: a row for each membership, or one without any."""
    rows = connection.execute(
        select(
            AccessToken.user_id,
            User.name,
            AccessToken.id,
            AccessToken.scope,
            AccessToken.last_used_at,
            AccessToken.expires_at,
            Membership.organization_id,
        )
        .join(User, User.id == AccessToken.user_id)
        .outerjoin(Membership, Membership.user_id == AccessToken.user_id)
        .where(AccessToken.digest == digested, AccessToken.revoked_at.is_(None))
        .order_by(Membership.organization_id)
    ).all()
    if not rows or (rows[0].expires_at is not None and rows[0].expires_at <= now()):
        return None
    user_id, user_name, token_id, scope, last_used_at, _, _ = rows[0]
    organizations = tuple(row.organization_id for row in rows if row.organization_id is not None)
    return Caller(user_id, user_name, token_id, scope, last_used_at, organizations)


def _accepts_json(accept: list[str]) -> bool:
    """Whether application/json is acceptable (RFC 9110, section 12.5.1): the most specific range decides."""
    ranges = [_media_range(part) for part in ",".join(accept).split(",") if part.strip()]
    if not ranges:
        return True
    for wanted in ("application/json", "application/*", "*/*"):
        weights = [weight for media_type, weight in ranges if media_type == wanted]
        if weights:
            return max(weights) > 0
    return False


def _media_range(part: str) -> tuple[str, float]:
    media_type, *parameters = (piece.strip().lower() for piece in part.split(";"))
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return media_type, float(value)
            except ValueError:
                return media_type, 1.0
    return media_type, 1.0
