"""SCIM 2.0 at ``/scim/v2/``: an identity provider maintains the people of an organization (RFC 7643, RFC 7644).

It is a protocol of its own, with its own forms of resources and errors, and so none of the operations. Each request is
one transaction, with the rights of the token's user in the one organization that the token is narrowed to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any
from urllib.parse import unquote

import orjson
from starlette.datastructures import QueryParams
from starlette.requests import ClientDisconnect, Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from normata.core.changes.unit_of_work import Actor, UnitOfWork
from normata.core.db.transaction import NO_ORGANIZATION, ConstraintViolation, TenantScope
from normata.core.db.types import now
from normata.core.http.authentication import authenticate
from normata.core.http.caller import Caller
from normata.core.http.context import address_of, context_of
from normata.core.http.problems import InvalidRequest, error_type_of, headers_of
from normata.core.http.responses import EncodedJson
from normata.core.http.roles import SCIM, role_suffices
from normata.core.http.services import Services
from normata.core.schema.table import new_id
from normata.errors import InsufficientRole, NotFound, Unavailable
from normata.identity.openid.configuration import Configuration, single_sign_on
from normata.identity.openid.groups import mapping_of
from normata.identity.provisioning.groups import GROUP_WRITES
from normata.identity.provisioning.people import ALONE_LOOKUP, PEOPLE_WRITES, Provider, RelianceUnknown
from normata.settings import Settings

PATH = "/scim/v2/"
MOST_BYTES = 2**20  # of a body: a group with more than 10,000 members
PROVISIONING_WRITES = (*PEOPLE_WRITES, *GROUP_WRITES)
_COLLECTIONS = ("Users", "Groups", "Schemas", "ResourceTypes", "ServiceProviderConfig")
_MEDIA_TYPE = "application/scim+json"


def scim_routes(services: Services, settings: Settings) -> Iterator[Route]:
    """The route of everything below :data:`PATH`."""
    yield Route(f"{PATH}{{rest:path}}", ScimEndpoint(services, settings.public_url, single_sign_on(settings)))


@dataclass(frozen=True, slots=True)
class _Call:
    """A request of a caller about the organization that their token is narrowed to."""

    request: Any
    caller: Caller
    organization_id: str
    actor: Actor


class ScimEndpoint:
    """The ASGI application of SCIM."""

    def __init__(self, services: Services, public_url: str, configuration: Configuration | None) -> None:
        self._services = services
        self._base_url = public_url.rstrip("/") + PATH.rstrip("/")
        self._grants = () if configuration is None else configuration.grants

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, a refusal in the form of SCIM."""
        context = context_of(scope)
        steps = [unquote(step) for step in scope["path_params"]["rest"].split("/") if step]
        known = f"{steps[0]}/" if steps and steps[0] in _COLLECTIONS else ""
        context.route = PATH + known + ("{id}/" if known and len(steps) > 1 else "")
        # Importing it takes half a second, during which others are answered.
        protocol: Any = await asyncio.to_thread(import_module, "normata.scim.protocol")
        try:
            answer = await self._answer(protocol, await self._call(protocol, scope, receive, steps))
        except protocol.SCIMException as error:
            answer = protocol.refusal_of(error)
        except Exception as error:
            refusal = _refusal_of(error)
            if refusal is None:
                raise
            answer = protocol.refusal(*refusal)
        context.problem = "scim" if answer.status >= 400 else None
        headers = {"Content-Type": _MEDIA_TYPE, "Cache-Control": "private, no-store"} | answer.headers
        body = b"" if answer.body is None else orjson.dumps(answer.body)
        await EncodedJson(body, int(answer.status), headers)(scope, receive, send)

    async def _call(self, protocol: Any, scope: Scope, receive: Receive, steps: Sequence[str]) -> _Call:
        """Read a request. Raises NotFound, InsufficientRole, InvalidRequest, and as ``authenticate`` does."""
        context = context_of(scope)
        caller = await authenticate(self._services, scope, scope=SCIM, media_types=())
        context.body_limit = MOST_BYTES
        organization_id = context.organization_id = caller.narrowed_to or ""
        if not role_suffices(caller.roles.get(organization_id, "viewer"), "admin"):
            raise InsufficientRole("The user of this token is no admin of its organization.")
        if any("\0" in step for step in steps):
            raise NotFound  # PostgreSQL cannot store a null character
        request = protocol.ScimRequest(
            method="GET" if scope["method"] == "HEAD" else scope["method"],
            base_url=self._base_url,
            path="/".join(steps),
            query=dict(QueryParams(scope["query_string"])),
            headers=[(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]],
            body=await _body(scope, receive),
        )
        actor = Actor(caller.user_id, caller.user_name, caller.token_id, context.request_id, address_of(scope))
        return _Call(request, caller, organization_id, actor)

    async def _answer(self, protocol: Any, call: _Call) -> Any:
        """The answer to a request. Raises SCIMException and Unavailable."""
        if call.request.method == "GET" or call.request.path.endswith(".search"):
            moment, provider = now(), Provider(call.organization_id)
            return await self._services.database.read(
                lambda transaction: protocol.answer(transaction, provider, moment, call.request),
                TenantScope(readable=(call.organization_id,)),
                is_long=True,  # the resources of a large group take a second to check and write out
            )
        is_alone: dict[str, bool] = {}
        while True:
            try:
                return await self._change(protocol, call, is_alone)
            except RelianceUnknown as unknown:  # a request is about one account
                found = await self._services.database.look_up(ALONE_LOOKUP, unknown.user_id, call.organization_id)
                is_alone[unknown.user_id] = bool(found)
            except ConstraintViolation:
                raise protocol.in_use() from None

    async def _change(self, protocol: Any, call: _Call, is_alone: Mapping[str, bool]) -> Any:
        """The answer to a request that changes something, once that is durable."""
        organization_id, new_user = call.organization_id, new_id()
        # Of other accounts it changes those on which nobody else relies.
        users = (call.caller.user_id, new_user, *(user_id for user_id, alone in is_alone.items() if alone))

        def work(unit: UnitOfWork) -> Any:
            roles = mapping_of(unit, organization_id, self._grants)
            return protocol.answer(
                unit, Provider(organization_id, new_user, roles, is_alone), unit.moment, call.request
            )

        return await self._services.changes.make(
            work,
            actor=call.actor,
            scope=TenantScope(readable=(organization_id,), writable=(NO_ORGANIZATION, organization_id), users=users),
            writes=PROVISIONING_WRITES,
            is_long=True,
        )


async def _body(scope: Scope, receive: Receive) -> bytes:
    try:
        return await Request(scope, receive).body()
    except ClientDisconnect:
        raise InvalidRequest("The body has ended before it was complete.") from None


def _refusal_of(error: Exception) -> tuple[int, str, Mapping[str, str]] | None:
    """The status, detail and headers of an error of HTTP or of the database; null if it is a bug."""
    if isinstance(error, Unavailable):
        return 503, "The database cannot be reached right now, or not in time. Retry soon.", {"Retry-After": "1"}
    error_type = error_type_of(error)
    return None if error_type is None else (error_type.status, str(error), headers_of(error))
