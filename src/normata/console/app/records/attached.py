"""The files of records: downloading them."""

from __future__ import annotations

from starlette.responses import Response

from normata.console.app.organization_request import OrganizationRequest


async def download(page_request: OrganizationRequest) -> Response:
    """A file, as an attachment: in whole, or a part of it."""
    return await page_request.sent_file("downloadFile", page_request.param("id"))
