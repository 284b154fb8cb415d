"""The sign-in page."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from starlette.responses import Response

from normata.console.page_request import PageRequest
from normata.console.return_path import safe_path


async def start(page_request: PageRequest) -> Response:
    """Show the ways to sign in."""
    return await start_page(page_request, return_to=page_request.query.get("return_to", ""))


async def start_page(
    page_request: PageRequest,
    *,
    return_to: str = "",
    status: int = 200,
    email: str = "",
    message: str = "",
    typed: str = "",
    was_typed: bool = False,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """The ways to sign in, and what was wrong with the last attempt.

    ``typed`` is the sealed form that goes along, see :mod:`normata.console.sign_in.typed`. ``was_typed`` is true if one
    was sent, also where it cannot be kept.
    """
    console, return_to = page_request.console, safe_path(return_to)
    query = f"?return_to={quote(return_to, safe='')}" if return_to else ""
    return page_request.page(
        "sign_in.html",
        status=status,
        headers=headers,
        typed=typed,
        was_typed=was_typed,
        visitor=await page_request.visitor(),
        return_to=return_to,
        email=email,
        message=message,
        is_local=console.settings.local_sign_in,
        has_mail=bool(console.settings.smtp_url),
        has_passkeys=console.settings.local_sign_in and console.passkeys is not None,
        provider=console.provider,
        provider_path=f"/sign-in/oidc/{query}",
    )
