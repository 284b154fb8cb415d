"""The operations about the caller: who they are, and where they are a member."""

from __future__ import annotations

from typing import Any

from normata.core.http.operation import Operation, ReadOperation
from normata.core.schema.paging import Query
from normata.identity.me import whoami

ORGANIZATION: dict[str, Any] = {
    "id": "org-harbourlight",
    "name": "Harbourlight Robotics",
    "slug": "harbourlight",
    "memberId": "member-dana",
    "role": "admin",
}

OPERATIONS: tuple[Operation, ...] = (
    ReadOperation(
        path="/me/",
        operation_id="getMe",
        tag="Account",
        summary="Ask who you are",
        description="""\
The user whom the token acts as, what the token may do, and the organizations that it sees, each with your role in it. A
token that is narrowed to an organization sees no other.""",
        authority="self",
        query=Query,
        build=lambda transaction, request: whoami.me(transaction, request.caller),
        answer=whoami.Me,
        answer_description="Who you are.",
        example={
            "id": "user-dana",
            "name": "Dana Demo",
            "email": "dana@harbourlight.example",
            "isOperator": False,
            "tokenId": "01a1f87c-691d-7204-a6da-d46c39e191fb",
            "scope": "write",
            "organizationId": None,
            "organizations": [ORGANIZATION],
        },
    ),
)
