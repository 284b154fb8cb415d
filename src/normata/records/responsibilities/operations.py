"""The operations about what members answer for: to list it, to hand it over, and to remove a member."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from normata import errors
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.http.operation import ChangeOperation, ListOperation, Operation
from normata.core.http.request import Request
from normata.core.schema.fields import Identifier, ShortName
from normata.core.schema.paging import Page, PageQuery
from normata.core.schema.wire import Input, Wire
from normata.identity.members import members
from normata.identity.members.members import Member
from normata.identity.members.operations import MEMBER_EXAMPLE, MEMBER_ID
from normata.identity.model import Membership
from normata.records.responsibilities.handover import (
    MAX_AT_ONCE,
    Responsibility,
    count_responsibilities,
    hand_over,
    handover_writes,
    list_responsibilities,
)


class ResponsibilityPage(Page[Responsibility]):
    """A page of what a member answers for."""


class RemovedMember(Wire):
    """A member who has been removed, and what is left to hand over."""

    member: Member = Field(description="The member.")
    responsibilities: dict[str, int] = Field(
        description="How many live records name the member, by kind; `POST /members/{id}/handover/` hands them over."
    )


class Handover(Input):
    """Who is to answer for what a member answers for."""

    to_member_id: Annotated[Identifier, Field(description="The id of the member who takes over.")]
    kinds: Annotated[
        list[ShortName] | None,
        Field(
            default_factory=lambda: None,
            min_length=1,
            max_length=100,
            description="The kinds of records, such as `tasks`; all where it is left out.",
        ),
    ]


class HandoverResult(Wire):
    """What has been handed over."""

    records: dict[str, int] = Field(description="How many records have been handed over, by kind.")
    more: bool = Field(description="Whether there is more to hand over: then send the request again.")
    left: int = Field(description="How many records are left.")


def _remove(unit: UnitOfWork, request: Request) -> dict[str, Any]:
    row = members.remove(unit, request.id)
    return {"member": members.as_wire(row), "responsibilities": count_responsibilities(unit, row)}


OPERATIONS: tuple[Operation, ...] = (
    ChangeOperation(
        http_method="DELETE",
        path="/members/{id}/",
        operation_id="removeMember",
        tag="Members",
        summary="Remove a member, or leave",
        description="""\
Ends a membership at once: from this moment on the organization does not exist for the user, whatever they have kept.
Their sessions end, and so do their tokens that are narrowed to the organization. Nothing goes to them any more, and no
record can name them anew. The answer tells what they answer for, so that it can be handed over.

Everybody may remove themselves. To remove somebody else takes an admin, and a role as large as theirs. The last owner
cannot go: 409 `last_owner`. To remove somebody twice is harmless.""",
        role="admin",
        own_role="viewer",
        scope="admin",
        about=Membership,
        id_description=MEMBER_ID,
        work=_remove,
        present=lambda removed: removed,
        writes=members.REMOVAL_WRITES,
        answer=RemovedMember,
        answer_description="The member, and what is left to hand over.",
        example={
            "member": MEMBER_EXAMPLE | {"removedAt": "2026-11-20T10:02:41.507Z"},
            "responsibilities": {"policies": 2, "tasks": 11},
        },
        errors=(errors.LastOwner,),
    ),
    ListOperation(
        path="/members/{id}/responsibilities/",
        operation_id="listResponsibilities",
        tag="Members",
        summary="List what a member answers for",
        description="""\
The live records that name a member as their owner, assignee, coordinator or approver, by kind; one of which two fields
name the member is listed twice. Also of a member who was removed.""",
        about=Membership,
        id_description=MEMBER_ID,
        query=PageQuery,
        build=lambda transaction, request: list_responsibilities(transaction, request.id, request.query),
        answer=ResponsibilityPage,
        answer_description="A page of responsibilities.",
        example={
            "items": [
                {
                    "kind": "policies",
                    "id": "policy-travel-with-prototypes",
                    "label": "Travelling with Prototypes",
                    "field": "ownerId",
                }
            ],
            "total": 1,
            "page": 1,
            "limit": 100,
        },
    ),
    ChangeOperation(
        http_method="POST",
        path="/members/{id}/handover/",
        operation_id="handOver",
        is_long=True,
        tag="Members",
        summary="Hand over what a member answers for",
        description=f"""\
Has another member of the organization answer for the live records that name a member: up to {MAX_AT_ONCE} records a
request, all of them or none. Each is changed as `PATCH` changes it, with an event, and whoever takes over is notified.
As long as `more` is true, send the request again.""",
        role="editor",
        about=Membership,
        id_description=MEMBER_ID,
        body=Handover,
        body_required=True,
        has_rules=True,
        body_example={"toMemberId": "member-dana", "kinds": ["tasks", "policies"]},
        work=lambda unit, request: hand_over(unit, request.id, request.body.to_member_id, request.body.kinds),
        present=lambda handed: {"records": handed.records, "more": handed.left > 0, "left": handed.left},
        writes=handover_writes(),
        answer=HandoverResult,
        answer_description="What has been handed over.",
        example={"records": {"policies": 2, "tasks": 11}, "more": False, "left": 0},
    ),
)
