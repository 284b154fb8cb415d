"""Pages: HTML from templates, with the headers that every page has."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse, Response
from starlette.types import Receive, Scope, Send

from normata.console.filters import FILTERS
from normata.console.static import Assets
from normata.console.texts import has_text, text
from normata.core.http.content import Content
from normata.core.http.context import RequestContext, context_of

_TEMPLATES = Path(__file__).with_name("templates")
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


@cache  # each template is compiled when it is first rendered, which takes longer than ten pages
def _environment() -> Environment:
    """The templates, with what they all may call."""
    templates = _Templates(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        auto_reload=False,  # nobody changes them while they are served
    )
    templates.globals |= {"text": text, "has_text": has_text}
    templates.filters |= FILTERS
    return templates


class Pages:
    """Renders the templates of the console; every one extends ``base.html``."""

    def __init__(self, assets: Assets) -> None:
        self._templates = _environment()
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
        html = self._templates.get_template(template).render(
            values,
            asset=lambda name: prefix + self._assets.path(name),
            path=lambda path: prefix + path,
            request_id=context.request_id,
            is_signed_in=context.session is not None,
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
