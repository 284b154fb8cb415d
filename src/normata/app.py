"""The application, put together: wiring only."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

from fastapi import FastAPI
from fastapi.middleware.asyncexitstack import AsyncExitStackMiddleware
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.routing import Route
from starlette.types import ASGIApp, ExceptionHandler

from normata import log, openapi, operations
from normata.database import open_database
from normata.frameworks import routes as framework_routes
from normata.http import Gateway, Operation, install_error_handlers
from normata.identity.last_use import LastUse
from normata.identity.rate_limit import RateLimit
from normata.metrics import Metrics
from normata.notifications import routes as notification_routes
from normata.pages import KeptPages
from normata.records import routes as record_routes
from normata.settings import Settings


class Service(FastAPI):
    """FastAPI, with our :class:`Gateway` in place of what it puts around an application.

    That is for faults that leave an application. None leaves the gateway, and each layer costs every request.
    """

    gateway: Callable[[ASGIApp], ASGIApp]

    def build_middleware_stack(self) -> ASGIApp:
        """Put the gateway around the router."""
        handlers: Mapping[Any, ExceptionHandler] = self.exception_handlers
        return self.gateway(ExceptionMiddleware(AsyncExitStackMiddleware(self.router), handlers=handlers))


def create_app(settings: Settings | None = None) -> FastAPI:
    """The service as it is shipped. ``settings`` are read from the environment where they are not given.

    Raises :class:`normata.database.BadDatabaseUrl`. The database need not be reachable yet.
    """
    settings = settings or Settings()
    log.configure(settings)
    database = open_database(settings, serving=True)
    metrics = Metrics()
    last_use = LastUse(database)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        storing = asyncio.create_task(last_use.keep_storing())
        try:
            yield
        finally:
            storing.cancel()
            with suppress(asyncio.CancelledError):
                await storing
            await last_use.store()
            await database.aclose()

    app = Service(
        **openapi.METADATA,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
        # It would ask for every request whether somebody listens; what there is to know is in the log and the metrics.
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.state.database = database
    app.state.last_use = last_use
    app.state.rate_limit = RateLimit(settings.rate_limit)
    app.state.metrics = metrics
    app.state.pages = KeptPages(settings.page_cache_mib * 2**20)
    for module in (framework_routes, notification_routes, record_routes, operations):
        # As they are: included, each would be analysed anew for every application, though nothing is added to them.
        app.router.routes.extend(module.router.routes)
    openapi.install(app)
    install_error_handlers(app)
    served = [route.app for route in app.routes if isinstance(route, Route) and isinstance(route.app, Operation)]
    app.gateway = partial(Gateway, operations=served, max_body_bytes=settings.max_body_bytes, metrics=metrics)
    return app
