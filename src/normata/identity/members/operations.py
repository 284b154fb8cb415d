"""The operations of members, and of their responsibilities."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from normata import errors
from normata.core.http.operation import ChangeOperation, ListOperation, Operation, ReadOperation
from normata.core.http.roles import Role
from normata.core.schema.paging import OrganizationQuery, Page
from normata.core.schema.wire import Input
from normata.identity.members import members
from normata.identity.members.members import Member, MemberQuery
from normata.identity.model import Membership


class MemberPage(Page[Member]):
    """A page of members."""


class MemberPatch(Input):
    """The changes of a member."""

    role: Annotated[Role, Field(description="The role; not larger than your own.")]


MEMBER_ID = "The id of the membership, as records have it."
MEMBER_EXAMPLE: dict[str, Any] = {
    "id": "member-robin",
    "organizationId": "org-harbourlight",
    "userId": "user-robin",
    "name": "Robin Reyes",
    "email": "robin@harbourlight.example",
    "role": "editor",
    "isServiceAccount": False,
    "removedAt": None,
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
        example={"items": [MEMBER_EXAMPLE], "total": 1, "page": 1, "limit": 100},
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
    ChangeOperation(
        http_method="PATCH",
        path="/members/{id}/",
        operation_id="changeMember",
        tag="Members",
        summary="Change the role of a member",
        description="""\
Gives a member another role. Nobody changes who has a larger role than their own, or gives one: that is 403. The last
owner stays one: 409 `last_owner`.""",
        role="admin",
        scope="admin",
        about=Membership,
        id_description=MEMBER_ID,
        body=MemberPatch,
        body_required=True,
        body_example={"role": "viewer"},
        work=lambda unit, request: members.change_role(unit, request.id, request.body.role, request.require_current),
        present=members.as_wire,
        writes=members.ROLE_WRITES,
        is_conditional=True,
        answer=Member,
        answer_description="The member as they are now.",
        example=MEMBER_EXAMPLE | {"role": "viewer"},
        errors=(errors.LastOwner, errors.MemberRemoved),
    ),
)
