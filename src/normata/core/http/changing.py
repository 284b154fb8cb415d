"""How a request to change something is answered: one way for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel, ValidationError
from starlette.datastructures import QueryParams
from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope, Send

from normata.core.changes.idempotency import KEY_WRITES, Answer, KeyedRequest, answered_once
from normata.core.changes.source import FaultyInput
from normata.core.changes.unit_of_work import Actor, UnitOfWork
from normata.core.db.transaction import ConstraintViolation, TenantScope
from normata.core.http.authentication import authenticate
from normata.core.http.caller import Caller
from normata.core.http.context import RequestContext, context_of
from normata.core.http.idempotency import InvalidKey, key_of, keyed
from normata.core.http.negotiation import Headers, entity_tag, matches_any
from normata.core.http.operation import ChangeOperation, Given
from normata.core.http.problems import FieldFault, InvalidRequest, PreconditionFailed, UnsupportedMediaType
from normata.core.http.rehearsing import asks_for_dry_run, is_dry_run, told
from normata.core.http.responses import EncodedJson, encode
from normata.core.http.routing import path_id
from normata.core.http.services import Services
from normata.core.schema.table import new_id
from normata.errors import RoleTooSmall
from normata.identity.operators import require_operator
from normata.notifications.model import Notification


class ChangeEndpoint:
    """Answers one operation that changes something, as an ASGI application."""

    def __init__(self, operation: ChangeOperation, services: Services) -> None:
        self._operation = operation
        self._services = services

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request. Raises what the operation declares."""
        operation = self._operation
        context = context_of(scope)
        is_trial = asks_for_dry_run(scope)
        # A dry run does nothing: not even when the token was last used is noted.
        caller = await authenticate(self._services, scope, scope=operation.scope, is_use=not is_trial)
        # Read once the caller is known: nobody else is told what is wrong with a query or a body.
        context.body_limit = operation.body_limit
        request = Request(scope, receive)
        key, given = await self._given(scope, request)
        if_match = context.headers.get(b"if-match")
        if operation.is_conditional and if_match is not None:
            given = given._replace(require_current=partial(require_current, if_match))
        keyed_request = None
        if key is not None:
            body = await request.body() if operation.takes_body else b""
            keyed_request = keyed(operation, scope, body, user_id=caller.user_id, key=key)
        answer = await self.carry_out(caller, given, scope, key=keyed_request, is_trial=is_trial)
        await EncodedJson(answer.body, answer.status, answer.headers)(scope, receive, send)

    async def carry_out(
        self, caller: Caller, given: Given, scope: Scope, *, key: KeyedRequest | None = None, is_trial: bool = False
    ) -> Answer:
        """Make the change that a request asks for, or try it, and return the answer to it.

        The caller is known, and whatever the request has brought along has been read, be it from JSON or from a form.
        Raises what the operation declares.
        """
        operation, context = self._operation, context_of(scope)
        given = given._replace(caller=caller, public_url=self._services.public_url)
        reach = caller.reach(operation.own_role or operation.role)
        if operation.authority != "organization":
            made = (new_id(),) if operation.authority == "operator" else ()
            given = given._replace(new_organization=made[0] if made else "")
            reach = caller.own_reach(*made)
        if operation.changes_catalogs:
            reach = replace(reach, catalogs=True)
        address = (scope.get("client") or ("",))[0]
        actor = Actor(caller.user_id, caller.user_name, caller.token_id or None, context.request_id, address)

        done: list[tuple[Any, Any]] = []

        def work(unit: UnitOfWork) -> Answer:
            if operation.authority == "operator":
                require_operator(unit, caller)
            result = operation.work(unit, given)
            content = operation.present(result)
            done[:] = [(result, content)]  # it may be run twice
            # Made within the unit of work: what cannot be answered is not kept.
            return self._answer(content, context)

        try:
            if is_trial:
                answer = await self._rehearse(work, actor, reach)
            elif key is None:
                answer = await self._services.changes.make(
                    work, actor=actor, scope=reach, writes=operation.writes, is_long=operation.is_long
                )
            else:
                answer = await self._make_once(key, work, actor, reach)
        except FaultyInput as error:
            raise InvalidRequest.of_input(error) from None
        except ConstraintViolation:
            if not operation.changes_catalogs:
                raise
            # It has happened twice, so it was no race: an id is one of an organization's own, which nobody else sees.
            fault = FieldFault(in_="body", name="", code="invalid", message="has an id that is taken", allowed=None)
            raise InvalidRequest.of([fault]) from None
        except RoleTooSmall:
            raise RoleTooSmall(f"This takes the role {operation.role} or a larger one in the organization.") from None
        if operation.afterwards is not None and done and not is_trial:
            answer = self._answer(await operation.afterwards(self._services, *done[0]), context)
        return answer

    def _answer(self, content: Any, context: RequestContext) -> Answer:
        body = encode(content)
        headers = {"ETag": entity_tag(body, "identity").decode()} if self._operation.is_tagged else {}
        if self._operation.answers_secret:
            headers["Cache-Control"] = "no-store"
        if self._operation.creates:
            above = f"{context.prefix}{self._operation.made_at}" if self._operation.made_at else context.instance
            headers["Location"] = f"{above.rstrip('/')}/{quote(content['id'], safe='')}/"
        return Answer(self._operation.success, headers, body)

    async def _rehearse(self, work: Callable[[UnitOfWork], Answer], actor: Actor, reach: TenantScope) -> Answer:
        """What ``work`` would do. It is no state of anything, so it has no entity tag."""
        rehearsed = await self._services.changes.rehearse(
            work,
            actor=actor,
            scope=reach,
            writes=self._operation.writes,
            watched=Notification,
            is_long=self._operation.is_long,
        )
        # An operator's change may reach more than the operator may see.
        known = {None, *reach.readable} if self._operation.authority == "operator" else None
        return Answer(200, {}, told(rehearsed, known))

    async def _make_once(
        self, request: KeyedRequest, work: Callable[[UnitOfWork], Answer], actor: Actor, reach: TenantScope
    ) -> Answer:
        """What ``work`` answers, or has answered before. Raises what :func:`answered_once` raises."""
        with self._services.under_way.begin(request):
            return await self._services.changes.make(
                lambda unit: answered_once(unit, request, work, keep=not self._operation.answers_secret),
                actor=actor,
                scope=reach,
                writes=(*self._operation.writes, *KEY_WRITES),
                is_long=self._operation.is_long,
            )

    async def _given(self, scope: Scope, request: Request) -> tuple[str | None, Given]:
        """The key of the request, and what else it brings along; all faults are told at once.

        Raises InvalidRequest, and what :meth:`_body` raises.
        """
        key = query = None
        faults: list[FieldFault] = []
        try:
            is_dry_run(scope)
        except ValidationError as error:
            faults += InvalidRequest.of_validation("query", error).faults
        if self._operation.takes_key:
            try:
                key = key_of(scope)
            except InvalidKey as error:
                faults.append(error.fault)
        if self._operation.query is not None:
            try:
                query = self._operation.query.read(QueryParams(scope["query_string"]).multi_items())
            except ValidationError as error:
                faults += InvalidRequest.of_validation("query", error).faults
        try:
            body = await self._body(context_of(scope).headers, request, query)
        except InvalidRequest as error:
            raise InvalidRequest.of([*faults, *error.faults]) from None
        if faults:
            raise InvalidRequest.of(faults)
        return key, Given(path_id(scope), body, query, prefix=context_of(scope).prefix)

    async def _body(self, headers: Headers, request: Request, query: BaseModel | None) -> Any:
        """The body as its model, or as its format reads it; null where the operation has none, or it is absent.

        Raises TooLarge, UnsupportedMediaType and InvalidRequest.
        """
        operation = self._operation
        if not operation.takes_body:
            return None
        try:
            body = await request.body()
        except ClientDisconnect:  # the client has gone, or what it sent is no HTTP
            fault = FieldFault(
                in_="body", name="", code="incomplete", message="ended before it was complete", allowed=None
            )
            raise InvalidRequest.of([fault]) from None
        if not body and not operation.body_required:
            return None
        media_type = headers.get(b"content-type", b"").partition(b";")[0].strip().lower().decode("latin-1")
        if operation.body_formats:
            if media_type not in operation.body_formats:
                known = ", ".join(operation.body_formats)
                raise UnsupportedMediaType(f"The body must be one of these, by its Content-Type: {known}.")
            # Where the query is wrong, that is told alone: how the body is read depends on it.
            missing = operation.query is not None and query is None
            return None if missing else await asyncio.to_thread(operation.body_formats[media_type].read, body, query)
        if media_type not in operation.body_types:
            raise UnsupportedMediaType
        assert operation.body is not None  # noqa: S101 - narrows the type
        try:
            return operation.body.model_validate_json(body)
        except ValidationError as error:
            raise InvalidRequest.of_validation("body", error) from None


def require_current(if_match: bytes, answer: Any) -> None:
    """Raise PreconditionFailed unless ``answer`` is in a state that ``if_match`` names."""
    if not matches_any(if_match, encode(answer)):
        raise PreconditionFailed


def as_null(_result: Any) -> None:
    """Present whatever a change returns as JSON's null."""
