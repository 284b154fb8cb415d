"""Routes besides the API, for browsers and operators."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from normata.core.http.content import Content
from normata.core.http.context import context_of
from normata.core.http.problems import MethodNotAllowed

_METHODS = ("GET", "HEAD")


def page(path: str, answer: Callable[[Request], Awaitable[Response]]) -> Route:
    """A route that answers GET and HEAD. ``path`` ends with a slash, which the gateway adds if it is missing."""

    async def answer_route(request: Request) -> Response:
        context_of(request.scope).route = path
        return await answer(request)

    return Route(path, answer_route, methods=[*_METHODS])


def content_page(path: str, content: Callable[[str], Content], *headers: tuple[bytes, bytes]) -> Route:
    """:func:`page` for content that is the same for everybody: compressed, and with an entity tag.

    ``content`` makes it for the prefix under which the application is served. ``headers`` are more of the answer's.
    """
    return Route(path, _ContentPage(path, content, headers))


class _ContentPage:
    def __init__(self, path: str, content: Callable[[str], Content], headers: tuple[tuple[bytes, bytes], ...]) -> None:
        self._path = path
        self._content = content
        self._headers = headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del receive  # a GET has no body
        context = context_of(scope)
        context.route = self._path
        if scope["method"] not in _METHODS:
            raise MethodNotAllowed(headers={"Allow": ", ".join(_METHODS)})
        await self._content(context.prefix).send(context.headers, send, *self._headers)
