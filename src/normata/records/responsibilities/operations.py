"""The operations of responsibilities, and those that change and remove members, which depend on them."""

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
from normata.identity.members.operations import MEMBER_EXAMPLE, MEMBER_ID, MemberPatch
from normata.identity.model import Membership
from normata.records.responsibilities.handover import (
    MAX_AT_ONCE,
    Responsibility,
    change_member,
    count_responsibilities,
    hand_over,
    handover_writes,
    list_responsibilities,
)


class ResponsibilityPage(Page[Responsibility]):
    """A page of responsibilities."""


class RemovedMember(Wire):
    """A removed member, and the responsibilities to hand over."""

    member: Member = Field(description="The member.")
    responsibilities: dict[str, int] = Field(
        description="The live records and assessments that name the member, by kind; "
        "`POST /members/{id}/handover/` hands them over."
    )


class Handover(Input):
    """The new member for the responsibilities of a member."""

    to_member_id: Annotated[Identifier, Field(description="The id of the member who takes over.")]
    kinds: Annotated[
        list[ShortName] | None,
        Field(
            default_factory=lambda: None,
            min_length=1,
            max_length=100,
            description="The kinds of records, such as `tasks`, and `controls` for assessments; all by default.",
        ),
    ]


class HandoverResult(Wire):
    """The result of a handover."""

    records: dict[str, int] = Field(description="The number of records that were handed over, by kind.")
    more: bool = Field(description="Whether there is more to hand over: then send the request again.")
    left: int = Field(description="The number of records that are left.")


def _remove(unit: UnitOfWork, request: Request) -> dict[str, Any]:
    row = members.remove(unit, request.id)
    return {"member": members.as_wire(row), "responsibilities": count_responsibilities(unit, row)}


def _change(unit: UnitOfWork, request: Request) -> Any:
    return change_member(unit, request.id, request.body.model_dump(exclude_unset=True), request.require_current)


OPERATIONS: tuple[Operation, ...] = (
    ChangeOperation(
        http_method="PATCH",
        path="/members/{id}/",
        operation_id="changeMember",
        tag="Members",
        summary="Change the role of a member, or when the membership ends",
        description="""\
Gives a member another role, another end of their membership, or both. Nobody changes who has a larger role than their
own, or gives one: that is 403. The last owner stays one: 409 `last_owner`. An owner's membership has no end. Who is
responsible for records can become an auditor once these are handed over: 409 `has_responsibilities`.""",
        role="admin",
        scope="admin",
        about=Membership,
        id_description=MEMBER_ID,
        body=MemberPatch,
        body_required=True,
        body_example={"role": "viewer"},
        has_rules=True,  # a membership ends in the future, and an owner's does not
        work=_change,
        present=members.as_wire,
        writes=members.CHANGE_WRITES,
        is_conditional=True,
        answer=Member,
        answer_description="The member as they are now.",
        example=MEMBER_EXAMPLE | {"role": "viewer"},
        errors=(errors.LastOwner, errors.MemberRemoved, errors.HasResponsibilities),
    ),
    ChangeOperation(
        http_method="DELETE",
        path="/members/{id}/",
        operation_id="removeMember",
        tag="Members",
        summary="Remove a member, or leave",
        description="""\
Ends a membership immediately: the user can no longer access the organization. Their sessions end, and so do
their tokens that are restricted to the organization. They get no more notifications, and no record can newly
refer to them. The response lists their responsibilities, so that these can be handed over.

Everybody may remove themselves. Removing somebody else requires an admin whose role is at least as high as theirs. The
last owner cannot be removed: 409 `last_owner`. Removing somebody twice is safe.""",
        role="admin",
        own_role="viewer",
        for_auditors=True,
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
        summary="List the responsibilities of a member",
        description="""\
The live records that name a member as their owner, assignee, coordinator or approver, and the assessments that name the
member as their owner, by kind; a record that names the member in two fields is listed twice. A record without such a
field, such as a finding, is listed where the member `OWNS` it by a link. An assessment is listed by its control. This
includes removed members.""",
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
            "totalIsExact": True,
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
        summary="Hand over the responsibilities of a member",
        description=f"""\
Makes another member of the organization responsible for the live records and the assessments that name a member: up to
{MAX_AT_ONCE} of them in a request, either all of them or none. Each is changed as by `PATCH`, with an event,
and the new responsible member is notified. Where the member `OWNS` a record by a link, another one takes its place.
Policies take the role admin. One in review is 409 `wrong_state`: withdraw it first, or name the other `kinds`.
While `more` is true, send the request again.""",
        role="editor",
        about=Membership,
        id_description=MEMBER_ID,
        body=Handover,
        body_required=True,
        has_rules=True,
        body_example={"toMemberId": "member-dana", "kinds": ["tasks", "records"]},
        work=lambda unit, request: hand_over(unit, request.id, request.body.to_member_id, request.body.kinds),
        present=lambda handed: {"records": handed.records, "more": handed.left > 0, "left": handed.left},
        writes=handover_writes(),
        answer=HandoverResult,
        answer_description="The result of the handover.",
        example={"records": {"records": 2, "tasks": 11}, "more": False, "left": 0},
        errors=(errors.WrongState,),
    ),
)
