"""The operations of the caller's calendar."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.http.operation import ChangeOperation, Operation, ReadOperation
from normata.core.http.request import Request
from normata.core.http.routing import CALENDARS
from normata.core.schema.paging import OrganizationId, Query
from normata.core.schema.wire import Input
from normata.identity import calendar
from normata.identity.calendar import CALENDAR_REMOVAL, CALENDAR_WRITES, Calendar, NewCalendar
from normata.settings import Settings


class CalendarWanted(Input):
    """The calendar to make."""

    organization_id: Annotated[
        OrganizationId | None,
        Field(
            default_factory=lambda: None,
            description="The only organization whose dates it has: its id or its slug. Left out or null: all"
            " organizations of the caller.",
        ),
    ]


def url_of(settings: Settings, secret: str) -> str:
    """The address of a calendar with this secret."""
    return f"{settings.public_url}{CALENDARS}{secret}.ics"


def _make(unit: UnitOfWork, request: Request) -> dict[str, Any]:
    made = calendar.make_own(unit, request.caller, request.body and request.body.organization_id)
    return {
        "createdAt": made.row["created_at"],
        "lastFetchedAt": None,
        "organizationId": made.row["narrowed_to"],
        "url": url_of(request.means[Settings], made.secret),
    }


_NONE: dict[str, Any] = {"createdAt": None, "lastFetchedAt": None, "organizationId": None}
_CALENDAR: dict[str, Any] = {
    "createdAt": "2026-11-20T09:14:03.120Z",
    "lastFetchedAt": "2026-11-20T10:01:00.000Z",
    "organizationId": None,
}
_URL = "https://normata.example/calendar/<SHOWN THIS ONCE>.ics"

OPERATIONS: tuple[Operation, ...] = (
    ReadOperation(
        path="/me/calendar/",
        operation_id="getOwnCalendar",
        tag="Account",
        summary="Get whether you have a calendar",
        description="""\
Whether your due dates can be fetched as a calendar: since when, and when a program last did. It does not have the
address itself.""",
        authority="self",
        query=Query,
        build=lambda transaction, request: calendar.as_wire(calendar.own(transaction, request.caller.user_id)),
        answer=Calendar,
        answer_description="The calendar.",
        example=_CALENDAR,
    ),
    ChangeOperation(
        http_method="POST",
        path="/me/calendar/",
        operation_id="createOwnCalendar",
        tag="Account",
        summary="Make the address of your calendar",
        description="""\
Makes a secret address at which calendar programs fetch what is due for you, as `GET /due/` lists it with `mine`, of all
your organizations or of one: iCalendar (RFC 5545), without a token. It replaces the address that there was. Dates of
organizations that you leave are no longer in it. A token that is narrowed to an organization is refused, and so is a
service account.

The answer has the address, this once: it is stored nowhere, so note it. With an `Idempotency-Key` the answer is not
stored either: a repeat is answered 409 `answer_not_stored`; make another address then. A dry run shows no address:
`url` is null there.""",
        authority="self",
        role="viewer",
        scope="admin",
        body=CalendarWanted,
        body_example={"organizationId": "org-harbourlight"},
        work=_make,
        present=lambda answer: answer,
        writes=CALENDAR_WRITES,
        secret_fields=("url",),
        answer=NewCalendar,
        answer_description="The calendar.",
        example=_CALENDAR | {"lastFetchedAt": None, "organizationId": "org-harbourlight", "url": _URL},
    ),
    ChangeOperation(
        http_method="DELETE",
        path="/me/calendar/",
        operation_id="removeOwnCalendar",
        tag="Account",
        summary="End the address of your calendar",
        description="""\
Ends the address of your calendar for good, from the next request on. To do so without one, or twice, is harmless.""",
        authority="self",
        role="viewer",
        scope="admin",
        work=lambda unit, request: calendar.remove_own(unit, request.caller),
        present=lambda _: _NONE,
        writes=CALENDAR_REMOVAL,
        answer=Calendar,
        answer_description="The calendar as it is now.",
        example=_NONE,
    ),
)
