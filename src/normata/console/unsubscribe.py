"""Ending mail about notifications with the link in a mail, without signing in (RFC 8058)."""

from __future__ import annotations

from urllib.parse import urlencode

from starlette.responses import Response

from normata.console.page_request import PageRequest
from normata.core.db.transaction import NO_ORGANIZATION, TenantScope
from normata.events.keys import Signer
from normata.identity.preferences import PREFERENCES_WRITES
from normata.notifications import unsubscribing


async def show_unsubscribe(page_request: PageRequest) -> Response:
    """Ask whether to end the mail. Only the button does, because mail scanners and previews open links, too."""
    return _page(page_request, "ask")


async def unsubscribe(page_request: PageRequest) -> Response:
    """End the mail, at the button or for a mail program with one click. Repeating it is harmless."""
    if _is_valid(page_request):
        user_id = page_request.query["user"]
        await page_request.console.services.changes.make(
            lambda unit: unsubscribing.end_mail(unit, user_id),
            actor=page_request.actor(None),
            scope=TenantScope(writable=(NO_ORGANIZATION,), users=(user_id,)),
            writes=PREFERENCES_WRITES,
        )
    return _page(page_request, "done")


def _is_valid(page_request: PageRequest) -> bool:
    query, signer = page_request.query, page_request.console.services.means[Signer]
    return unsubscribing.is_from_link(signer, query.get("user", ""), query.get("token", ""))


def _page(page_request: PageRequest, step: str) -> Response:
    is_valid, query = _is_valid(page_request), page_request.query
    return page_request.page(
        "unsubscribe.html",
        status=200 if is_valid else 404,
        step=step if is_valid else "unknown",
        again=urlencode({name: query.get(name, "") for name in ("user", "token")}),
        visitor=None,
    )
