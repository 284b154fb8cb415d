"""The operations of links by which vendors answer without an account."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from pydantic import Field

from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.http.change_endpoint import as_null
from normata.core.http.operation import ChangeOperation, Operation, ReadOperation
from normata.core.http.request import Request
from normata.core.schema.fields import Timestamp
from normata.core.schema.paging import OrganizationQuery
from normata.core.schema.wire import Input, Wire
from normata.errors import Archived, WrongState
from normata.identity.mail import Delivery, Mailer, vendor_link_mail
from normata.identity.organization_lookup import name_of
from normata.records.assurance import VendorAssessment
from normata.settings import Settings
from normata.vendors import links

_TAG = "Vendors"
_PATH = f"/{VendorAssessment.path}/{{id}}/link/"


class VendorLink(Wire):
    """The last link to an assessment."""

    assessment_id: str = Field(description="The id of the assessment.")
    created_at: Timestamp | None = Field(description="When it was made; null if there was none.")
    created_by_id: str | None = Field(description="The member who made it.")
    expires_at: Timestamp | None = Field(description="Until when it can be opened.")
    revoked_at: Timestamp | None = Field(description="When it was revoked, or another one took its place.")


class VendorLinkSent(VendorLink):
    """A link that was just made. Its address is shown this once."""

    link: str = Field(description="The address to open. Whoever has it can read and answer the questions.")
    mail: Delivery = Field(
        description="Whether it was mailed to the `contactEmail` of the vendor: `sent`, `failed`, or `off` if that was"
        " not requested, or there is no mail server or address. Unless it was sent, give the vendor the link."
    )


class VendorLinkCreation(Input):
    """For how long a link is valid, and whether it is mailed."""

    days: Annotated[int, Field(ge=1, le=links.MOST_DAYS)] = Field(
        default=links.DAYS, description="After how many days it expires."
    )
    mails: bool = Field(default=False, description="Whether to mail it to the `contactEmail` of the vendor.")


class _Sending(NamedTuple):
    answer: dict[str, Any]
    email: str | None
    subject: str
    text: str


def _make(unit: UnitOfWork, request: Request) -> _Sending:
    body: VendorLinkCreation = request.body or VendorLinkCreation()
    made = links.make(unit, request.id, body.days)
    link = links.address(request.means[Settings].public_url, made.secret)
    organization = name_of(unit, made.row.organization_id)
    subject, text = vendor_link_mail(organization, unit.actor.user_name, made.title, link, made.row.expires_at[:10])
    email = made.email if body.mails else None
    return _Sending({**_wire(made.row.assessment_id, made.row), "link": link, "mail": "off"}, email, subject, text)


async def _mailed(request: Request, sent: _Sending, _answer: Any) -> dict[str, Any]:
    if sent.email is None:
        return sent.answer
    return sent.answer | {"mail": await request.means[Mailer].send(sent.email, sent.subject, sent.text)}


def _wire(assessment_id: str, row: Any) -> dict[str, Any]:
    return {
        "assessmentId": assessment_id,
        "createdAt": getattr(row, "created_at", None),
        "createdById": getattr(row, "created_by_id", None),
        "expiresAt": getattr(row, "expires_at", None),
        "revokedAt": getattr(row, "revoked_at", None),
    }


_LINK = {
    "assessmentId": "vendor-assessment-lumenaxis-2026",
    "createdAt": "2026-11-20T09:14:03.120Z",
    "createdById": "member-priya",
    "expiresAt": "2026-12-20T09:14:03.120Z",
    "revokedAt": None,
}

OPERATIONS: tuple[Operation, ...] = (
    ReadOperation(
        path=_PATH,
        operation_id="getVendorLink",
        tag=_TAG,
        summary="Get the link to an assessment",
        description="When the last link to the assessment was made, and until when it is valid. Its address is not"
        " shown again, because it is not stored.",
        about=VendorAssessment,
        id_description="The id of the assessment, live or archived.",
        query=OrganizationQuery,
        build=lambda transaction, request: _wire(
            request.id, links.current(transaction, request.organization_id, request.id)
        ),
        answer=VendorLink,
        answer_description="The link; all null if there was none.",
        example=_LINK,
    ),
    ChangeOperation(
        http_method="POST",
        path=_PATH,
        operation_id="createVendorLink",
        tag=_TAG,
        summary="Make a link for the vendor",
        description="""\
Makes a link by which the vendor answers the questions without an account, in place of an earlier one. It is shown this
once, and can be mailed. It reaches this assessment alone, expires, and takes no more answers once they are submitted.
An assessment that is a `DRAFT` is sent by that; one that is neither that nor `SENT` is 409 `wrong_state`. With an
`Idempotency-Key`, a repetition is answered 409 `answer_not_stored`: the link is kept nowhere.""",
        about=VendorAssessment,
        id_description="The id of the live assessment.",
        work=_make,
        present=lambda sent: sent.answer,
        writes=links.LINK_WRITES,
        body=VendorLinkCreation,
        body_example={"days": 30, "mails": True},
        secret_fields=("link",),
        afterwards=_mailed,
        errors=(Archived, WrongState),
        answer=VendorLinkSent,
        answer_description="The link.",
        example=_LINK | {"link": "https://normata.example.org/vendor/open/?secret=SECRET_OF_THE_LINK", "mail": "sent"},
    ),
    ChangeOperation(
        http_method="DELETE",
        path=_PATH,
        operation_id="revokeVendorLink",
        tag=_TAG,
        summary="Revoke the link to an assessment",
        description="Ends the link, so that it cannot be opened any more, wherever it is open. Repeating it is"
        " harmless.",
        about=VendorAssessment,
        id_description="The id of the assessment.",
        work=lambda unit, request: links.revoke(unit, request.id),
        present=as_null,
        writes=links.REVOCATION_WRITES,
        answer=None,
        answer_description="`null`: there is no link any more.",
        example=None,
    ),
)
