"""Pages: HTML from templates, with the headers that every page has."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse, Response

from normata.console.static import Assets
from normata.console.texts import text
from normata.web.context import RequestContext

_TEMPLATES = Path(__file__).with_name("templates")

# Nothing but our own files, no script or style within a page, in nobody's frame, and forms that send to us alone.
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self';"
    " frame-ancestors 'none'; base-uri 'none'"
)
HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
}


def moment(at: str | None) -> Markup:
    """A moment of the wire, for people: to the minute, in UTC. A dash where there is none."""
    if at is None:
        return Markup("&ndash;")
    return Markup('<time datetime="{}">{} {} UTC</time>').format(at, at[:10], at[11:16])


class Pages:
    """Renders the templates of the console; every one extends ``base.html``."""

    def __init__(self, assets: Assets) -> None:
        self._templates = Environment(
            loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True
        )
        self._templates.globals["text"] = text
        self._templates.filters["moment"] = moment
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
        )
        return HTMLResponse(html, status, {**HEADERS, **(headers or {})})

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
