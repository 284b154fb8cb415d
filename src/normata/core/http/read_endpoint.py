"""The endpoint of reads, the same for all of them, and the fastest, because most requests read.

A request goes through these stages, in this order: query, authentication, organization and role, cache, and the
operation's ``build``. A cached page costs one token lookup, which brings the caller, their role, and the list's
revision.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime
from email.utils import format_datetime
from functools import lru_cache, partial
from typing import Any, NamedTuple
from urllib.parse import quote, unquote_plus

from pydantic import ValidationError
from starlette.datastructures import QueryParams
from starlette.types import Receive, Scope, Send

from normata.core.db.transaction import TenantScope, Transaction
from normata.core.db.types import now
from normata.core.http.authentication import authenticate
from normata.core.http.caller import Caller
from normata.core.http.content import Content
from normata.core.http.context import RequestContext, address_of, context_of, path_id
from normata.core.http.file_answer import FileAnswer
from normata.core.http.formats import FormatQuery
from normata.core.http.list_file import format_of, list_file, without_accept
from normata.core.http.operation import Lines, ListOperation, ReadOperation
from normata.core.http.page_cache import Page, place_of
from normata.core.http.problems import FieldFault, InvalidRequest
from normata.core.http.query_names import QueryNames, Undeclared
from normata.core.http.reads import Form, Reading, until_gone
from normata.core.http.request import Request
from normata.core.http.services import Services
from normata.core.schema.paging import OrganizationQuery, OwnPageQuery, PastQuery, Query
from normata.core.schema.wire import encode
from normata.errors import InsufficientRole, NotFound

_OF_LINES = [
    (b"content-type", b"application/x-ndjson"),
    (b"cache-control", b"private, no-store"),
    (b"vary", b"accept, authorization"),
]
_LONGEST_CACHED = 2_000  # bytes of a query string; a longer one is parsed each time, and its pages are not cached


class _ParsedQuery(NamedTuple):
    """A query, null if it has faults, and the cache key of its page, empty if it is not cached.

    ``undeclared`` are the parameters that the operation does not have. The key is without them, so that they do not
    fill the cache.
    """

    query: Query | None
    undeclared: Undeclared
    faults: tuple[FieldFault, ...] = ()
    key: str = ""

    @property
    def organization(self) -> str | None:
        """The id or slug of the organization that it names; null if it names none."""
        return self.query.organization_id if isinstance(self.query, OrganizationQuery) else None


class ReadEndpoint:
    """The ASGI application of one operation that reads."""

    def __init__(self, operation: ReadOperation, services: Services) -> None:
        self._operation = operation
        self._services = services
        self._names = QueryNames(operation)
        self._parse_cached = lru_cache(maxsize=1_000)(self._parse)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a GET or HEAD. Raises what the operation declares."""
        operation, context = self._operation, context_of(scope)
        query_string = scope["query_string"]
        parsed = (self._parse_cached if _is_short(query_string) else self._parse)(query_string)
        context.organization_id = parsed.organization
        caller = await authenticate(
            self._services,
            scope,
            scope=operation.scope,
            organization_id=parsed.organization,
            list_name=operation.cached,
            media_types=_media_types(operation, parsed),
        )
        unknown = self._names.refused(parsed.undeclared, context)
        if parsed.query is None or unknown:
            # After authentication, so that nobody without a token learns what is wrong with a request.
            raise InvalidRequest.of([*parsed.faults, *self._names.faults(unknown)])
        if operation.authority != "organization":
            page = await self._build_own(self._request(scope, caller, parsed.query, ""))
        else:
            organization_id = context.organization_id = _organization(
                operation, caller, parsed.query, parsed.organization
            )
            if operation.formats is not None:
                request = self._request(scope, caller, parsed.query, organization_id)
                chosen = operation.formats.choose(request.query, context.headers.get(b"accept", b""))
                if operation.lines is not None and chosen == "ndjson":
                    async with until_gone(receive) as gone:
                        await self._send_lines(operation.lines, request, scope, send, gone)
                    return
                content: Content = await self._read("content", replace(request, format=chosen), receive)
                await content.send(context.headers, send, *_memento(parsed.query))
                return
            if isinstance(operation, ListOperation) and operation.files is not None:
                request = self._request(scope, caller, parsed.query, organization_id)
                chosen = format_of(operation, request.query, context.headers.get(b"accept", b""))
                if chosen != "json":
                    async with list_file(self._services.reads, operation, request, chosen, receive) as answer:
                        await answer.send(without_accept(context.headers), send, scope)
                    return
            if operation.sends_file:
                answer = await self._file(self._request(scope, caller, parsed.query, organization_id))
                await answer.send(context.headers, send, scope)
                return
            if parsed.key and caller.revisions[organization_id]:
                await self._send_cached(scope, receive, send, caller, parsed)
                return
            page = await self._build(self._request(scope, caller, parsed.query, organization_id), receive)
        await page.content.send(
            context.headers, send, *_links(scope, context, parsed.query, page), *_memento(parsed.query)
        )

    async def _send_cached(
        self, scope: Scope, receive: Receive, send: Send, caller: Caller, parsed: _ParsedQuery
    ) -> None:
        """Send a page from the cache, or build it and store it there."""
        services, context = self._services, context_of(scope)
        organization_id = context.organization_id
        assert parsed.query is not None  # noqa: S101 - narrows the type
        assert organization_id is not None  # noqa: S101 - as above
        key = f"{organization_id} {parsed.key}"
        page = services.pages.find(key, caller.revisions[organization_id])
        services.metrics.page(cached=page is not None)
        if page is None:
            page = await self._build(self._request(scope, caller, parsed.query, organization_id), receive)
        known = len(page.content.representations)
        await page.content.send(
            context.headers, send, *_links(scope, context, parsed.query, page), *_memento(parsed.query)
        )
        if page.revision and len(page.content.representations) > known:
            services.pages.store(key, page)  # it is new, or has grown

    def _request(self, scope: Scope, caller: Caller, query: Query, organization_id: str) -> Request:
        context = context_of(scope)
        if organization_id:
            query = query.model_copy(update={"organization_id": organization_id})
        return Request(
            caller=caller,
            means=self._services.means,
            time=now(),
            request_id=context.request_id,
            address=address_of(scope),
            prefix=context.prefix,
            instance=context.instance,
            id=path_id(scope),
            organization_id=organization_id,
            query=query,
        )

    async def _build_own(self, request: Request) -> Page:
        """The answer about the caller's own data, or to an operator. Raises NotOperator."""
        operation, caller = self._operation, request.caller

        def work(transaction: Transaction) -> Page:
            if operation.authority == "operator":
                self._services.require_operator(transaction, caller)
            answer = operation.answer_to(transaction, request)
            return Page("", Content(encode(answer), vary=operation.vary), place_of(answer, request.query))

        scope = TenantScope(readable=tuple(caller.roles), users=(caller.user_id,))
        return await self._services.database.read(work, scope, is_long=operation.is_long)

    async def _file(self, request: Request) -> FileAnswer:
        """The answer that is a file, of which nothing is read yet."""
        operation = self._operation
        found: FileAnswer = await self._services.database.read(
            lambda transaction: operation.answer_to(transaction, request),
            TenantScope(readable=(request.organization_id,)),
        )
        return found

    async def _build(self, request: Request, receive: Receive) -> Page:
        page: Page = await self._read("page", request, receive)
        return page

    async def _send_lines(
        self, lines: Lines, request: Request, scope: Scope, send: Send, gone: asyncio.Task[None]
    ) -> None:
        """Send lines while they are read: each part once the client has taken the one before, unless it has ``gone``.

        What goes wrong before the first one is still an error of its own.
        """
        begun, place = False, None
        tenant = TenantScope(readable=(request.organization_id,))
        while not begun or (place is not None and scope["method"] != "HEAD" and not gone.done()):
            part, place = await self._services.database.read(partial(_after, lines, request, place), tenant)
            if not begun:
                await send({"type": "http.response.start", "status": 200, "headers": _OF_LINES})
                begun = True
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def _read(self, form: Form, request: Request, receive: Receive) -> Any:
        scope = TenantScope(readable=(request.organization_id,))
        return await self._services.reads.run(Reading(form, [(self._operation, request)], scope), receive)

    def _parse(self, query_string: bytes) -> _ParsedQuery:
        """Parse the query. The last value of a repeated parameter counts, except for arrays."""
        pairs = QueryParams(query_string).multi_items()
        undeclared = self._names.undeclared(pairs)
        try:
            query = self._operation.query.read(pairs)
        except ValidationError as error:
            return _ParsedQuery(None, undeclared, tuple(InvalidRequest.of_validation("query", error).faults))
        # An id in the path would have to be part of the cache key, and so would it whether a page is named.
        is_combined = isinstance(query, OwnPageQuery) and query.cursor is not None and "page" in query.model_fields_set
        can_be_key = "{" not in self._operation.path and _is_short(query_string) and not is_combined
        is_cached = self._operation.cached is not None and can_be_key
        key = f"{self._operation.path} {query.model_dump_json()}" if is_cached else ""
        return _ParsedQuery(query, undeclared, key=key)


def _after(lines: Lines, request: Request, place: Any, transaction: Transaction) -> tuple[bytes, Any]:
    return lines(transaction, request, place)


def _organization(operation: ReadOperation, caller: Caller, query: Query, wanted: str | None) -> str:
    """The id of the organization that is read. Raises NotFound and InsufficientRole."""
    # An id takes precedence over a slug with the same spelling.
    found = wanted if wanted in caller.roles else next(iter(caller.roles), None)
    if found is None:
        raise NotFound
    if not operation.admits_query(caller.roles[found], query):
        raise InsufficientRole(f"This takes the role {operation.role} or a larger one in the organization.")
    return found


def _memento(query: Query) -> tuple[tuple[bytes, bytes], ...]:
    """The header that says of which moment an answer of the past is (RFC 7089, section 2.1.1), in whole seconds."""
    if not isinstance(query, PastQuery) or query.as_of is None:
        return ()
    return ((b"memento-datetime", format_datetime(datetime.fromisoformat(query.as_of), usegmt=True).encode()),)


def _links(scope: Scope, context: RequestContext, query: Query, page: Page) -> tuple[tuple[bytes, bytes], ...]:
    """The header with the links to other pages of a list; none if the query is too long to be repeated."""
    if page.place is None or not isinstance(query, OwnPageQuery):
        return ()
    number = query.page if query.cursor is None else None
    links = page_links(context.instance, scope["query_string"], number, *page.place)
    return ((b"link", links),) if links else ()


def _media_types(operation: ReadOperation, parsed: _ParsedQuery) -> tuple[str, ...]:
    """What ``Accept`` may name; nothing if the query names the format, or the answer is a file."""
    if operation.sends_file:
        return ()
    formats = operation.files if isinstance(operation, ListOperation) else operation.formats
    if formats is None:
        return ("application/json",)
    is_named = isinstance(parsed.query, FormatQuery) and parsed.query.format
    return () if is_named else formats.media_types


def _is_short(query_string: bytes) -> bool:
    return len(query_string) <= _LONGEST_CACHED


# Bytes of a query besides the place of the page: four links repeat it, and proxies accept only some kilobytes of
# headers.
LONGEST_LINKED = 2_000

# The characters that need no escape in a path and in a query (RFC 3986, appendix A), and the percent sign of escapes.
_IN_PATH = "/%:@!$&'()*+,;=~"
_IN_QUERY = _IN_PATH + "?"


@lru_cache(maxsize=1_000)
def page_links(path: str, query_string: bytes, page: int | None, last: int | None, cursor: str | None) -> bytes:
    """The value of ``Link`` for a page: first, prev, next and last, if these exist; empty if the query is too long.

    ``path`` and ``query_string`` are those of the request, with the prefix under which its sender sees the application.
    All parameters except ``page`` and ``cursor`` are unchanged. ``page`` is the number of the page, null if a cursor
    named it: then only first and next are known. ``last`` is the number of the last page, null if it is not known.
    ``cursor`` is that of the next page. For a page past the end, prev is the last one.
    """
    remaining = [one for one in query_string.decode("latin-1").split("&") if one and not _is_place(one)]
    if len("&".join(remaining)) > LONGEST_LINKED:
        return b""
    places = {"first": "page=1"}
    if page is not None and page > 1:
        places["prev"] = f"page={page - 1 if last is None else min(page - 1, last)}"
    if cursor is not None:
        places["next"] = f"cursor={cursor}"
    if page is not None and last is not None:
        places["last"] = f"page={last}"
    base = quote(path, safe=_IN_PATH, encoding="latin-1") + "?"
    base += "".join(quote(one, safe=_IN_QUERY, encoding="latin-1") + "&" for one in remaining)
    return ", ".join(f'<{base}{place}>; rel="{name}"' for name, place in places.items()).encode("latin-1")


def _is_place(parameter: str) -> bool:
    return unquote_plus(parameter.partition("=")[0]) in ("page", "cursor")
