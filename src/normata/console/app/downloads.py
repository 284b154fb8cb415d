"""Files to download, as operations answer them: reports, registers, and files that were uploaded."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace

from starlette.responses import Response

from normata.console.app.api_calls import ApiQuery, Query
from normata.console.app.organization_request import OrganizationRequest
from normata.console.pages import HEADERS
from normata.core.db.transaction import TenantScope
from normata.core.http.content import Content
from normata.core.http.file_answer import FileAnswer, FileResponse
from normata.core.http.list_file import ListFileResponse, format_of, list_file
from normata.core.http.operation import ListOperation
from normata.core.http.reads import Reading


async def download_report(
    page_request: OrganizationRequest, operation_id: str, row_id: str = "", **query: Sequence[str]
) -> Response:
    """A report, in the format that the address names. Raises the errors of the operation."""
    named = {**query, "format": page_request.query.get("format", "")}
    ((operation, request),) = page_request.requests_of([ApiQuery(operation_id, named, row_id)])
    assert operation.formats is not None  # noqa: S101 - narrows the type
    request = replace(request, format=operation.formats.choose(request.query, b""))
    content: Content = await page_request.read(Reading("content", [(operation, request)], _scope(page_request)))
    made = await content.representation({})
    remaining = {"content-type", "content-disposition"}
    headers = {name.decode(): value.decode("latin-1") for name, value in made.headers if name.decode() in remaining}
    return Response(made.body, headers={**HEADERS, **headers})


async def download_register(page_request: OrganizationRequest, operation_id: str, query: Query) -> Response:
    """All rows of a list, in the format that the query names. Raises the errors of the operation."""
    ((operation, request),) = page_request.requests_of([ApiQuery(operation_id, query)])
    assert isinstance(operation, ListOperation)  # noqa: S101 - narrows the type
    name = format_of(operation, request.query, b"text/csv")
    async with AsyncExitStack() as stack:
        answer = await stack.enter_async_context(
            list_file(page_request.reads, operation, request, name, page_request.request.receive)
        )
        return ListFileResponse(answer, stack.pop_all())


async def download_upload(page_request: OrganizationRequest, operation_id: str, row_id: str) -> Response:
    """An uploaded file, as the operation sends it. Raises the errors of the operation."""
    ((operation, request),) = page_request.requests_of([ApiQuery(operation_id, id=row_id)])
    found: list[FileAnswer] = await page_request.read(Reading("answers", [(operation, request)], _scope(page_request)))
    return FileResponse(found[0], page_request.context.headers)


def _scope(page_request: OrganizationRequest) -> TenantScope:
    return TenantScope(readable=(page_request.membership.organization_id,))
