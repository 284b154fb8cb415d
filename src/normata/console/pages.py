"""Pages: HTML from templates, with the headers that every page has."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse, Response
from starlette.types import Receive, Scope, Send

from normata import __version__
from normata.console.filters import FILTERS, READER, TESTS, Reader, zone_of
from normata.console.pictures import PICTURES
from normata.console.static import Assets
from normata.console.texts import counted, has_text, text
from normata.core.http.content import Content
from normata.core.http.context import RequestContext, context_of
from normata.identity.preferences import Preferences
from normata.identity.sessions.sessions import Visitor

_TEMPLATES = Path(__file__).with_name("templates")
_COMPONENTS = ("basics", "layout", "tables", "forms")
ZONE_COOKIE = "normata-zone"  # set by app.js: no secret, and nothing is trusted to it
_METHODS = frozenset(dir(dict))

# Nothing but our own files, no script or style within a page, in nobody's frame, and forms that send to us alone. No
# script can make markup or code of a text.
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self';"
    " frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
}


class HtmlPage(HTMLResponse):
    """A page, in the content coding that the browser wants.

    A secret is on one page once, so that nobody can guess at it by the lengths of many (BREACH).
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        del receive
        content = Content(bytes(self.body), b"text/html; charset=utf-8", b"no-store", b"accept-encoding, cookie")
        made = await content.representation(context_of(scope).headers)
        taken = {name for name, _ in made.headers}
        more = [(name, value) for name, value in self.raw_headers if name not in taken]
        fields = [(name, value) for name, value in made.headers if name != b"etag"]  # nobody keeps it, to compare
        await send({"type": "http.response.start", "status": self.status_code, "headers": [*fields, *more]})
        await send({"type": "http.response.body", "body": made.body})


class _Templates(Environment):
    """Looks into dictionaries first: almost all that pages show are some, and a list looks into them 3,000 times."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        """What a template calls ``obj.attribute``, as Jinja has it: methods come before items."""
        if type(obj) is dict and attribute in obj and attribute not in _METHODS:
            return obj[attribute]
        return super().getattr(obj, attribute)


class Components:
    """The parts that pages are made of: the macros of the templates in ``components``, by their names."""

    def __init__(self, environment: Environment) -> None:
        for name in _COMPONENTS:
            for macro, made in vars(environment.get_template(f"components/{name}.html").module).items():
                if not macro.startswith("_"):
                    setattr(self, macro, made)


@cache  # each template is compiled when it is first rendered, which takes longer than ten pages
def environment() -> Environment:
    """The templates, with what they all may call: among it ``ui``, the components, and ``pictures``."""
    templates = _Templates(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        auto_reload=False,  # nobody changes them while they are served
    )
    templates.globals |= {"text": text, "counted": counted, "has_text": has_text, "version": __version__}
    templates.filters |= FILTERS
    templates.tests |= TESTS
    templates.globals |= {"pictures": PICTURES, "ui": Components(templates)}
    return templates


class Pages:
    """Renders the templates of the console; every one extends ``base.html``."""

    def __init__(self, assets: Assets) -> None:
        self._templates = environment()
        self._assets = assets

    def render(
        self,
        template: str,
        context: RequestContext,
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        **values: Any,
    ) -> Response:
        """A page as an answer to a request."""
        prefix = context.prefix
        note_reader(context)
        session = context.session
        html = self._templates.get_template(template).render(
            values,
            asset=lambda name: prefix + self._assets.path(name),
            path=lambda path: prefix + path,
            request_id=context.request_id,
            is_signed_in=session is not None,
            theme=session.preferences.theme if isinstance(session, Visitor) else None,
        )
        return HtmlPage(html, status, {**HEADERS, **(headers or {})})

    def problem(self, body: Mapping[str, Any], headers: Mapping[str, str], context: RequestContext) -> Response:
        """The page for a problem, whose members are those of the interface's (RFC 9457)."""
        return self.render(
            "message.html",
            context,
            status=body["status"],
            headers=headers,
            title=body["title"],
            message=body["detail"],
            visitor=None,
        )


def note_reader(context: RequestContext) -> None:
    """Show the times of this request as its reader prefers, or else in the time zone of their browser."""
    preferred = context.session.preferences if isinstance(context.session, Visitor) else Preferences()
    READER.set(Reader(zone_of(preferred.time_zone or _cookie(context, ZONE_COOKIE)), preferred.date_format))


def _cookie(context: RequestContext, name: str) -> str:
    """What the browser has kept for us under a name; empty for nothing."""
    sent = context.headers.get(b"cookie", b"").decode("latin-1")
    pairs = (pair.strip().partition("=") for pair in sent.split(";"))
    return next((unquote(value) for found, _, value in pairs if found == name), "")
