"""A request to a page of the console, and how it is answered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote

from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from normata.console.pages import HEADERS, Pages, note_reader
from normata.console.return_path import safe_path
from normata.console.site import Site
from normata.console.texts import refusal, text
from normata.console.throttles import Throttles
from normata.core.changes.unit_of_work import Actor, UnitOfWork
from normata.core.db.security import Write
from normata.core.db.transaction import NO_ORGANIZATION, TenantScope
from normata.core.db.types import now
from normata.core.http.context import RequestContext, context_of
from normata.core.http.negotiation import Headers
from normata.core.http.operation import Operation
from normata.core.http.problems import InvalidRequest, MethodNotAllowed, UnsupportedMediaType
from normata.core.http.services import Services
from normata.core.log import logger
from normata.identity.errors import SignInRefused
from normata.identity.last_use import SessionUse
from normata.identity.secrets import digest_of, is_secret
from normata.identity.sessions import sessions
from normata.identity.sessions.lookup import SESSION_LOOKUP
from normata.identity.sessions.sessions import Visitor
from normata.identity.sign_in.passwords import Hashing
from normata.identity.sign_in.webauthn import RelyingParty
from normata.settings import Settings

T = TypeVar("T")

SESSION_COOKIE = "normata-session"
_FORM = b"application/x-www-form-urlencoded"
_MAX_FIELDS = 20


class NotSignedIn(Exception):
    """The page requires a signed-in person."""


@dataclass(frozen=True, slots=True)
class Console:
    """What all pages share. ``provider`` is the display name of the OpenID provider; null if there is none.

    ``passkeys`` is null if no browser makes any for the site. ``operations`` has all operations of the interface, by
    their ids. ``not_signed_in`` answers whoever has to sign in first.
    """

    services: Services
    settings: Settings
    site: Site
    pages: Pages
    hashing: Hashing
    throttles: Throttles
    passkeys: RelyingParty | None
    operations: Mapping[str, Operation]
    not_signed_in: Handler
    provider: str | None = None


class PageRequest:
    """A request to a page."""

    def __init__(self, console: Console, request: Request) -> None:
        self.console = console
        self.request = request
        self.context: RequestContext = context_of(request.scope)
        note_reader(self.context)

    @property
    def query(self) -> Mapping[str, str]:
        """The parameters of the query; the last value of a repeated one."""
        return self.request.query_params

    def values(self, name: str) -> list[str]:
        """All values of a parameter of the query that may be repeated, but empty ones."""
        return [value for value in self.request.query_params.getlist(name) if value]

    @property
    def address(self) -> str:
        """The client's IP address; empty if it is unknown."""
        return (self.request.scope.get("client") or ("",))[0]

    @property
    def user_agent(self) -> str:
        """The ``User-Agent`` header, without characters that do not print."""
        sent = self.context.headers.get(b"user-agent", b"").decode("latin-1")
        return "".join(character for character in sent if character.isprintable())

    async def form(self) -> Mapping[str, str]:
        """The fields of the form. Raises UnsupportedMediaType, InvalidRequest and TooLarge."""
        return dict(await self.form_pairs(_MAX_FIELDS))

    async def form_pairs(self, most: int) -> list[tuple[str, str]]:
        """The names and values of the form, at most ``most`` pairs. Raises what :meth:`form` raises."""
        media_type = self.context.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if media_type != _FORM:
            raise UnsupportedMediaType(text("problem.form"))
        try:
            body = await self.request.body()
            pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=most, errors="strict")
        except (ClientDisconnect, ValueError):
            raise InvalidRequest(text("problem.form")) from None
        return [(name, value.replace("\0", "")) for name, value in pairs]

    def cookie(self, name: str) -> str:
        """The value of one of our cookies; empty if it is missing."""
        return self.request.cookies.get(self.console.site.cookie_name(name), "")

    async def visitor(self) -> Visitor | None:
        """Who is signed in with this browser; null for nobody."""
        secret = self.cookie(SESSION_COOKIE)
        if not is_secret(secret):
            return None
        services, moment = self.console.services, now()
        found = await services.database.look_up(SESSION_LOOKUP, digest_of(secret))
        visitor = sessions.visitor(found, moment)
        if visitor is not None:
            self.context.session = visitor
            note_reader(self.context)
            services.means[SessionUse].note(visitor.session_id, visitor.user_id, found[0].last_used_at, moment)
        return visitor

    async def required_visitor(self) -> Visitor:
        """Who is signed in with this browser. Raises NotSignedIn."""
        visitor = await self.visitor()
        if visitor is None:
            raise NotSignedIn
        return visitor

    def require_local_sign_in(self) -> None:
        """Raise SignInRefused if the provider is the only way to sign in."""
        if not self.console.settings.local_sign_in:
            raise SignInRefused("local_sign_in_off")

    async def change_own(self, visitor: Visitor, work: Callable[[UnitOfWork], T], writes: Sequence[Write] = ()) -> T:
        """Change rows that belong to the visitor, and return what ``work`` returns."""
        return await self.console.services.changes.make(
            work,
            actor=self.actor(visitor.user_id, visitor.user_name),
            scope=TenantScope(
                readable=tuple(one.organization_id for one in visitor.memberships),
                writable=(NO_ORGANIZATION,),
                users=(visitor.user_id,),
            ),
            writes=writes,
        )

    def actor(self, user_id: str | None, user_name: str = "") -> Actor:
        """The user as the actor of this request's changes."""
        return Actor(user_id, user_name, None, self.context.request_id, self.address)

    def page(
        self, template: str, *, status: int = 200, headers: Mapping[str, str] | None = None, **values: Any
    ) -> Response:
        """Render a page."""
        return self.console.pages.render(template, self.context, status=status, headers=headers, **values)

    def redirect(self, path: str, headers: Mapping[str, str] | None = None) -> Response:
        """Redirect to one of our paths."""
        return RedirectResponse(f"{self.context.prefix}{path}", 303, {**HEADERS, **(headers or {})})

    def note_refusal(self, error: SignInRefused) -> None:
        """Log and count a refused sign-in: its cause, and nothing about the person."""
        self.context.problem, self.context.reason = "sign_in_refused", error.cause
        logger.warning("sign_in_refused", request_id=self.context.request_id, cause=error.cause)

    def refusal(self, error: SignInRefused) -> Response:
        """The page of a refused sign-in, with the id of the request."""
        self.note_refusal(error)
        title, message = text("refused.title"), refusal(error.cause)
        status, headers = (429, {"Retry-After": str(error.wait)}) if error.wait else (403, {})
        return self.page("message.html", status=status, headers=headers, title=title, message=message, visitor=None)


Handler = Callable[[PageRequest], Awaitable[Response]]


class Endpoint:
    """A page at ``path``, with a handler for GET and one for POST.

    It protects every page alike: a POST must come from one of our pages (CSRF), no page is served where others could
    read cookies on the network, and every refusal is a page, too. An open page is not protected: it uses no cookies,
    and the address of the page says what it may do.
    """

    def __init__(
        self,
        console: Console,
        path: str,
        *,
        get: Handler | None = None,
        post: Handler | None = None,
        is_open: bool = False,
    ) -> None:
        self.path = path
        self.is_open = is_open
        self._console = console
        self._handlers = {
            method: handler for method, handler in (("GET", get), ("HEAD", get), ("POST", post)) if handler is not None
        }

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods with a handler."""
        return tuple(self._handlers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request. The gateway answers errors, with a page."""
        context, console = context_of(scope), self._console
        context.route = self.path
        context.problem_page = lambda body, headers: console.pages.problem(body, headers, context)
        handler = self._handlers.get(scope["method"])
        if handler is None:
            raise MethodNotAllowed(headers={"Allow": ", ".join(sorted(self._handlers))})
        page_request = PageRequest(console, Request(scope, receive))
        response = await self._answer(page_request, handler)
        await response(scope, receive, send)

    async def _answer(self, page_request: PageRequest, handler: Handler) -> Response:
        try:
            if not self.is_open:
                require_safe_site(self._console.site)
            if page_request.request.method not in SAFE_METHODS and not self.is_open:
                require_own_page(page_request.context.headers, self._console.site)
            return await handler(page_request)
        except SignInRefused as error:
            return page_request.refusal(error)
        except NotSignedIn:
            return await self._console.not_signed_in(page_request)


def returning(page_request: PageRequest) -> str:
    """The query that leads back to this page after signing in; empty if there is no page to come back to."""
    if page_request.request.method not in SAFE_METHODS:
        return ""
    query = page_request.request.scope["query_string"].decode("latin-1")
    wanted = safe_path(page_request.context.raw_path + (f"?{query}" if query else ""))
    return f"?return_to={quote(wanted, safe='')}" if wanted else ""


SAFE_METHODS = frozenset({"GET", "HEAD"})


def require_safe_site(site: Site) -> None:
    """Raise SignInRefused unless TLS or localhost protects cookies on the network."""
    if not site.is_safe:
        raise SignInRefused("not_encrypted")


def require_own_page(headers: Headers, site: Site) -> None:
    """Raise SignInRefused unless a request comes from one of our pages, or from an address that the person entered.

    Modern browsers say so in ``Sec-Fetch-Site`` (W3C Fetch Metadata), which no page can set. Old ones, and all browsers
    without TLS or localhost, send ``Origin`` with every POST. A client that sends neither is no browser with one of our
    forms.

    With DNS rebinding, a foreign name leads to this service, and is the same origin to the browser. So if the setting
    has our public URL, ``Origin`` and ``Host`` must match it. Without the setting, ``Host`` is trusted.
    """
    host = headers.get(b"host", b"").decode("latin-1").lower()
    origin = headers.get(b"origin", b"").decode("latin-1")
    fetched = headers.get(b"sec-fetch-site")
    if site.is_chosen and not site.is_at(host):
        raise SignInRefused("other_host")
    if fetched is None and not origin:
        raise SignInRefused("origin_missing")
    if fetched not in (None, b"same-origin", b"none"):
        raise SignInRefused("cross_site")
    is_named = origin not in ("", "null")  # a browser that hides the origin sends null
    is_ours = origin == site.origin or (not site.is_chosen and _is_origin_of(host, origin))
    if not is_ours and (fetched is None or (site.is_chosen and is_named)):
        raise SignInRefused("cross_site")


def _is_origin_of(host: str, origin: str) -> bool:
    scheme, _, named = origin.partition("://")
    return scheme in ("http", "https") and bool(host) and named == host
