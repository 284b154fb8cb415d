"""The OpenAPI document, and the page that shows it without reaching for anything outside this service."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import fastapi_offline
from fastapi import FastAPI, Request, Response
from fastapi.openapi.docs import get_redoc_html
from fastapi.openapi.utils import get_openapi
from fastapi.responses import FileResponse

from normata import __version__
from normata.demo import record_bundle
from normata.frameworks.examples import CONTROL_PAGE, FRAMEWORK_PAGE
from normata.http import JsonResponse, add_page, documented
from normata.notifications.examples import NOTIFICATION_PAGE
from normata.records.base import Restorable
from normata.records.routes import IntegrationCheckRestore
from normata.wire import wire_names

_ASSETS = Path(fastapi_offline.__file__).parent / "static"
_RESTORED_AT = "2026-11-20T09:14:03.120Z"

DESCRIPTION = """\
Normata is a self-hosted compliance service. An organization adopts frameworks, states how far it covers each control,
and sees at once what that means across frameworks that map onto each other. The records of its management system are
kept here, too; what has been archived can be restored.

## First steps

`normata demo` prints an organization, a token and requests to paste. Every request needs a token:

```
curl -H 'Authorization: Bearer <ACCESS_TOKEN>' 'http://127.0.0.1:8000/frameworks/?organizationId=org-harbourlight'
```

An operator makes tokens with `normata token create --user EMAIL --scope read|write`. A token acts as its user, until it
expires or is revoked. Lists take membership of the organization and the scope `read` or `write`; restores take a role
of editor or more and the scope `write`. What you cannot see does not exist: an organization or record of somebody
else's is answered as one that is not there.

## Conventions

- Bodies are JSON. Every field is present in every answer, `null` where there is no value.
- Timestamps are RFC 3339 in UTC with milliseconds: `2026-11-20T09:14:03.120Z`.
- Identifiers are opaque strings of 1 to 128 characters.
- Enumerations whose values are listed under `x-extensible-enum` may grow: take a value that you do not know for what
  it is. Coverage status, match level and control type are closed.
- Paths work with and without the slash at the end.
- Every answer carries `X-Request-Id`; send one of your own to find your request in the log.

## Lists

Lists come in pages: `limit` from 5 to 100 (100 unless said), `page` from 1. `total` counts what the filters leave. A
page past the end has no items. Every order ends with the id, so that pages never overlap, and null sorts last.

## Errors

Whatever is not a success is a problem (RFC 9457) with a `code` that programs can rely on. A request that is not valid
is told all its faults at once, each with its place. 503 means that the database cannot be reached, or not in time, and
`Retry-After` says when to ask again. A restore that was on its way just then may have been done all the same: the next
try is told `not_archived`.
"""

_TAGS = [
    {
        "name": "Frameworks",
        "description": "Catalogs of controls, which of them the organization has adopted, and how far it covers them.",
    },
    {"name": "Notifications", "description": "What the service has to tell the current user."},
    {
        "name": "Restore",
        "description": (
            "Bringing archived records back: one contract for sixteen kinds. The record must be archived (else 409"
            " `not_archived`) and its slug must be free (else 409 `slug_taken`, with the `conflictingId` of the live"
            " record that has it). Nothing but the archived state changes, an audit event is written, and the member"
            " who answers for the record is notified, all in one transaction: what is answered with 200 is stored."
        ),
    },
]

METADATA: dict[str, Any] = {
    "title": "Normata",
    "version": __version__,
    "summary": "A self-hosted compliance service: frameworks, live coverage, and records that are never lost.",
    "description": DESCRIPTION,
    "openapi_tags": _TAGS,
    "license_info": {"name": "Apache License 2.0", "identifier": "Apache-2.0"},
}


def install(app: FastAPI) -> None:
    """Serve the document at /openapi.json and its page at /docs, in place of FastAPI's own."""

    @cache
    def document() -> dict[str, Any]:
        return _polished(
            get_openapi(
                title=app.title,
                version=app.version,
                summary=app.summary,
                description=app.description,
                tags=app.openapi_tags,
                license_info=app.license_info,
                routes=sorted(documented.routes, key=_place),
            )
        )

    app.openapi = document  # type: ignore[method-assign]

    async def openapi_json() -> Response:
        return JsonResponse(document())

    async def docs(request: Request) -> Response:
        root = request.scope.get("root_path", "")
        page = get_redoc_html(
            openapi_url=f"{root}/openapi.json",
            title="Normata",
            redoc_js_url=f"{root}/docs/redoc.js",
            redoc_favicon_url="data:,",
            with_google_fonts=False,
        )
        # The policy is what makes sure that a closed network is enough: the browser asks nobody else, whatever the
        # script would like to load.
        page.headers["Content-Security-Policy"] = (
            "default-src 'none'; connect-src 'self'; img-src 'self' data:; font-src data:; worker-src blob:;"
            " script-src 'self' 'unsafe-inline' blob:; style-src 'unsafe-inline'; frame-ancestors 'none'"
        )
        return page

    async def redoc() -> Response:
        return FileResponse(_ASSETS / "redoc.standalone.js", headers={"Cache-Control": "public, max-age=86400"})

    for path, endpoint in (("/openapi.json", openapi_json), ("/docs", docs), ("/docs/redoc.js", redoc)):
        add_page(app.router, path, endpoint)


def _place(route: object) -> int:
    """Where an operation stands: in the order of the tags, not in that in which modules happen to be imported."""
    return next((place for place, tag in enumerate(_TAGS) if tag["name"] in getattr(route, "tags", ())), len(_TAGS))


def _polished(document: dict[str, Any]) -> dict[str, Any]:
    """FastAPI's document, made to say exactly what is served."""
    document["servers"] = [{"url": "/"}]
    document["security"] = [{"bearer": []}]
    components = document["components"]
    components["securitySchemes"] = {
        "bearer": {"type": "http", "scheme": "bearer", "description": "An access token: `Bearer <ACCESS_TOKEN>`."}
    }
    components["headers"] = {
        "RequestId": {
            "description": "Names the request in the log.",
            "required": True,
            "schema": {"type": "string"},
        }
    }
    schemas = components["schemas"]
    schemas["IntegrationCheckRestore"] = IntegrationCheckRestore.model_json_schema(by_alias=True)
    # Faults are told as problems with 400; FastAPI's own shape for them, and its 422, never leave the service.
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    for schema in schemas.values():
        _drop_titles(schema)
    for path in document["paths"].values():
        for operation in path.values():
            _polish_operation(operation)
    _add_examples(document)
    return document


def _polish_operation(operation: dict[str, Any]) -> None:
    operation["responses"].pop("422", None)
    for parameter in operation.get("parameters", ()):
        schema = dict(parameter["schema"])
        # A parameter is left out or has a value: there is no null in a query.
        for alternative in schema.pop("anyOf", ()):
            if alternative != {"type": "null"}:
                schema |= alternative
        parameter["description"] = parameter.get("description") or schema["description"]
        parameter["schema"] = {name: value for name, value in schema.items() if name not in ("title", "description")}
    for response in operation["responses"].values():
        response.setdefault("headers", {})["X-Request-Id"] = {"$ref": "#/components/headers/RequestId"}


def _drop_titles(schema: Any) -> None:
    """Remove the titles that Pydantic makes of field names: they say nothing that the names do not."""
    if isinstance(schema, list):
        for item in schema:
            _drop_titles(item)
    elif isinstance(schema, dict):
        for name, value in schema.items():
            if name == "properties":
                for field in value.values():
                    field.pop("title", None)
            _drop_titles(value)


def _add_examples(document: dict[str, Any]) -> None:
    """Give every operation an example of its success; those of restores are the demo's own records."""
    examples: dict[str, Any] = {
        "/controls/": CONTROL_PAGE,
        "/frameworks/": FRAMEWORK_PAGE,
        "/notifications/": NOTIFICATION_PAGE,
    }
    records = json.loads(record_bundle().read_text("utf-8"))
    for kind in Restorable.kinds:
        archived = next((record for record in records.get(kind.path, ()) if record.get("archivedAt")), None)
        if archived is not None:
            examples[f"/{kind.path}/{{id}}/restore/"] = None if kind.answers_null else _restored(kind, archived)
    for path, example in examples.items():
        (operation,) = document["paths"][path].values()
        content = operation["responses"]["200"]["content"]["application/json"]
        content["example"] = example
        if example is None:
            content["schema"] = {"type": "null"}


def _restored(kind: type[Restorable], record: dict[str, Any]) -> dict[str, Any]:
    restored = {name: record.get(name) for name in wire_names(kind).values()} | {"archivedAt": None}
    return restored | {"updatedAt": _RESTORED_AT} if "updatedAt" in restored else restored
