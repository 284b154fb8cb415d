"""The operations that read members; those that change them are with their responsibilities."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from normata.core.http.operation import ListOperation, Operation, ReadOperation
from normata.core.http.roles import Role
from normata.core.schema.fields import Timestamp
from normata.core.schema.paging import OrganizationQuery, Page
from normata.core.schema.wire import Input
from normata.identity.members import members
from normata.identity.members.members import Member, MemberQuery
from normata.identity.model import Membership


class MemberPage(Page[Member]):
    """A page of members."""


class MemberPatch(Input):
    """The changes of a member. Omitted fields stay as they are."""

    role: Annotated[Role | None, Field(description="The role; not larger than your own. Null: as it is.")] = None
    expires_at: Annotated[
        Timestamp | None,
        Field(
            default_factory=lambda: None,
            description="When the membership ends: from that moment on it allows nothing. Null for no end.",
        ),
    ]


MEMBER_ID = "The id of the membership, as records have it."
MEMBER_EXAMPLE: dict[str, Any] = {
    "id": "member-robin",
    "organizationId": "org-harbourlight",
    "userId": "user-robin",
    "name": "Robin Reyes",
    "email": "robin@harbourlight.example",
    "role": "editor",
    "isServiceAccount": False,
    "isProvisioned": False,
    "removedAt": None,
    "expiresAt": None,
}

OPERATIONS: tuple[Operation, ...] = (
    ListOperation(
        path="/members/",
        operation_id="listMembers",
        tag="Members",
        summary="List members",
        description="""\
Who is a member of the organization, by name: people and service accounts, each with their role. Those who were removed
are listed where `removed` asks for them; records may still name them.""",
        query=MemberQuery,
        build=lambda transaction, request: members.list_members(transaction, request.query),
        answer=MemberPage,
        answer_description="A page of members.",
        example={"items": [MEMBER_EXAMPLE], "total": 1, "totalIsExact": True, "page": 1, "limit": 100},
    ),
    ReadOperation(
        path="/members/{id}/",
        operation_id="getMember",
        tag="Members",
        summary="Get a member",
        description="""\
One member of the organization: who they are, and their role. One who was removed is found, too, since records still
name them.""",
        about=Membership,
        id_description=MEMBER_ID,
        query=OrganizationQuery,
        build=lambda transaction, request: members.one_member(transaction, request.organization_id, request.id),
        answer=Member,
        answer_description="The member.",
        example=MEMBER_EXAMPLE,
    ),
)
