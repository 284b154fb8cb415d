"""The endpoint of changes, the same for all of them.

A request goes through these stages, in this order: authentication, input (query, key, body; all faults at once), reach
(the tenant scope), then the change, as a dry run, once for its key, or plainly, and its actions outside of the
database. The console starts at the reach, because it already has a caller and the input.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    ExitStack,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

from pydantic import BaseModel, ValidationError
from starlette.datastructures import QueryParams
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.types import Receive, Scope, Send

from normata.core.changes.idempotency import KEY_WRITES, Answer, KeyedRequest, once
from normata.core.changes.source import FaultyInput
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.transaction import ConstraintViolation, TenantScope
from normata.core.db.types import now
from normata.core.http import file_form
from normata.core.http.authentication import authenticate
from normata.core.http.body_stream import Arriving, arriving
from normata.core.http.context import address_of, context_of, path_id
from normata.core.http.dry_run import parse_dry_run
from normata.core.http.idempotency_key import InvalidKey, key_of, keyed
from normata.core.http.long_dry_runs import (
    DryRunOf,
    Respond,
    UnreadBody,
    answer_of,
    execute,
    organization_of,
    preview_of,
    with_body,
    with_plan,
)
from normata.core.http.negotiation import Headers, entity_tag
from normata.core.http.operation import ChangeOperation
from normata.core.http.problems import FieldFault, InvalidRequest, UnsupportedMediaType
from normata.core.http.query_names import QueryNames
from normata.core.http.request import Request
from normata.core.http.responses import EncodedJson
from normata.core.http.services import Services
from normata.core.schema.table import new_id
from normata.errors import DomainError, InsufficientRole

T = TypeVar("T")

Pairs = list[tuple[str, str]]  # names and values


class ChangeEndpoint:
    """The ASGI application of one operation that changes something."""

    def __init__(self, operation: ChangeOperation, services: Services) -> None:
        self._operation = operation
        self._services = services
        self._names = QueryNames(operation)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request. Raises what the operation declares."""
        operation, services, context = self._operation, self._services, context_of(scope)
        pairs = QueryParams(scope["query_string"]).multi_items() if scope["query_string"] else []
        dry_run, faults = parse_dry_run(pairs)
        # A dry run changes nothing, not even when the token was last used.
        caller = await authenticate(services, scope, scope=operation.scope, is_use=not dry_run)
        # After authentication, so that nobody else learns what is wrong with a query or body.
        stream = operation.body_stream
        context.body_limit = operation.body_limit if stream is None else stream.limit(services.means)
        faults += self._names.faults(self._names.refused(self._names.undeclared(pairs), context))
        entered = await _read_input(operation, scope, receive, pairs, faults)
        request = Request(
            caller=caller,
            means=services.means,
            time=now(),
            request_id=context.request_id,
            address=address_of(scope),
            prefix=context.prefix,
            instance=context.instance,
            id=path_id(scope),
            query=entered.query,
            body=entered.body,
            if_match=context.headers.get(b"if-match") if operation.is_conditional else None,
            dry_run=dry_run,
        )
        async with AsyncExitStack() as stack:
            sent = entered.sent
            if stream is not None:
                body = arriving(scope, receive)
                request = await stack.enter_async_context(received(operation, services, request, body))
                sent = body.media_type.encode("latin-1"), request.body.sha256.encode()
            key = None
            if entered.key is not None:
                key = keyed(operation, scope, *sent, user_id=caller.user_id, key=entered.key)
            answer = await change(operation, services, request, respond_http, key=key)
        await EncodedJson(answer.body, answer.status, answer.headers)(scope, receive, send)


async def change(
    operation: ChangeOperation,
    services: Services,
    request: Request,
    respond: Respond,
    *,
    key: KeyedRequest | None = None,
) -> Answer:
    """Make the change of a request, or preview it, and return the answer.

    ``respond`` makes the answer from the presented result, in the transaction, so that nothing is stored if it fails.
    With a ``key`` the change is made once, however often it is requested. Raises what the operation declares.
    """
    request, reach = _reach(operation, request)
    if not request.dry_run:
        request = await with_body(operation, request)

    def work(unit: UnitOfWork) -> Answer:
        return answer_of(operation, services, unit, request, respond)

    async with _alone(operation, services, request, reach):
        if request.dry_run:
            async with _dry_run_turn(operation, services, request, reach):
                return await preview_of(DryRunOf(operation, request, reach, respond), services, services.processes)
        try:
            request = await with_plan(operation, services, request, reach)
        except DomainError:
            if key is None:
                raise  # else the answer to the same request may be stored; if not, the change raises it
        if key is None:
            answer = await services.changes.make(
                work, actor=request.actor, scope=reach, writes=operation.writes, is_long=operation.is_long
            )
        else:
            with services.in_progress.begin(key):
                answer = await services.changes.make(
                    lambda unit: once(unit, key, work, store=not operation.answers_secret),
                    actor=request.actor,
                    scope=reach,
                    writes=(*operation.writes, *KEY_WRITES),
                    is_long=operation.is_long,
                )
    if operation.afterwards is not None and not answer.is_stored:
        answer = respond(operation, request, await operation.afterwards(request, answer.result, answer.content))
    return answer


async def preview(
    operation: ChangeOperation, services: Services, request: Request, look: Callable[[UnitOfWork, Any], T]
) -> tuple[T, Mapping[str, Any]]:
    """What ``look`` sees once the change is made, from the transaction and what the change presents; and its effects.

    Nothing is stored. Raises what the operation declares.
    """
    request, reach = _reach(operation, request)
    async with _alone(operation, services, request, reach), _dry_run_turn(operation, services, request, reach):
        prepared = await with_plan(operation, services, request, reach)
        planned = await services.changes.dry_run(
            lambda unit: look(unit, execute(operation, services, unit, prepared)[1]),
            actor=request.actor,
            scope=reach,
            writes=operation.writes,
            is_long=True,
        )
    return planned.result, planned.effects


def respond_http(operation: ChangeOperation, request: Request, content: Any) -> Answer:
    """The answer over HTTP, with an entity tag and a location if the operation has them."""
    answer = Answer(operation.success, {}, content)
    tag = entity_tag(answer.body, "identity")  # encode it before the change is stored
    if operation.is_tagged:
        answer.headers["ETag"] = tag.decode()
    if operation.answers_secret:
        answer.headers["Cache-Control"] = "no-store"
    if operation.creates:
        above = f"{request.prefix}{operation.made_at}" if operation.made_at else request.instance
        answer.headers["Location"] = f"{above.rstrip('/')}/{quote(content['id'], safe='')}/"
    return answer


def _reach(operation: ChangeOperation, request: Request) -> tuple[Request, TenantScope]:
    """The request, with the id of an organization that an operator may create, and the tenant scope of its caller."""
    reach = request.caller.reach(operation.admits_own)
    if operation.authority != "organization":
        made = (new_id(),) if operation.authority == "operator" else ()
        request = replace(request, new_organization=made[0] if made else "")
        reach = request.caller.own_reach(*made)
    return request, replace(reach, catalogs=True) if operation.changes_catalogs else reach


@asynccontextmanager
async def _alone(
    operation: ChangeOperation, services: Services, request: Request, reach: TenantScope
) -> AsyncIterator[None]:
    """Refuse other exclusive requests of the operation while a block runs, and raise HTTP errors."""
    with _http_errors(operation), ExitStack() as stack:
        exclusive = operation.exclusive
        if exclusive is not None:
            name = await services.database.read(lambda transaction: exclusive(transaction, request), reach)
            stack.enter_context(services.exclusive.hold(name))
        yield


@contextmanager
def _http_errors(operation: ChangeOperation) -> Iterator[None]:
    """Translate errors of features to HTTP errors."""
    try:
        yield
    except FaultyInput as error:
        raise InvalidRequest.of_input(error) from None
    except ConstraintViolation:
        if not operation.changes_catalogs:
            raise
        # The second collision is no race: the id belongs to another organization, where the caller cannot see it.
        fault = FieldFault(in_="body", name="", code="invalid", message="has an id that is taken", allowed=None)
        raise InvalidRequest.of([fault]) from None
    except InsufficientRole:
        raise InsufficientRole(f"This takes the role {operation.role} or a larger one in the organization.") from None


@asynccontextmanager
async def received(
    operation: ChangeOperation, services: Services, request: Request, body: Arriving
) -> AsyncIterator[Request]:
    """The request with a body that arrives, once that is admitted and received. It is left once the change is made.

    Raises what the operation declares.
    """
    stream = operation.body_stream
    assert stream is not None  # noqa: S101 - narrows the type
    admit = stream.admit
    reaching, reach = _reach(operation, request)
    with _http_errors(operation):
        admitted = await services.changes.plan(
            lambda unit: admit(unit, reaching, body), actor=request.actor, scope=reach
        )
    async with stream.receive(request, body, admitted) as found:
        yield replace(request, body=found)


def _dry_run_turn(
    operation: ChangeOperation, services: Services, request: Request, reach: TenantScope
) -> AbstractAsyncContextManager[None]:
    """The turn of a dry run that may take long; others need none."""
    if not operation.is_long:
        return nullcontext()
    return services.long_reads.turn(organization_of(request, reach), request.caller.user_id)


class _Input(NamedTuple):
    """The input of a request: the key, the query and the body, null if it has none, and unread in a format of its own.

    ``sent`` are the media type and the bytes of the body.
    """

    key: str | None
    query: Any
    body: Any
    sent: tuple[bytes, bytes]


async def _read_input(
    operation: ChangeOperation, scope: Scope, receive: Receive, pairs: Pairs, faults: list[FieldFault]
) -> _Input:
    """Read the input of a request, whose query has ``pairs``. ``faults`` are those that were found before.

    Raises InvalidRequest with all faults, and the errors of :func:`_read_body`.
    """
    key = query = None
    if operation.takes_key:
        try:
            key = key_of(scope)
        except InvalidKey as error:
            faults.append(error.fault)
    if operation.query is not None:
        try:
            query = operation.query.read(pairs)
        except ValidationError as error:
            faults += InvalidRequest.of_validation("query", error).faults
    request = HttpRequest(scope, receive)
    try:
        body, sent = await _read_body(operation, context_of(scope).headers, request, query)
    except InvalidRequest as error:
        raise InvalidRequest.of([*faults, *error.faults]) from None
    if faults:
        raise InvalidRequest.of(faults)
    return _Input(key, query, body, sent)


async def _read_body(
    operation: ChangeOperation, headers: Headers, request: HttpRequest, query: BaseModel | None
) -> tuple[Any, tuple[bytes, bytes]]:
    """The body as its model, or unread in a format of its own; null if the operation has none, or it is absent.

    It comes with the media type and the bytes that were sent; of a form with a file they are those of the file.
    Raises TooLarge, UnsupportedMediaType and InvalidRequest.
    """
    content_type = headers.get(b"content-type", b"")
    if not operation.takes_body or operation.body_stream is not None:
        return None, (content_type, b"")
    try:
        body = await request.body()
    except ClientDisconnect:  # the client is gone, or has sent something that is not HTTP
        fault = FieldFault(in_="body", name="", code="incomplete", message="ended before it was complete", allowed=None)
        raise InvalidRequest.of([fault]) from None
    sent = content_type, body
    if not body and not operation.body_required:
        return None, sent
    media_type = content_type.partition(b";")[0].strip().lower().decode("latin-1")
    if operation.body_formats:
        if media_type == file_form.MEDIA_TYPE:
            media_type, body = await file_form.read_file(request, operation.body_formats)
            sent = media_type.encode(), body  # not the form itself, since a retry has another boundary
        if media_type not in operation.body_formats:
            known = ", ".join([*operation.body_formats, file_form.MEDIA_TYPE])
            raise UnsupportedMediaType(f"The body must be one of these, by its Content-Type: {known}.")
        # If the query is wrong, report only that, because it decides how the body is read.
        missing = operation.query is not None and query is None
        return None if missing else UnreadBody(media_type, body), sent
    if media_type not in operation.body_types:
        raise UnsupportedMediaType
    assert operation.body is not None  # noqa: S101 - narrows the type
    try:
        return operation.body.model_validate_json(body), sent
    except ValidationError as error:
        raise InvalidRequest.of_validation("body", error) from None


def as_null(_result: Any) -> None:
    """Present any result as JSON's null."""
