"""Authentication: finds the caller by the Authorization header (RFC 6750)."""

from __future__ import annotations

import asyncio
import re

from starlette.types import Scope

from normata.core.http.caller import Caller
from normata.core.http.context import context_of
from normata.core.http.negotiation import Headers, best_media_type
from normata.core.http.problems import InsufficientScope, NotAcceptable, TooManyRequests, Unauthenticated
from normata.core.http.rate_limit import network_of
from normata.core.http.roles import TokenScope, scope_suffices
from normata.core.http.services import Services

_REALM = 'Bearer realm="normata"'
_DELAY = 1.0  # seconds until an address with too many bad tokens gets its answer
_TOO_MANY_BAD_TOKENS = "This address has sent too many bad tokens for now; wait as Retry-After says."
_CREDENTIALS = re.compile(r"bearer +(\S+)", re.IGNORECASE)


async def authenticate(
    services: Services,
    request: Scope,
    *,
    scope: TokenScope,
    organization_id: str | None = None,
    list_name: str | None = None,
    media_types: tuple[str, ...] = ("application/json",),
    is_use: bool = True,
) -> Caller:
    """The caller of a request that needs a token of ``scope``; also stored in the request's context, for the log.

    ``organization_id`` is the one of the request, null if not known yet; ``list_name`` the requested cached list.
    ``media_types`` are those of possible answers; without any, because the request names the format, ``Accept`` does
    not matter. ``is_use`` is true if the use of the token is noted. Raises Unauthenticated, InsufficientScope (RFC
    6750, section 3), NotAcceptable and TooManyRequests. It reads only headers: faults of the rest of a request are
    reported only to a caller with a valid token.
    """
    context = context_of(request)
    headers = context.headers
    try:
        caller = await _caller(services, headers, organization_id, list_name, is_use=is_use)
    except Unauthenticated:
        address = network_of((request.get("client") or ("",))[0])
        wait = services.bad_tokens_by_address.seconds_to_wait(address, context.response_headers)
        if wait:
            # Requests with a good token from the same address are not delayed: they never get here.
            await asyncio.sleep(_DELAY)
            raise TooManyRequests(_TOO_MANY_BAD_TOKENS, wait=wait, reason="bad_tokens") from None
        raise
    context.caller = caller
    wait = services.requests_by_token.seconds_to_wait(caller.token_id, context.response_headers)
    if wait:
        raise TooManyRequests(wait=wait)
    if media_types and best_media_type(headers.get(b"accept", b""), media_types) is None:
        raise NotAcceptable
    if not scope_suffices(caller.scope, scope):
        raise InsufficientScope(
            f"The token has the scope {caller.scope}; this needs the scope {scope}.",
            headers={"WWW-Authenticate": f'{_REALM}, error="insufficient_scope", scope="{scope}"'},
        )
    return caller


async def _caller(
    services: Services, headers: Headers, organization_id: str | None, list_name: str | None, *, is_use: bool
) -> Caller:
    """The caller of the token in the headers. Raises Unauthenticated."""
    token = _bearer_token(services, headers)
    caller = await services.authenticator.caller(token, organization_id, list_name, is_use=is_use)
    if caller is None:
        raise _challenge("the token is unknown, expired or revoked")
    return caller


def _bearer_token(services: Services, headers: Headers) -> str:
    sent = headers.get(b"authorization", b"").decode("latin-1").strip()
    match = _CREDENTIALS.fullmatch(sent)
    if match is not None and services.authenticator.is_well_formed(match[1]):
        return match[1]
    if not sent.lower().startswith("bearer"):
        # RFC 6750, section 3.1: no error code without credentials, or with those of another scheme.
        raise Unauthenticated(headers={"WWW-Authenticate": _REALM})
    raise _challenge("the token is malformed")


def _challenge(reason: str) -> Unauthenticated:
    return Unauthenticated(
        headers={"WWW-Authenticate": f'{_REALM}, error="invalid_token", error_description="{reason}"'}
    )
