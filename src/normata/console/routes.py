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
from normata.identity.openid.configuration import CALLBACK, Configuration
from normata.settings import Settings
from normata.web.services import Services
from normata.web.single_sign_on import single_sign_on


def console_routes(services: Services, settings: Settings) -> Iterator[Route]:
    """The routes of the pages, and of their styles and scripts."""
    assets = Assets()
    provider = single_sign_on(settings)
    console = Console(services, settings, Site(settings.public_url), Pages(assets), provider.name if provider else None)
    endpoints = (
        Endpoint(console, "/sign-in/", get=start),
        Endpoint(console, "/sign-in/link/", get=show_link, post=use_link),
        Endpoint(console, "/sign-out/", post=sign_out),
        Endpoint(console, "/account/", get=show_account),
        Endpoint(console, "/account/sessions/", post=end_session),
    )
    for endpoint in endpoints:
        yield Route(endpoint.path, endpoint)
    if provider is not None:
        for endpoint in _of_provider(console, provider):
            yield Route(endpoint.path, endpoint)
    yield from assets.routes()


def _of_provider(console: Console, configuration: Configuration) -> Iterator[Endpoint]:
    # Only where there is a provider: to import the client of one takes a while.
    from normata.console.sign_in.oidc import SingleSignOn  # noqa: PLC0415
    from normata.identity.openid.provider import Provider  # noqa: PLC0415

    pages = SingleSignOn(Provider(configuration))
    yield Endpoint(console, "/sign-in/oidc/", get=pages.start)
    yield Endpoint(console, CALLBACK, get=pages.finish)
