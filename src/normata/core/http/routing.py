"""Routing: a resource for each path, with all its methods."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from urllib.parse import unquote

from starlette.types import ASGIApp, Receive, Scope, Send

from normata.core.http.change_endpoint import ChangeEndpoint
from normata.core.http.context import context_of
from normata.core.http.operation import ChangeOperation, Operation, ReadOperation
from normata.core.http.problems import MethodNotAllowed
from normata.core.http.read_endpoint import ReadEndpoint
from normata.core.http.services import Services

CALENDARS = "/calendar/"  # what follows in the path is a secret, because calendar programs can send nothing else
_WITHOUT_SECRET = f"{CALENDARS}-/"


class Resource:
    """The resource at one path, with the endpoint of each method."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.endpoints: dict[str, ASGIApp] = {}

    def add(self, operation: Operation, services: Services) -> None:
        """Add the methods of an operation. Raises ValueError if two operations have the same one."""
        endpoint = endpoint_of(operation, services)
        for method in operation.methods:
            if method in self.endpoints:
                raise ValueError(f"two operations answer {method} {self.path}")
            self.endpoints[method] = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request. Raises MethodNotAllowed, and the errors of the operation."""
        context_of(scope).route = self.path
        endpoint = self.endpoints.get(scope["method"])
        if endpoint is None:
            raise MethodNotAllowed(headers={"Allow": ", ".join(sorted(self.endpoints))})
        scope["path_params"] = {name: unquote(value) for name, value in scope.get("path_params", {}).items()}
        await endpoint(scope, receive, send)


def endpoint_of(operation: Operation, services: Services) -> ASGIApp:
    """The endpoint of an operation."""
    match operation:
        case ReadOperation():
            return ReadEndpoint(operation, services)
        case ChangeOperation():
            return ChangeEndpoint(operation, services)
    raise TypeError(f"nothing answers a {type(operation).__name__}")


def resources(operations: Iterable[Operation], services: Services) -> dict[str, Resource]:
    """The resources of all operations, by their paths."""
    found: dict[str, Resource] = {}
    for operation in operations:
        found.setdefault(operation.path, Resource(operation.path)).add(operation, services)
    return found


class Directory:
    """Finds the resource at a path by its segments, in a time independent of the number of resources.

    A router of the framework tries its routes one after the other, and the layers around it take as long as a tenth of
    a restore.
    """

    def __init__(self, found: Iterable[Resource]) -> None:
        # Fixed paths come first, so that no `{id}` matches them.
        self._fixed: dict[str, Resource] = {}
        self._others: defaultdict[tuple[str, int], list[tuple[re.Pattern[str], Resource]]] = defaultdict(list)
        for resource in sorted(found, key=lambda resource: (resource.path.count("{"), resource.path)):
            if "{" in resource.path:
                pattern = re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(resource.path)))
                self._others[_ends(resource.path)].append((pattern, resource))
            else:
                self._fixed[resource.path] = resource

    def find(self, path: str) -> tuple[Resource, dict[str, str]] | None:
        """The resource at a path of :func:`routed_path`, and the values of its path parameters."""
        fixed = self._fixed.get(path)
        if fixed is not None:
            return fixed, {}
        for pattern, resource in self._others.get(_ends(path), ()):
            match = pattern.fullmatch(path)
            if match is not None:
                return resource, match.groupdict()
        return None


def _ends(path: str) -> tuple[str, int]:
    """The first segment after the slash, which is never a parameter, and the number of segments."""
    segments = path.split("/")
    return segments[1], len(segments)


def routed_path(path: str) -> str:
    """The path that the router matches, from one as it was sent: decoded, and with a slash at the end.

    An escaped slash stays escaped, so that it separates nothing (RFC 3986, section 2.2), and an escaped percent sign
    with it, so that the two can be told apart when a parameter is decoded.
    """
    if "%" in path:
        path = unquote(path.replace("%25", "%2525").replace("%2F", "%252F").replace("%2f", "%252F"))
    return path if path.endswith("/") else path + "/"


def loggable(path: str, sent: str) -> str:
    """The path of a request as logs, spans and problems may have it: as it was ``sent``, but for a secret.

    ``path`` is that of :func:`routed_path`, in which no spelling can hide.
    """
    return _WITHOUT_SECRET if path.startswith(CALENDARS) and path != CALENDARS else sent
