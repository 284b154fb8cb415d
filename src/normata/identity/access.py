"""Who is asking, and what they may do."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from starlette.datastructures import State

from normata.database import Database, now
from normata.errors import Forbidden, NotAcceptable, TooManyRequests, Unauthenticated
from normata.identity.tokens import digest, is_well_formed
from normata.negotiation import Headers, accepts_json

_REALM = 'Bearer realm="normata"'
_CREDENTIALS = re.compile(r"bearer +(\S+)", re.IGNORECASE)


class Caller(NamedTuple):
    """The user whom a token acts as, and the token's limits.

    ``organizations`` are those that the user is a member of: all, or, where one was asked for, no other.
    ``revision`` is that of the one that was asked for; empty where none was, or the user is no member.
    """

    user_id: str
    user_name: str
    token_id: str
    scope: str
    organizations: tuple[str, ...]
    revision: str


async def authenticate(
    state: State, request_state: dict[str, Any], headers: Headers, organization_id: str | None = None
) -> Caller:
    """The caller of a request to the application whose ``state`` this is; the log finds it in ``request_state``.

    Raises Unauthenticated (RFC 6750, section 3), NotAcceptable and TooManyRequests. It reads nothing but headers: what
    is wrong with the rest of a request is told to those only who have a token.
    """
    token = _bearer_token(headers)
    database: Database = state.database
    admissions = await database.admit(digest(token), organization_id)
    moment = now()
    if not admissions or (admissions[0].expires_at is not None and admissions[0].expires_at <= moment):
        raise _challenge("the token is unknown, expired or revoked")
    first = admissions[0]
    caller = Caller(
        first.user_id,
        first.user_name,
        first.token_id,
        first.scope,
        tuple(admission.organization_id for admission in admissions if admission.organization_id is not None),
        first.revision or "",
    )
    request_state["caller"] = caller
    state.last_use.note(first.token_id, first.last_used_at, moment)
    wait = state.rate_limit.seconds_to_wait(first.token_id)
    if wait:
        raise TooManyRequests(headers={"Retry-After": str(wait)})
    if not accepts_json(headers.get(b"accept", b"")):
        raise NotAcceptable
    return caller


def require_write(caller: Caller) -> None:
    """Raise Forbidden, with RFC 6750's challenge, unless the caller's token has the scope ``write``."""
    if caller.scope != "write":
        raise Forbidden(
            "The token has the scope read; this needs the scope write.",
            headers={"WWW-Authenticate": f'{_REALM}, error="insufficient_scope", scope="write"'},
        )


def _bearer_token(headers: Headers) -> str:
    sent = headers.get(b"authorization", b"").decode("latin-1").strip()
    match = _CREDENTIALS.fullmatch(sent)
    if match is not None and is_well_formed(match[1]):
        return match[1]
    if not sent.lower().startswith("bearer"):
        # RFC 6750, section 3.1: who sends no credentials, or those of another scheme, is told of no error.
        raise Unauthenticated(headers={"WWW-Authenticate": _REALM})
    raise _challenge("the token is malformed")


def _challenge(reason: str) -> Unauthenticated:
    return Unauthenticated(
        headers={"WWW-Authenticate": f'{_REALM}, error="invalid_token", error_description="{reason}"'}
    )
