"""All pages of the console, put together."""

from __future__ import annotations

from collections.abc import Iterator

from starlette.routing import Route

from normata.console.account.page import end_session, show_account
from normata.console.pages import Pages
from normata.console.sign_in.link import show_link, use_link
from normata.console.sign_in.signing_in import sign_out
from normata.console.sign_in.start import start
from normata.console.site import Site
from normata.console.static import Assets
from normata.console.visit import Console, Endpoint
from normata.settings import Settings
from normata.web.services import Services


def console_routes(services: Services, settings: Settings) -> Iterator[Route]:
    """The routes of the pages, and of their styles and scripts."""
    assets = Assets()
    console = Console(services, settings, Site(settings.public_url), Pages(assets))
    endpoints = (
        Endpoint(console, "/sign-in/", get=start),
        Endpoint(console, "/sign-in/link/", get=show_link, post=use_link),
        Endpoint(console, "/sign-out/", post=sign_out),
        Endpoint(console, "/account/", get=show_account),
        Endpoint(console, "/account/sessions/", post=end_session),
    )
    for endpoint in endpoints:
        yield Route(endpoint.path, endpoint)
    yield from assets.routes()
