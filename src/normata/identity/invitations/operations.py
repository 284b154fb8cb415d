"""The operations of invitations."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from pydantic import Field

from normata import errors
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.http.operation import ChangeOperation, ListOperation, Operation, ReadOperation
from normata.core.http.request import Request
from normata.core.http.roles import Role
from normata.core.schema.fields import Timestamp, VisibleEmail
from normata.core.schema.paging import OrganizationId, OrganizationQuery, Page
from normata.core.schema.wire import Input, Wire
from normata.identity.invitations import invitations
from normata.identity.invitations.invitations import Invited
from normata.identity.mail import Delivery, Mailer, invitation_mail
from normata.identity.model import Invitation as InvitationTable
from normata.identity.organization_lookup import name_of, reached
from normata.settings import Settings


class Invitation(Wire):
    """An offer to the owner of an email address to become a member."""

    id: str
    organization_id: str
    email: str = Field(description="The address that it was made for.")
    role: Role = Field(description="The role that it gives.")
    created_at: Timestamp
    created_by: str | None = Field(description="The id of the user who invites; null for a command.")
    expires_at: Timestamp = Field(description="Until when it can be accepted: seven days after it was made.")
    membership_expires_at: Timestamp | None = Field(description="When the membership will end; null for never.")
    accepted_at: Timestamp | None = Field(description="When it was accepted.")
    revoked_at: Timestamp | None = Field(description="When it was revoked, or another took its place.")


class InvitationSent(Invitation):
    """An invitation that has just been made, with its link. The link is shown this once."""

    link: str = Field(description="The address to open. Whoever has it can accept the invitation.")
    mail: Delivery = Field(
        description="Whether the link was mailed: `sent`, `failed`, or `off` where no mail is set up. Unless it was"
        " sent, give the link to whom it is for."
    )


class InvitationPage(Page[Invitation]):
    """A page of invitations."""


class InvitationCreation(Input):
    """The address to invite, the role, and when the membership ends."""

    organization_id: OrganizationId
    email: Annotated[VisibleEmail, Field(description="The email address.")]
    role: Annotated[Role, Field(description="The role; not larger than your own.")]
    expires_at: Annotated[
        Timestamp | None,
        Field(
            default_factory=lambda: None,
            description="When the membership ends, such as after an audit; left out or null: not at all. The invitation"
            " itself is open for seven days. Null for an owner.",
        ),
    ]


_ID = "The id of the invitation."
_INVITATION: dict[str, Any] = {
    "id": "01a1f87c-691d-7204-a6da-d46c39e191fb",
    "organizationId": "org-harbourlight",
    "email": "kim@harbourlight.example",
    "role": "editor",
    "createdAt": "2026-11-20T09:14:03.120Z",
    "createdBy": "user-dana",
    "expiresAt": "2026-11-27T09:14:03.120Z",
    "membershipExpiresAt": None,
    "acceptedAt": None,
    "revokedAt": None,
}
SENT: dict[str, Any] = _INVITATION | {
    "link": "https://normata.example.org/sign-in/invitation/?secret=SECRET_OF_THE_LINK",
    "mail": "sent",
}


class Sending(NamedTuple):
    """An invitation in wire form, and the mail that brings its link."""

    invitation: dict[str, Any]
    subject: str
    text: str


def sending(unit: UnitOfWork, made: Invited, public_url: str) -> Sending:
    """The mail of a new invitation."""
    link = invitations.link(public_url, made.secret)
    subject, text = invitation_mail(name_of(unit, made.invitation.organization_id), unit.actor.user_name, link)
    return Sending({**invitations.as_wire(made.invitation), "link": link, "mail": "off"}, subject, text)


async def mailed(request: Request, sent: Sending) -> dict[str, Any]:
    """The invitation, with the delivery of its mail."""
    return sent.invitation | {
        "mail": await request.means[Mailer].send(sent.invitation["email"], sent.subject, sent.text)
    }


async def _mailed(request: Request, sent: Sending, _answer: Any) -> dict[str, Any]:
    return await mailed(request, sent)


def _invite(unit: UnitOfWork, request: Request) -> Sending:
    organization_id = reached(unit, request.body.organization_id)
    body = request.body
    made = invitations.invite(unit, organization_id, body.email, body.role, body.expires_at)
    return sending(unit, made, request.means[Settings].public_url)


OPERATIONS: tuple[Operation, ...] = (
    ListOperation(
        path="/invitations/",
        operation_id="listInvitations",
        tag="Members",
        summary="List invitations",
        description="""\
The organization's invitations that can still be accepted, newest first. Their links are not shown again: to get
another, invite the same address once more.""",
        role="auditor",
        scope="admin",
        query=invitations.InvitationQuery,
        build=lambda transaction, request: invitations.list_invitations(transaction, request.query),
        answer=InvitationPage,
        answer_description="A page of invitations.",
        example={"items": [_INVITATION], "total": 1, "totalIsExact": True, "page": 1, "limit": 100},
    ),
    ReadOperation(
        path="/invitations/{id}/",
        operation_id="getInvitation",
        tag="Members",
        summary="Get an invitation",
        description="""\
One invitation of the organization, whether it can still be accepted or not. Its link is not shown again, because it is
not stored.""",
        role="auditor",
        scope="admin",
        about=InvitationTable,
        id_description=_ID,
        query=OrganizationQuery,
        build=lambda transaction, request: invitations.one_invitation(transaction, request.organization_id, request.id),
        answer=Invitation,
        answer_description="The invitation.",
        example=_INVITATION,
    ),
    ChangeOperation(
        http_method="POST",
        path="/invitations/",
        operation_id="createInvitation",
        tag="Members",
        summary="Invite somebody",
        description="""\
Invites whoever has an email address to become a member. The answer has a link, this once, and where the service is
set up for mail, it sends the link to the address. Whoever opens the link within seven days accepts the invitation;
then it is used up. To invite an address again ends the earlier invitation. Who has left comes back by an invitation,
as the same member as before.

Whoever has the address already as a member is answered 409 `already_member`. Nobody gives a role that is larger than
their own. With an `Idempotency-Key`, a repetition is answered 409 `answer_not_stored`: the link is kept nowhere.""",
        role="admin",
        scope="admin",
        body=InvitationCreation,
        body_required=True,
        body_example={"organizationId": "org-harbourlight", "email": "kim@harbourlight.example", "role": "editor"},
        has_rules=True,  # an address must have a valid domain
        work=_invite,
        present=lambda sent: sent.invitation,
        writes=invitations.INVITING_WRITES,
        creates=True,
        secret_fields=("link",),
        afterwards=_mailed,
        answer=InvitationSent,
        answer_description="The invitation, with its link.",
        example=SENT,
        errors=(errors.AlreadyMember,),
    ),
    ChangeOperation(
        http_method="DELETE",
        path="/invitations/{id}/",
        operation_id="revokeInvitation",
        tag="Members",
        summary="Revoke an invitation",
        description="""\
Ends an invitation, so that it cannot be accepted any more. Repeating it is harmless. An accepted invitation is
answered 409 `invitation_closed`: remove the member instead.""",
        role="admin",
        scope="admin",
        about=InvitationTable,
        id_description=_ID,
        work=lambda unit, request: invitations.revoke(unit, request.id),
        present=invitations.as_wire,
        writes=invitations.REVOKING_WRITES,
        answer=Invitation,
        answer_description="The invitation, revoked.",
        example=_INVITATION | {"revokedAt": "2026-11-20T10:02:41.507Z"},
        errors=(errors.InvitationClosed,),
    ),
)
