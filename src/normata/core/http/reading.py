"""How a request to read something is answered: one way for all of them, and the shortest, since most requests read.

A kept page costs one token lookup, which tells the caller, the caller's role, and the revision of the list.
"""

from __future__ import annotations

import asyncio
from functools import lru_cache
from typing import Any, NamedTuple

from pydantic import ValidationError
from starlette.datastructures import QueryParams
from starlette.types import Receive, Scope, Send

from normata.core.changes.revisions import current_revision
from normata.core.db.transaction import TenantScope, Transaction
from normata.core.http.authentication import authenticate
from normata.core.http.caller import Caller
from normata.core.http.content import Content
from normata.core.http.context import RequestContext, context_of
from normata.core.http.formats import FormatQuery, Formats
from normata.core.http.links import LONGEST_LINKED, page_links
from normata.core.http.negotiation import Headers
from normata.core.http.operation import Asker, ListOperation, ReadOperation
from normata.core.http.page_cache import Page
from normata.core.http.problems import InvalidRequest
from normata.core.http.responses import encode
from normata.core.http.roles import role_suffices
from normata.core.http.routing import path_id
from normata.core.http.services import Services
from normata.core.schema.paging import OrganizationQuery, OwnPageQuery, Query
from normata.errors import NotFound, RoleTooSmall
from normata.identity.operators import require_operator

_LONGEST_REMEMBERED = 2_000  # bytes of a query string; others are read anew each time, and their pages are not kept


class _ParsedQuery(NamedTuple):
    """A valid query, and the key of its page in the cache; empty where that is not kept."""

    query: Query
    key: str


class ReadEndpoint:
    """Answers one operation that reads, as an ASGI application."""

    def __init__(self, operation: ReadOperation, services: Services) -> None:
        self._operation = operation
        self._services = services
        self._parse_cached = lru_cache(maxsize=1_000)(self._parse)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a GET or HEAD. Raises what the operation declares."""
        del receive  # there is no body to expect
        operation = self._operation
        parsed = self._read(scope["query_string"])
        organization_id = None
        if not isinstance(parsed, InvalidRequest) and isinstance(parsed.query, OrganizationQuery):
            organization_id = parsed.query.organization_id
        context = context_of(scope)
        headers = context.headers
        context.organization_id = organization_id
        caller = await authenticate(
            self._services,
            scope,
            scope=operation.scope,
            organization_id=organization_id,
            list_name=operation.kept,
            media_types=_media_types(operation, parsed),
        )
        if isinstance(parsed, InvalidRequest):
            raise parsed  # only now: a caller without a token is not told what is wrong with a request
        if operation.authority != "organization":
            own = await self._build_own(parsed.query, self._asker(scope, caller))
            await own.content.send(headers, send, *_links(scope, context, parsed.query, own))
            return
        # An id comes before a slug of the same spelling.
        assert isinstance(parsed.query, OrganizationQuery)  # noqa: S101 - narrows the type
        found = organization_id if organization_id in caller.roles else next(iter(caller.roles), None)
        if found is None:
            raise NotFound
        context.organization_id = found
        if not role_suffices(caller.roles[found], operation.role):
            raise RoleTooSmall(f"This takes the role {operation.role} or a larger one in the organization.")
        if operation.formats is not None:
            query = parsed.query.model_copy(update={"organization_id": found})
            content = await self._in_format(operation.formats, query, self._asker(scope, caller), headers)
            await content.send(headers, send)
            return
        pages, revision = self._services.pages, caller.revisions[found]
        may_keep = bool(parsed.key and revision)
        key = f"{found} {parsed.key}"
        page = pages.find(key, revision) if may_keep else None
        if may_keep:
            self._services.metrics.page(kept=page is not None)
        if page is None:
            query = parsed.query.model_copy(update={"organization_id": found})
            page = await self._build(query, self._asker(scope, caller))
        known = len(page.content.representations)
        await page.content.send(headers, send, *_links(scope, context, parsed.query, page))
        if may_keep and page.revision and len(page.content.representations) > known:
            pages.keep(key, page)  # it is new, or has grown

    async def _build_own(self, query: Query, asker: Asker) -> Page:
        """The answer to whoever asks about their own, or as an operator. Raises NotOperator."""
        operation, caller = self._operation, asker.caller

        def work(transaction: Transaction) -> Page:
            if operation.authority == "operator":
                require_operator(transaction, caller)
            answer = operation.build(transaction, query, asker)
            return Page("", Content(encode(answer)), answer["total"] if isinstance(operation, ListOperation) else None)

        scope = TenantScope(readable=tuple(caller.roles), users=(caller.user_id,))
        return await self._services.database.read(work, scope, is_long=operation.is_long)

    def _asker(self, scope: Scope, caller: Caller) -> Asker:
        services = self._services
        return Asker(caller, context_of(scope).prefix, path_id(scope), services.signer, services.totals)

    async def _build(self, query: OrganizationQuery, asker: Asker) -> Page:
        list_name, build = self._operation.kept, self._operation.build
        in_pages = isinstance(self._operation, ListOperation)

        def work(transaction: Transaction) -> Page:
            # From the same snapshot as the page, so that it is never kept for a revision that it does not show.
            revision = current_revision(transaction, query.organization_id, list_name) if list_name else ""
            answer = build(transaction, query, asker)
            return Page(revision, Content(encode(answer)), answer["total"] if in_pages else None)

        return await self._services.database.read(
            work, TenantScope(readable=(query.organization_id,)), is_long=self._operation.is_long
        )

    async def _in_format(self, formats: Formats, query: Any, asker: Asker, headers: Headers) -> Content:
        """The answer in the format that the request wants.

        A report may be long: it is made on a thread of its own, so that others are served meanwhile.
        """
        chosen = formats.choose(query, headers.get(b"accept", b""))
        read = await self._services.database.read(
            lambda transaction: self._operation.build(transaction, query, asker),
            TenantScope(readable=(query.organization_id,)),
            is_long=True,
        )
        return await asyncio.to_thread(formats.content, read, chosen)

    def _read(self, query_string: bytes) -> _ParsedQuery | InvalidRequest:
        try:
            parse = self._parse_cached if _is_short(query_string) else self._parse
            return parse(query_string)
        except InvalidRequest as error:
            return error

    def _parse(self, query_string: bytes) -> _ParsedQuery:
        """Raises InvalidRequest. Of a parameter that is repeated the last counts, but for those that are arrays."""
        try:
            query = self._operation.query.read(QueryParams(query_string).multi_items())
        except ValidationError as error:
            raise InvalidRequest.of_validation("query", error) from None
        # One with an id in its path would need it in the key.
        is_kept = self._operation.kept is not None and "{" not in self._operation.path and _is_short(query_string)
        return _ParsedQuery(query, f"{self._operation.path} {query.model_dump_json()}" if is_kept else "")


def _links(scope: Scope, context: RequestContext, query: Query, page: Page) -> tuple[tuple[bytes, bytes], ...]:
    """The header with the links to other pages of a list; none where the query is too long to be repeated."""
    query_string = scope["query_string"]
    if page.total is None or not isinstance(query, OwnPageQuery) or len(query_string) > LONGEST_LINKED:
        return ()
    return ((b"link", page_links(context.instance, query_string, query.page, query.limit, page.total)),)


def _media_types(operation: ReadOperation, parsed: _ParsedQuery | InvalidRequest) -> tuple[str, ...]:
    """What ``Accept`` may name; nothing where the query names the format."""
    if operation.formats is None:
        return ("application/json",)
    is_named = isinstance(parsed, _ParsedQuery) and isinstance(parsed.query, FormatQuery) and parsed.query.format
    return () if is_named else operation.formats.media_types


def _is_short(query_string: bytes) -> bool:
    return len(query_string) <= _LONGEST_REMEMBERED
