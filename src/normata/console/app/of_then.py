"""Answers to requests whose address names a moment of the past."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.responses import Response

from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.past import PARAMETER, past_of
from normata.console.page_request import SAFE_METHODS
from normata.console.texts import text
from normata.core.http.problems import InvalidRequest
from normata.errors import NotFound, PastUnknown


async def answer_of_then(
    page_request: OrganizationRequest,
    sent: str,
    handler: Callable[[OrganizationRequest], Awaitable[Response]],
    *,
    shows_past: bool,
) -> Response:
    """The page as of the moment ``sent``, or a page that says why there is none.

    A page without a past, or as of today, is the one at the address without the moment. Raises InvalidRequest of a
    change, and of what is no moment.
    """
    if page_request.request.method not in SAFE_METHODS:
        raise InvalidRequest(text("past.unchangeable"))
    past = past_of(sent, page_request.membership.organization_id) if shows_past and sent else None
    if past is None:
        return page_request.redirect(page_request.here_with(**{PARAMETER: None}))
    page_request.past, page_request.has_past = past, True
    try:
        return await handler(page_request)
    except NotFound:
        status, reason, since = 404, "absent", None
    except InvalidRequest as error:
        cause = error.__cause__
        if not isinstance(cause, PastUnknown):
            raise
        status, reason, since = 400, "to_come" if cause.since is None else "unknown", cause.since
    page_request.past = None  # from here on, links lead to today
    await page_request.ask()  # what the frame shows
    return page_request.page("app/past.html", status=status, wanted=past, reason=reason, since=since)
