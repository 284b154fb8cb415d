"""How a list is asked for and answered: one way for all of them, and the shortest, since most requests are for lists.

A list is an ASGI application of its own: between the server and a page that is kept stands nothing but one look into
the database, which tells who is asking, whether they are a member, and which revision the organization's data has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Query
from pydantic import ValidationError
from sqlalchemy import Connection
from starlette.datastructures import QueryParams, State
from starlette.types import Receive, Scope, Send

from normata import errors
from normata.database import Sight
from normata.errors import InvalidRequest, NotFound
from normata.frameworks.revision import current_revision
from normata.http import READING, Operation, add_operation, documented, encode
from normata.identity.access import Caller, authenticate
from normata.negotiation import Headers, best_coding, combined, is_current
from normata.pages import CODINGS, KeptPages, Page, Representation, validators
from normata.paging import LIST_ERRORS, PageQuery

_LONGEST_REMEMBERED = 2_000  # bytes of a query string; others are read anew each time, and their pages are not kept

Build = Callable[[Connection, Any, Caller], Mapping[str, Any]]


class _Question(NamedTuple):
    """A query that has been understood, and what pages that answer it are kept under; empty where they are not."""

    query: PageQuery
    key: str


class PageList(Operation):
    """A list at ``path``: ``build`` makes a page of it, as it travels, from a query of the model ``query``.

    Where its pages are ``kept``, they must be made of nothing but what the organization's revision tells changes of.
    """

    methods = READING

    def __init__(self, path: str, query: type[PageQuery], build: Build, *, kept: bool) -> None:
        self.path = path
        self._paths = (path, path.rstrip("/"))
        self.query = query
        self._build = build
        self._kept = kept
        self._remembered = lru_cache(maxsize=1_000)(self._understand)

    def serves(self, path: str) -> bool:
        """See :class:`normata.http.Operation`."""
        return path in self._paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a GET or HEAD. Raises the errors of :data:`normata.paging.LIST_ERRORS`."""
        del receive  # there is no body to expect
        state: State = scope["app"].state
        headers = combined(scope["headers"])
        question = self._read(scope["query_string"])
        organization_id = None if isinstance(question, InvalidRequest) else question.query.organization_id
        caller = await authenticate(state, scope["state"], headers, organization_id)
        if isinstance(question, InvalidRequest):
            raise question  # only now: what is wrong with a request is told to those only who have a token
        if organization_id not in caller.organizations:
            raise NotFound
        await _send(await self._represented(state, question, caller, headers), headers, send)

    async def _represented(self, state: State, question: _Question, caller: Caller, headers: Headers) -> Representation:
        """The page that answers a question, in the coding that the client wants."""
        pages: KeptPages = state.pages
        kept = self._kept and bool(question.key and caller.revision)
        page = pages.find(question.key, caller.revision) if kept else None
        if page is None:
            page = await self._made(state, question, caller)
        coding = page.suited(best_coding(headers.get(b"accept-encoding", b""), CODINGS))
        represented = page.representations.get(coding)
        if represented is not None:
            return represented
        if coding == "identity":
            represented = page.packed(coding)
        else:  # it takes milliseconds, in which others can go on
            represented = await asyncio.to_thread(page.packed, coding)
        page.representations[coding] = represented
        if kept:
            pages.keep(question.key, page)
        return represented

    async def _made(self, state: State, question: _Question, caller: Caller) -> Page:
        organization_id = question.query.organization_id

        def work(connection: Connection) -> Page:
            # Of the same snapshot as the page, so that it cannot be kept for a revision that it is not of.
            revision = current_revision(connection, organization_id) if self._kept else ""
            if revision is None:
                raise NotFound
            return Page(revision, encode(self._build(connection, question.query, caller)))

        page: Page = await state.database.read(work, Sight((organization_id,)))
        return page

    def _read(self, query_string: bytes) -> _Question | InvalidRequest:
        try:
            read = self._remembered if _is_short(query_string) else self._understand
            return read(query_string)
        except InvalidRequest as error:
            return error

    def _understand(self, query_string: bytes) -> _Question:
        """Raises InvalidRequest. Of a parameter that is repeated the last counts, but for those that are arrays."""
        try:
            query = self.query.read(QueryParams(query_string))
        except ValidationError as error:
            raise InvalidRequest.of_validation("query", error) from None
        return _Question(query, f"{self.path} {query.model_dump_json()}" if _is_short(query_string) else "")


def _is_short(query_string: bytes) -> bool:
    return len(query_string) <= _LONGEST_REMEMBERED


async def _send(represented: Representation, headers: Headers, send: Send) -> None:
    """Send a page, or that the client has it already (RFC 9110, section 15.4.5)."""
    status, fields, body = 200, represented.headers, represented.body
    held = headers.get(b"if-none-match")
    if held is not None and is_current(held, represented.entity_tag):
        status, fields, body = 304, validators(represented.entity_tag), b""
    await send({"type": "http.response.start", "status": status, "headers": fields})
    await send({"type": "http.response.body", "body": body})


def add_list(router: APIRouter, page_list: PageList, **documentation: Any) -> None:
    """Serve a list, and document it."""
    add_operation(router, page_list)

    async def documented_as(query: Any) -> None:
        """Tell FastAPI the parameters; it serves no list itself."""

    documented_as.__annotations__["query"] = Annotated[page_list.query, Query()]
    documented.add_api_route(
        page_list.path,
        documented_as,
        methods=["GET"],
        responses={200: {"headers": {**_VALIDATORS}}, 304: _not_modified(), **errors.responses(*LIST_ERRORS)},
        openapi_extra={"parameters": [_IF_NONE_MATCH]},
        **documentation,
    )


_VALIDATORS = {
    "ETag": {
        "description": "Names what the page holds, to be sent back as `If-None-Match`.",
        "required": True,
        "schema": {"type": "string"},
    }
}
_IF_NONE_MATCH = {
    "name": "If-None-Match",
    "in": "header",
    "description": "The `ETag` of a page that you have: while it is the same, the answer is 304, without a body.",
    "required": False,
    "schema": {"type": "string"},
}


def _not_modified() -> dict[str, Any]:
    return {"description": "The page is still the one that `If-None-Match` names.", "headers": {**_VALIDATORS}}
