"""From operations to routes of the framework: one for each path, with all its methods."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from urllib.parse import unquote

from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from normata.errors import NotFound
from normata.web.context import context_of
from normata.web.operation import Operation
from normata.web.problems import MethodNotAllowed
from normata.web.services import Services


class Resource:
    """What is at one path: the endpoint of each method."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.endpoints: dict[str, ASGIApp] = {}

    def add(self, operation: Operation, services: Services) -> None:
        """Answer the methods of an operation. Raises ValueError where two operations have the same one."""
        endpoint = operation.endpoint(services)
        for method in operation.methods:
            if method in self.endpoints:
                raise ValueError(f"two operations answer {method} {self.path}")
            self.endpoints[method] = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request. Raises MethodNotAllowed, and what the operation raises."""
        context_of(scope).route = self.path
        endpoint = self.endpoints.get(scope["method"])
        if endpoint is None:
            raise MethodNotAllowed(headers={"Allow": ", ".join(sorted(self.endpoints))})
        scope["path_params"] = {name: unquote(value) for name, value in scope.get("path_params", {}).items()}
        await endpoint(scope, receive, send)


def path_id(scope: Scope) -> str:
    """The id in the path, decoded; empty where it has none. Raises NotFound for one that nothing can have."""
    found: str = scope["path_params"].get("id", "")
    if "\0" in found:
        raise NotFound  # PostgreSQL refuses a text that has NUL
    return found


def resources(operations: Iterable[Operation], services: Services) -> dict[str, Resource]:
    """The resources of all operations, by their paths."""
    found: dict[str, Resource] = {}
    for operation in operations:
        found.setdefault(operation.path, Resource(operation.path)).add(operation, services)
    return found


def routes(found: Iterable[Resource]) -> Iterator[Route]:
    """A route for each resource; the fixed paths first, so that no ``{id}`` takes what has a path of its own."""
    for resource in sorted(found, key=lambda resource: (resource.path.count("{"), resource.path)):
        yield Route(resource.path, resource)


class Routes(BaseRoute):
    """The routes of all resources, as one route: only those that begin with the segment of the request are tried.

    A router tries its routes one after the other. With some hundred, that took a sixth of a restore.
    """

    def __init__(self, found: Iterable[Resource]) -> None:
        self._by_segment: defaultdict[str, list[Route]] = defaultdict(list)
        for route in routes(found):
            self._by_segment[_first_segment(route.path)].append(route)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """See :meth:`starlette.routing.BaseRoute.matches`."""
        if scope["type"] == "http":
            path = scope["path"].removeprefix(scope.get("root_path", ""))
            for route in self._by_segment.get(_first_segment(path), ()):
                match, child_scope = route.matches(scope)
                if match is Match.FULL:
                    return match, child_scope
        return Match.NONE, {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request whose route was found."""
        await scope["endpoint"](scope, receive, send)


def _first_segment(path: str) -> str:
    return path.split("/", 2)[1] if path.startswith("/") else ""


def routed_path(path: str) -> str:
    """The path that the router matches, from one as it was sent: decoded, and with a slash at the end.

    An escaped slash stays escaped, so that it separates nothing (RFC 3986, section 2.2), and an escaped percent sign
    with it, so that the two can be told apart when a parameter is decoded.
    """
    if "%" in path:
        path = unquote(path.replace("%25", "%2525").replace("%2F", "%252F").replace("%2f", "%252F"))
    return path if path.endswith("/") else path + "/"
