"""Addresses for operation of the service: liveness, readiness, and metrics."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from normata.core.http.context import context_of
from normata.core.http.pages import page
from normata.core.http.problems import ServiceUnavailable
from normata.core.http.responses import JsonResponse
from normata.core.http.services import Services
from normata.core.schema.migrations import is_servable


def routes(services: Services) -> Iterator[Route]:
    """The routes of /, /livez, /readyz and /metrics."""

    async def livez(_request: Request) -> Response:
        """The process runs. The answer is the same without a database, because a restart would not help."""
        return JsonResponse({"status": "alive"})

    async def readyz(_request: Request) -> Response:
        """The database accepts changes and this version can serve its schema; else 503."""
        await services.database.require_ready()
        if await services.database.read(is_servable):
            return JsonResponse({"status": "ready"})
        raise ServiceUnavailable("The schema of the database is not the one that this version needs.", reason="schema")

    async def metrics(_request: Request) -> Response:
        """Metrics for Prometheus."""
        return Response(services.metrics.exposition(await services.figures()), media_type=CONTENT_TYPE_LATEST)

    async def start(request: Request) -> Response:
        """The root redirects to the console."""
        return RedirectResponse(f"{context_of(request.scope).prefix}/app/", status_code=303)

    yield page("/", start)
    yield page("/livez/", livez)
    yield page("/readyz/", readyz)
    yield page("/metrics/", metrics)
