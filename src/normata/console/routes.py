"""The routes of all pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from starlette.routing import Route

from normata.console import calendar
from normata.console.account.calendar import change_calendar
from normata.console.account.mail import change_mail
from normata.console.account.name import change_name
from normata.console.account.page import end_session, show_account
from normata.console.account.passkeys import add_passkey, creation_options, remove_passkey
from normata.console.account.password import change_password
from normata.console.account.preferences import change_preferences
from normata.console.account.tokens import make_token, revoke_token
from normata.console.app.routes import app_endpoints
from normata.console.page_request import Console, Endpoint
from normata.console.pages import Pages
from normata.console.sign_in.forgotten import mail_link, show_forgotten
from normata.console.sign_in.invitation import accept_invitation, show_invitation
from normata.console.sign_in.link import show_link, use_link
from normata.console.sign_in.passkey import sign_in_options, use_passkey
from normata.console.sign_in.password import use_password
from normata.console.sign_in.session import sign_out
from normata.console.sign_in.start import start
from normata.console.sign_in.typed import ask_to_sign_in
from normata.console.site import Site
from normata.console.static import Assets
from normata.console.throttles import Throttles
from normata.console.unsubscribe import show_unsubscribe, unsubscribe
from normata.console.vendor import pages as vendor
from normata.core.http.operation import Operation
from normata.core.http.services import Services
from normata.identity.openid.configuration import CALLBACK, Configuration, single_sign_on
from normata.identity.sign_in.passwords import Hashing
from normata.identity.sign_in.webauthn import RelyingParty
from normata.notifications import unsubscribing
from normata.settings import Settings
from normata.vendors import links as vendor_links


def console_routes(services: Services, settings: Settings, operations: Iterable[Operation]) -> Iterator[Route]:
    """The routes of pages, styles and scripts. Pages read and change with ``operations``."""
    assets = Assets()
    site = Site(settings.public_url, is_chosen=settings.has_public_url)
    provider = single_sign_on(settings)
    console = Console(
        services,
        settings,
        site,
        Pages(assets),
        provider=None if provider is None else provider.name,
        hashing=Hashing(workers=settings.workers),
        throttles=Throttles(services.changes, settings.sign_in_limit),
        passkeys=None if site.passkey_host is None else RelyingParty(site.passkey_host, site.origin),
        operations={operation.operation_id: operation for operation in operations},
        not_signed_in=ask_to_sign_in,
    )
    endpoints = (
        Endpoint(console, "/sign-in/", get=start),
        Endpoint(console, "/sign-in/password/", post=use_password),
        Endpoint(console, "/sign-in/forgotten/", get=show_forgotten, post=mail_link),
        Endpoint(console, "/sign-in/passkey/", post=use_passkey),
        Endpoint(console, "/sign-in/passkey/options/", post=sign_in_options),
        Endpoint(console, "/sign-in/link/", get=show_link, post=use_link),
        Endpoint(console, "/sign-in/invitation/", get=show_invitation, post=accept_invitation),
        Endpoint(console, "/sign-out/", post=sign_out),
        Endpoint(console, unsubscribing.PATH, get=show_unsubscribe, post=unsubscribe, is_open=True),
        Endpoint(console, calendar.PATH, get=calendar.show_calendar, is_open=True),
        Endpoint(console, vendor_links.OPENING, get=vendor.open_link),
        Endpoint(console, vendor_links.PATH, get=vendor.show, post=vendor.save),
        Endpoint(console, vendor.FINISH, get=vendor.show_finish, post=vendor.finish),
        Endpoint(console, "/account/", get=show_account),
        Endpoint(console, "/account/name/", post=change_name),
        Endpoint(console, "/account/preferences/", post=change_preferences),
        Endpoint(console, "/account/mail/", post=change_mail),
        Endpoint(console, "/account/calendar/", post=change_calendar),
        Endpoint(console, "/account/sessions/", post=end_session),
        Endpoint(console, "/account/password/", post=change_password),
        Endpoint(console, "/account/passkeys/", post=add_passkey),
        Endpoint(console, "/account/tokens/", post=make_token),
        Endpoint(console, "/account/tokens/revoke/", post=revoke_token),
        Endpoint(console, "/account/passkeys/options/", post=creation_options),
        Endpoint(console, "/account/passkeys/remove/", post=remove_passkey),
    )
    for endpoint in (*endpoints, *app_endpoints(console)):
        yield Route(endpoint.path, endpoint)
    if provider is not None:
        for endpoint in _of_provider(console, provider):
            yield Route(endpoint.path, endpoint)
    yield from assets.routes()


def _of_provider(console: Console, configuration: Configuration) -> Iterator[Endpoint]:
    # Importing the client takes a while, so only do so if there is a provider.
    from normata.console.sign_in.oidc import SingleSignOn  # noqa: PLC0415
    from normata.identity.openid.provider import Provider  # noqa: PLC0415

    pages = SingleSignOn(Provider(configuration))
    yield Endpoint(console, "/sign-in/oidc/", get=pages.start, post=pages.start_with_form)
    yield Endpoint(console, CALLBACK, get=pages.finish)
    yield Endpoint(console, "/account/provider/", post=pages.connect)
    yield Endpoint(console, "/account/provider/remove/", post=pages.disconnect)
