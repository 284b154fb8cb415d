"""Signing in with a link, which the command line has printed or a mail contains."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from normata.console.page_request import PageRequest
from normata.console.return_path import safe_path
from normata.console.sign_in.session import Proof, start_session
from normata.core.db.types import now
from normata.identity.errors import SignInRefused
from normata.identity.secrets import digest_of, is_secret
from normata.identity.sign_in import links as sign_in_links


async def show_link(page_request: PageRequest) -> Response:
    """Ask whether to sign in. Only the button uses the link up, because mail scanners and previews open it, too."""
    secret = page_request.query.get("secret", "")
    row = await _open_link(page_request, secret)
    return page_request.page(
        "link.html",
        secret=secret,
        return_to=safe_path(page_request.query.get("return_to", "")),
        name=row.user_name,
        visitor=await page_request.visitor(),
    )


async def use_link(page_request: PageRequest) -> Response:
    """Sign in as the user of the link. Raises SignInRefused."""
    form = await page_request.form()
    row = await _open_link(page_request, form.get("secret", ""))
    proof = Proof(
        means="link",
        user_id=row.user_id,
        user_name=row.user_name,
        work=lambda unit: sign_in_links.use(unit, row.link_id),
        writes=sign_in_links.USE_WRITES,
    )
    return await start_session(page_request, proof, form.get("return_to", ""))


async def _open_link(page_request: PageRequest, secret: str) -> Any:
    """The valid link with this secret. Raises SignInRefused."""
    if not is_secret(secret):
        raise SignInRefused("link_malformed")
    found = await page_request.console.services.database.look_up(sign_in_links.SIGN_IN_LINK_LOOKUP, digest_of(secret))
    if not found:
        raise SignInRefused("link_unknown")
    if found[0].used_at is not None:
        raise SignInRefused("link_used")
    if found[0].expires_at <= now():
        raise SignInRefused("link_expired")
    return found[0]
