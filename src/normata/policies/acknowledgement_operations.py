"""The operations of acknowledgements: a member's own, and who has acknowledged a policy."""

from __future__ import annotations

from pydantic import Field

from normata.core.http.operation import ChangeOperation, ListOperation, Operation
from normata.core.schema.fields import Timestamp
from normata.core.schema.wire import Wire
from normata.errors import Archived, WrongState, WrongVersion
from normata.policies.acknowledgement_listing import AcknowledgementPage, AcknowledgementQuery, list_acknowledgements
from normata.policies.acknowledging import ACKNOWLEDGEMENT_WRITES, REQUEST_WRITES, acknowledge, remind
from normata.policies.operations import PolicyApproval
from normata.records.kinds import Policy


class PolicyAcknowledgement(Wire):
    """That a member has acknowledged a version of a policy."""

    version_id: str = Field(description="The id of the version.")
    member_id: str = Field(description="The id of the membership.")
    acknowledged_at: Timestamp = Field(description="When they have acknowledged it first.")


class PolicyReminder(Wire):
    """How many members were reminded."""

    reminded: int = Field(description="The number of members who were reminded.")
    has_more: bool = Field(description="Whether the limit of one request was reached.")


_MEMBER = {
    "memberId": "member-dana",
    "name": "Dana Demo",
    "requestedAt": "2026-11-20T15:10:03.120Z",
    "acknowledgedAt": None,
    "acknowledgedVersion": 3,
}

OPERATIONS: tuple[Operation, ...] = (
    ChangeOperation(
        http_method="POST",
        path=f"/{Policy.path}/{{id}}/acknowledge/",
        operation_id="acknowledgePolicy",
        tag="Policies",
        summary="Acknowledge a policy",
        description="""\
Says that you have read the published version and will follow it. `version` is the number that you have read; another
one than the published one is 409 `wrong_version`. Doing it again changes nothing. A service account acknowledges
nothing.""",
        role="viewer",
        about=Policy,
        id_description="The id of the live policy.",
        work=lambda unit, request: acknowledge(unit, request.id, request.body.version),
        present=lambda row: {
            "versionId": row.version_id,
            "memberId": row.member_id,
            "acknowledgedAt": row.acknowledged_at,
        },
        writes=ACKNOWLEDGEMENT_WRITES,
        body=PolicyApproval,
        body_required=True,
        body_example={"version": 4},
        errors=(Archived, WrongState, WrongVersion),
        answer=PolicyAcknowledgement,
        answer_description="The acknowledgement.",
        example={
            "versionId": "01a2033c-19a0-7c51-93a4-0f4b8b7c9d42",
            "memberId": "member-dana",
            "acknowledgedAt": "2026-11-21T08:02:41.007Z",
        },
    ),
    ChangeOperation(
        http_method="POST",
        path=f"/{Policy.path}/{{id}}/remind/",
        operation_id="remindOfPolicy",
        tag="Policies",
        summary="Remind members of a policy",
        description="""\
Reminds the members who were asked to acknowledge the published version and have not, without waiting for the week to
end: 200 at a time, and nobody twice within a day. `hasMore` says whether another request may remind more.""",
        about=Policy,
        id_description="The id of the live policy.",
        work=lambda unit, request: remind(unit, request.id),
        present=lambda found: {"reminded": found.members, "hasMore": found.has_more},
        writes=REQUEST_WRITES,
        errors=(Archived, WrongState),
        answer=PolicyReminder,
        answer_description="How many were reminded.",
        example={"reminded": 13, "hasMore": False},
    ),
    ListOperation(
        path=f"/{Policy.path}/{{id}}/acknowledgements/",
        operation_id="listPolicyAcknowledgements",
        tag="Policies",
        summary="List the acknowledgements of a policy",
        description="""\
The members who are asked to acknowledge the published version, by name: when they were asked, when they have done it,
and which version they have acknowledged last. Whoever joins is asked within a day.""",
        about=Policy,
        id_description="The id of the policy.",
        query=AcknowledgementQuery,
        build=lambda transaction, request: list_acknowledgements(transaction, request.id, request.query, request.time),
        answer=AcknowledgementPage,
        answer_description="A page of members.",
        example={"items": [_MEMBER], "total": 1, "totalIsExact": True, "page": 1, "limit": 100, "version": 4},
    ),
)
