"""The operations of the caller's own sessions."""

from __future__ import annotations

from typing import Any

from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.http.operation import ChangeOperation, ListOperation, Operation
from normata.core.http.request import Request
from normata.core.schema.paging import OwnPageQuery, Page
from normata.identity.sessions import queries as session_list
from normata.identity.sessions.queries import BrowserSession
from normata.identity.sessions.sessions import END_WRITES
from normata.identity.sign_in_model import Session


class SessionPage(Page[BrowserSession]):
    """A page of sessions."""


_SESSION: dict[str, Any] = {
    "id": "01a1f87c-691d-7204-a6da-d46c39e191fb",
    "means": "passkey",
    "address": "192.0.2.7",
    "userAgent": "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0",
    "createdAt": "2026-11-20T09:14:03.120Z",
    "lastUsedAt": "2026-11-20T10:01:00.000Z",
    "expiresAt": "2026-11-27T09:14:03.120Z",
    "endedAt": None,
}


def _end(unit: UnitOfWork, request: Request) -> dict[str, Any]:
    assert request.caller is not None  # noqa: S101 - narrows the type: every request has one
    return session_list.end_own(unit, request.caller, request.id)


OPERATIONS: tuple[Operation, ...] = (
    ListOperation(
        path="/me/sessions/",
        operation_id="listOwnSessions",
        tag="Account",
        summary="List your sessions",
        description="""\
The browsers in which you have signed in and which are still good, the one last used first. A token that is narrowed to
an organization sees none: a session reaches every organization that you are a member of.""",
        authority="self",
        query=OwnPageQuery,
        build=lambda transaction, request: session_list.list_own(transaction, request.caller, request.query),
        answer=SessionPage,
        answer_description="A page of sessions.",
        example={"items": [_SESSION], "total": 1, "totalIsExact": True, "page": 1, "limit": 100},
    ),
    ChangeOperation(
        http_method="DELETE",
        path="/me/sessions/{id}/",
        operation_id="endOwnSession",
        tag="Account",
        summary="End one of your sessions",
        description="""\
Signs you out in one of your browsers, from its next request on. To do so twice is harmless. Tokens are not affected:
revoke these one by one.""",
        authority="self",
        role="viewer",
        scope="admin",
        about=Session,
        id_description="The id of a session of your own.",
        work=_end,
        present=lambda session: session,
        writes=END_WRITES,
        answer=BrowserSession,
        answer_description="The session as it is now.",
        example=_SESSION | {"endedAt": "2026-11-20T10:02:41.507Z"},
    ),
)
