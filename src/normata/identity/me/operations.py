"""The operations about the caller: who they are, and where they are a member."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from normata.core.http.operation import ChangeOperation, Operation, ReadOperation
from normata.core.schema.fields import VisibleName
from normata.core.schema.paging import Query
from normata.identity import users
from normata.identity.me import whoami
from normata.identity.preferences import PREFERENCES_WRITES, PreferencesPatch

ORGANIZATION: dict[str, Any] = {
    "id": "org-harbourlight",
    "name": "Harbourlight Robotics",
    "slug": "harbourlight",
    "memberId": "member-dana",
    "role": "admin",
    "expiresAt": None,
}


class MePatch(PreferencesPatch):
    """The changes of the caller. Omitted fields stay as they are."""

    name: Annotated[VisibleName, Field(default_factory=str, description="The name that others see.")]


_ME = {
    "id": "user-dana",
    "name": "Dana Demo",
    "email": "dana@harbourlight.example",
    "isOperator": False,
    "tokenId": "01a1f87c-691d-7204-a6da-d46c39e191fb",
    "scope": "write",
    "organizationId": None,
    "timeZone": "Europe/Berlin",
    "dateFormat": "DAY_MONTH_YEAR",
    "theme": None,
    "mail": "DAILY",
    "mailByType": {"record.due_now": "IMMEDIATELY"},
    "isMailRefused": False,
    "organizations": [ORGANIZATION],
}

OPERATIONS: tuple[Operation, ...] = (
    ReadOperation(
        path="/me/",
        operation_id="getMe",
        tag="Account",
        summary="Get yourself",
        description="""\
The user whom the token acts as, what the token may do, and the organizations that it sees, each with your role in it. A
token that is narrowed to an organization sees no other.""",
        authority="self",
        query=Query,
        build=lambda transaction, request: whoami.me(transaction, request.caller),
        answer=whoami.Me,
        answer_description="Who you are.",
        example=_ME,
    ),
    ChangeOperation(
        http_method="PATCH",
        path="/me/",
        operation_id="changeMe",
        tag="Account",
        summary="Change your name and preferences",
        description="""\
Changes the name that others see: in the lists of members, in the history and beside what you are responsible for. The
token needs the scope `admin`. Preferences say how the pages of the console show times, in which colors, and when
notifications are mailed; null takes one back. Mail needs a mail server that the operator has set up. A token that is
narrowed to an organization is refused, since all your organizations see the name; so is a service account, which
`PATCH /service-accounts/{id}/` renames.""",
        authority="self",
        role="viewer",
        scope="admin",
        has_rules=True,  # a time zone must be in the tz database, and a type of notifications known
        work=lambda unit, request: whoami.change(
            unit,
            request.caller,
            request.body.name if "name" in request.body.model_fields_set else None,
            request.body.changes(),
        ),
        present=lambda answer: answer,
        writes=(*users.RENAME_WRITES, *PREFERENCES_WRITES),
        body=MePatch,
        body_required=True,
        body_example={"name": "Dana Demo", "timeZone": "Europe/Berlin", "mail": "DAILY"},
        answer=whoami.Me,
        answer_description="Who you are.",
        example=_ME,
    ),
)
