"""The OpenAPI document and the page that shows it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fastapi_offline
from fastapi import FastAPI, Request, Response
from fastapi.openapi.docs import get_redoc_html
from fastapi.openapi.utils import get_openapi
from fastapi.responses import FileResponse

from normata.http import JsonResponse
from normata.records.routes import IntegrationCheckRestore

METADATA: dict[str, Any] = {"title": "Normata", "version": "0.1.0"}


def install(app: FastAPI) -> None:
    """Serve the document."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = get_openapi(title=app.title, version=app.version, routes=app.routes)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi_json() -> Response:
        return JsonResponse(app.openapi())
