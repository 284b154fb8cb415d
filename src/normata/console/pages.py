"""Pages: HTML from templates, with the headers that every page has."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from jinja2 import (
    BaseLoader,
    BytecodeCache,
    ChoiceLoader,
    Environment,
    FileSystemBytecodeCache,
    FileSystemLoader,
    ModuleLoader,
    StrictUndefined,
)
from jinja2.bccache import Bucket
from starlette.responses import HTMLResponse, Response
from starlette.types import Receive, Scope, Send

from normata import __version__
from normata.console import filters
from normata.console.filters import FILTERS, READER, TESTS, Reader, zone_of
from normata.console.pictures import PICTURES
from normata.console.static import Assets
from normata.console.texts import counted, has_text, text
from normata.core.http.content import Content
from normata.core.http.context import RequestContext, context_of
from normata.core.schema import paging
from normata.errors import NotFound
from normata.identity.preferences import Preferences
from normata.identity.sessions.sessions import Visitor
from normata.recurrences.dates import FREQUENCIES

_TEMPLATES = Path(__file__).with_name("templates")
COMPILED = Path(__file__).with_name("compiled")  # a wheel has the templates there as Python
_COMPONENTS = ("basics", "layout", "tables", "forms")
ZONE_COOKIE = "normata-zone"  # set by app.js; it is no secret, and nothing depends on it
_METHODS = frozenset(dir(dict))

# Only our own files, no inline script or style, no frames, and forms that only we receive. With trusted types, no
# script can turn text into markup or code.
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
    """A page, compressed as the browser accepts.

    A secret is shown on one page only, once, so that the lengths of many compressed pages reveal nothing (BREACH).
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del receive
        content = Content(bytes(self.body), b"text/html; charset=utf-8", b"no-store", b"accept-encoding, cookie")
        made = await content.representation(context_of(scope).headers)
        taken = {name for name, _ in made.headers}
        more = [(name, value) for name, value in self.raw_headers if name not in taken]
        fields = [(name, value) for name, value in made.headers if name != b"etag"]  # no browser stores the page
        await send({"type": "http.response.start", "status": self.status_code, "headers": [*fields, *more]})
        await send({"type": "http.response.body", "body": made.body})


class _Templates(Environment):
    """Looks into dictionaries first, because most values are some: a list takes 3,000 lookups."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        """The value of ``obj.attribute`` in a template. As in Jinja, methods have precedence over items."""
        if type(obj) is dict and attribute in obj and attribute not in _METHODS:
            return obj[attribute]
        try:
            return getattr(obj, attribute)
        except AttributeError:
            return super().getattr(obj, attribute)


class Components:
    """The components of pages: the macros of the templates in ``components``, by name."""

    def __init__(self, environment: Environment) -> None:
        for name in _COMPONENTS:
            for macro, made in vars(environment.get_template(f"components/{name}.html").module).items():
                if not macro.startswith("_"):
                    setattr(self, macro, made)


def _loader() -> BaseLoader:
    sources = FileSystemLoader(_TEMPLATES)
    return ChoiceLoader([ModuleLoader(COMPILED), sources]) if COMPILED.is_dir() else sources


def _bytecode() -> BytecodeCache | None:
    """Where a checkout keeps its compiled templates, as Python keeps modules; null in a wheel.

    The names of the files depend on the code that has a say in what a template is compiled to.
    """
    if COMPILED.is_dir():
        return None
    code = sha256(b"".join(Path(file).read_bytes() for file in (__file__, filters.__file__))).hexdigest()
    return _Bytecode(str(Path(__file__).with_name("__pycache__")), f"{code[:12]}-%s.template")


class _Bytecode(FileSystemBytecodeCache):
    """Writes where Python writes bytecode, too."""

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep what was compiled, if it can be kept."""
        if not sys.dont_write_bytecode:
            with suppress(OSError):
                super().dump_bytecode(bucket)


def compile_templates(folder: Path) -> None:
    """Write all templates into a folder as Python, which each worker would otherwise make of each at its first use."""
    environment().compile_templates(folder, zip=None, ignore_errors=False)


@cache  # compiling a template takes longer than rendering ten pages
def environment() -> Environment:
    """The environment of all templates, with the globals ``ui`` (the components) and ``pictures``."""
    templates = _Templates(
        loader=_loader(),
        bytecode_cache=_bytecode(),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        auto_reload=False,  # templates do not change while the service runs
    )
    templates.globals |= {"text": text, "counted": counted, "has_text": has_text, "version": __version__}
    templates.globals |= {"frequencies": FREQUENCIES}
    templates.globals |= {"most_counted": lambda: paging.MOST_COUNTED}
    templates.filters |= FILTERS
    templates.tests |= TESTS
    templates.globals |= {"pictures": PICTURES, "ui": Components(templates)}
    return templates


class Pages:
    """Renders the templates of the console, which all extend ``base.html``."""

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
        """Render a page with the request's prefix, id, theme and time zone."""
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
        """The page for a problem with the members of RFC 9457."""
        is_bare = body["detail"] == NotFound.message  # the title says as much
        return self.render(
            "message.html",
            context,
            status=body["status"],
            headers=headers,
            title=body["title"],
            message=text("problem.not_found") if is_bare else body["detail"],
            visitor=None,
        )


def note_reader(context: RequestContext) -> None:
    """Set the time zone and date format of this request: the person's preferences, or else the browser's cookie."""
    preferred = context.session.preferences if isinstance(context.session, Visitor) else Preferences()
    READER.set(Reader(zone_of(preferred.time_zone or _cookie(context, ZONE_COOKIE)), preferred.date_format))


def _cookie(context: RequestContext, name: str) -> str:
    """The value of a cookie; empty if it is missing."""
    sent = context.headers.get(b"cookie", b"").decode("latin-1")
    pairs = (pair.strip().partition("=") for pair in sent.split(";"))
    return next((unquote(value) for found, _, value in pairs if found == name), "")
