"""What those who run the service look at: whether it lives, whether it can serve, and its figures."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST
from sqlalchemy import Connection

from normata import migrations
from normata.errors import ServiceUnavailable
from normata.http import JsonResponse, add_page, read

router = APIRouter(include_in_schema=False)


async def livez() -> Response:
    """The process runs. It says so even without a database: a restart would not bring that back."""
    return JsonResponse({"status": "alive"})


async def readyz(request: Request) -> Response:
    """The database answers and its schema is the one that this code needs, or one made for a newer; else 503.

    Migrations keep what the version before needs, so that both can serve during an upgrade: a balancer must not take
    out all old processes at the moment when the schema becomes the new one's.
    """
    if await read(request, _schema_is_current):
        return JsonResponse({"status": "ready"})
    raise ServiceUnavailable("The schema of the database is not the one that this version needs.")


async def metrics(request: Request) -> Response:
    """Figures for Prometheus."""
    return Response(request.app.state.metrics.exposition(), media_type=CONTENT_TYPE_LATEST)


def _schema_is_current(connection: Connection) -> bool:
    found = migrations.version(connection)
    return found == migrations.head() or (found is not None and found not in migrations.known_versions())


for _path, _endpoint in (("/livez/", livez), ("/readyz/", readyz), ("/metrics/", metrics)):
    add_page(router, _path, _endpoint)
