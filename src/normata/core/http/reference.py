"""The reference of the API as a page, made from the OpenAPI document, without scripts."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup, escape

from normata.core.http.openapi_types import Component, type_parts

_FOLDER = Path(__file__).parent
_METHODS_WITH_BODY = ("post", "put", "patch")


def page(document: Mapping[str, Any]) -> str:
    """The page of a document. Its links to the service start with a slash, as if it were served without a prefix."""
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"type": _type, "markdown": _markdown, "json": _json}
    by_tag: dict[str, list[dict[str, Any]]] = {str(tag["name"]): [] for tag in document["tags"]}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            by_tag[operation["tags"][0]].append(
                {
                    **operation,
                    "method": method.upper(),
                    "path": path,
                    "curl": _curl(method, path, operation),
                    "successes": {s: one for s, one in operation["responses"].items() if s < "400"},
                    "errors": {s: one for s, one in operation["responses"].items() if s >= "400"},
                }
            )
    return environment.get_template("reference.html").render(
        info=document["info"],
        tags=document["tags"],
        operations=by_tag,
        schemas=document["components"]["schemas"],
        style=Markup(_style()),  # noqa: S704 - our own file
    )


@cache
def content_security_policy() -> bytes:
    """The policy of the page: it allows only its own style."""
    digest = base64.b64encode(hashlib.sha256(_style().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; frame-ancestors 'none'".encode()


@cache
def _style() -> str:
    return (_FOLDER / "reference.css").read_text("utf-8")


def _type(schema: Mapping[str, Any]) -> Markup:
    """A type, where each component leads to its description."""
    return Markup("").join(
        Markup('<a href="#{0}">{0}</a>').format(part) if isinstance(part, Component) else escape(part)
        for part in type_parts(schema)
    )


def _markdown(text: str) -> Markup:
    # HTML in the text is shown as text.
    return Markup(_renderer().render(text))  # noqa: S704


@cache
def _renderer() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable("table")


def _json(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def _curl(method: str, path: str, operation: Mapping[str, Any]) -> str:
    """A curl command with the required parameters, and the example of a body."""
    example_id = _example_id(operation)
    query = "&".join(
        f"{one['name']}={'ORGANIZATION' if one['name'] == 'organizationId' else one['name'].upper()}"
        for one in operation.get("parameters", ())
        if one["in"] == "query" and one["required"]
    )
    address = path.replace("{id}", example_id) + (f"?{query}" if query else "")
    command = "curl" if method == "get" else f"curl -X {method.upper()}"
    lines = [f'{command} "$NORMATA{address}"', '-H "Authorization: Bearer $TOKEN"']
    if method in _METHODS_WITH_BODY and "requestBody" in operation:
        media_type, content = next(iter(operation["requestBody"]["content"].items()))
        body = json.dumps(content["example"], ensure_ascii=False) if "example" in content else ""
        quoted = body.replace("'", "'\\''")
        lines += [f"-H 'Content-Type: {media_type}'", f"-d '{quoted}'" if len(body) <= 1_000 else "-d @body.json"]
    return " \\\n  ".join(lines)


def _example_id(operation: Mapping[str, Any]) -> str:
    """The id of what the example of an answer shows, as far as it needs no escape."""
    for response in operation["responses"].values():
        example = response.get("content", {}).get("application/json", {}).get("example")
        found = example.get("id") if isinstance(example, dict) else None
        if isinstance(found, str) and re.fullmatch(r"[A-Za-z0-9._~-]+", found):
            return found
    return "ID"
