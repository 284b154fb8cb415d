"""The operations of organizations: those of the caller, and their life."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from pydantic import Field

from normata import errors
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.http.operation import ChangeOperation, ListOperation, Operation, ReadOperation
from normata.core.http.request import Request
from normata.core.schema.fields import RiskLevels, Slug, Text, Timestamp, VisibleEmail, VisibleName
from normata.core.schema.paging import OwnPageQuery, Page, Query
from normata.core.schema.wire import Input, Wire
from normata.identity.invitations import invitations
from normata.identity.invitations.operations import SENT, InvitationSent, Sending, mailed, sending
from normata.identity.mail_choices import MailChoice
from normata.identity.me import whoami
from normata.identity.me.operations import ORGANIZATION
from normata.identity.model import Days, StaleAssessments
from normata.identity.model import Organization as OrganizationTable
from normata.identity.organizations import commands as organization_life
from normata.settings import Settings


class OwnOrganizationPage(Page[whoami.OwnOrganization]):
    """A page of the organizations that the caller is a member of."""


_STALE_ASSESSMENTS = (
    "What becomes of an assessment whose `reviewBy` has passed: `FLAG` shows that it is stale, and with `LAPSE` its"
    " status counts as not assessed as well, until it is confirmed or assessed anew."
)


_RISK_LEVELS = (
    "The level of each cell of the risk matrix: five lists, for the impacts 1 to 5, each with the levels of the"
    " probabilities 1 to 5. Null for the usual ones, which follow from probability times impact."
)


class Organization(Wire):
    """An organization."""

    id: str
    name: str
    slug: str = Field(description="A readable name for addresses, unique among all organizations.")
    removed_at: Timestamp | None = Field(description="When it was removed; null while it is there.")
    stale_assessments: StaleAssessments = Field(description=_STALE_ASSESSMENTS)
    scope: str | None = Field(description=whoami.SCOPE)
    risk_levels: RiskLevels | None = Field(description=_RISK_LEVELS)
    mail: MailChoice = Field(description=whoami.ORGANIZATION_MAIL)
    keep_replaced_files_days: Days | None = Field(description=whoami.KEEP_REPLACED_FILES)
    allows_self_approval: bool = Field(description=whoami.ALLOWS_SELF_APPROVAL)
    verifies_findings: bool = Field(description=whoami.VERIFIES_FINDINGS)


class OrganizationCreated(Organization):
    """A new organization, and the invitation of its owner."""

    invitation: InvitationSent = Field(description="The invitation of the owner, with its link.")


class OrganizationCreation(Input):
    """A new organization, and its owner."""

    name: Annotated[VisibleName, Field(description="The name.")]
    slug: Annotated[
        Slug | None, Field(description="A readable name for addresses; made from the name where it is left out.")
    ] = None
    owner_email: Annotated[VisibleEmail, Field(description="The email address of the first owner, who is invited.")]


class OrganizationPatch(Input):
    """The changes of an organization. Omitted fields stay as they are, and so do null ones.

    A null `scope` is removed, null `riskLevels` are the usual ones, and with null `keepReplacedFilesDays` replaced
    files are kept for ever.
    """

    name: Annotated[VisibleName | None, Field(description="The new name.")] = None
    stale_assessments: Annotated[StaleAssessments | None, Field(description=_STALE_ASSESSMENTS)] = None
    scope: Annotated[Text | None, Field(description=whoami.SCOPE)] = None
    risk_levels: Annotated[RiskLevels | None, Field(description=_RISK_LEVELS)] = None
    mail: Annotated[MailChoice | None, Field(description=whoami.ORGANIZATION_MAIL)] = None
    keep_replaced_files_days: Annotated[Days | None, Field(description=whoami.KEEP_REPLACED_FILES)] = None
    allows_self_approval: Annotated[bool | None, Field(description=whoami.ALLOWS_SELF_APPROVAL)] = None
    verifies_findings: Annotated[bool | None, Field(description=whoami.VERIFIES_FINDINGS)] = None


class _Made(NamedTuple):
    organization: Any
    owner: Sending


def _create(unit: UnitOfWork, request: Request) -> _Made:
    body = request.body
    row = organization_life.create(unit, request.new_organization, body.name, body.slug)
    made = invitations.offer(unit, row.id, body.owner_email, "owner")
    return _Made(row, sending(unit, made, request.means[Settings].public_url))


def _change(unit: UnitOfWork, request: Request) -> Any:
    body: OrganizationPatch = request.body
    values: dict[str, Any] = {}
    if body.name is not None:
        values["name"] = body.name.strip()
    if body.stale_assessments is not None:
        values["stale_assessments"] = body.stale_assessments
    if body.allows_self_approval is not None:
        values["allows_self_approval"] = body.allows_self_approval
    if "scope" in body.model_fields_set:
        values["scope"] = (body.scope or "").strip() or None
    if "risk_levels" in body.model_fields_set:
        values["risk_levels"] = body.risk_levels
    if body.mail is not None:
        values["mail"] = body.mail
    if "keep_replaced_files_days" in body.model_fields_set:
        values["keep_replaced_files_days"] = body.keep_replaced_files_days
    if body.verifies_findings is not None:
        values["verifies_findings"] = body.verifies_findings
    return organization_life.change(unit, request.id, **values)


def _as_wire(row: Any) -> dict[str, Any]:
    return {
        "id": row.id,
        "name": row.name,
        "slug": row.slug,
        "removedAt": row.removed_at,
        "staleAssessments": row.stale_assessments,
        "scope": row.scope,
        "riskLevels": row.risk_levels,
        "mail": row.mail,
        "keepReplacedFilesDays": row.keep_replaced_files_days,
        "allowsSelfApproval": row.allows_self_approval,
        "verifiesFindings": row.verifies_findings,
    }


async def _mailed(request: Request, made: _Made, answer: dict[str, Any]) -> dict[str, Any]:
    return answer | {"invitation": await mailed(request, made.owner)}


_ID = "The id of the organization."
_ORGANIZATION: dict[str, Any] = {
    "id": "org-harbourlight",
    "name": "Harbourlight Robotics",
    "slug": "harbourlight",
    "removedAt": None,
    "staleAssessments": "FLAG",
    "scope": None,
    "riskLevels": None,
    "mail": "DAILY",
    "keepReplacedFilesDays": None,
    "allowsSelfApproval": False,
    "verifiesFindings": False,
}
_SCOPE = "Design, assembly and support of mobile robots in Hamburg and Gdańsk."

OPERATIONS: tuple[Operation, ...] = (
    ListOperation(
        path="/organizations/",
        operation_id="listOrganizations",
        tag="Account",
        summary="List your organizations",
        description="""\
The organizations that you are a member of, by name, each with your membership and your role in it. A token that is
narrowed to an organization lists this one alone.""",
        authority="self",
        query=OwnPageQuery,
        build=lambda transaction, request: whoami.list_own(transaction, request.caller, request.query),
        answer=OwnOrganizationPage,
        answer_description="A page of organizations.",
        example={"items": [ORGANIZATION], "total": 1, "totalIsExact": True, "page": 1, "limit": 100},
    ),
    ReadOperation(
        path="/organizations/{id}/",
        operation_id="getOrganization",
        tag="Account",
        summary="Get an organization of yours",
        description="""\
One organization that you are a member of, with your membership and your role in it. It is not found where you are no
member, or where the token is narrowed to another one.""",
        authority="self",
        about=OrganizationTable,
        id_description=_ID,
        query=Query,
        build=lambda transaction, request: whoami.one_own(transaction, request.caller, request.id),
        answer=whoami.OwnOrganizationDetails,
        answer_description="The organization.",
        example=_ORGANIZATION | ORGANIZATION | {"scope": _SCOPE},
    ),
    ChangeOperation(
        http_method="POST",
        path="/organizations/",
        operation_id="createOrganization",
        tag="Members",
        summary="Create an organization",
        description="""\
Creates an organization, and invites its owner as `POST /invitations/` invites a member. Until they accept, it has no
members. It takes an operator of the instance, and a token of the scope `admin`. The operator sees nothing of the
organization by it.""",
        authority="operator",
        scope="admin",
        body=OrganizationCreation,
        body_required=True,
        has_rules=True,
        body_example={"name": "Brightleaf", "slug": "brightleaf", "ownerEmail": "kim@brightleaf.example"},
        work=_create,
        present=lambda made: {**_as_wire(made.organization), "invitation": made.owner.invitation},
        writes=(*organization_life.CREATION_WRITES, *invitations.INVITING_WRITES),
        creates=True,
        secret_fields=("link",),
        afterwards=_mailed,
        answer=OrganizationCreated,
        answer_description="The organization, and the invitation of its owner.",
        example={
            "id": "01a1f87c-691d-7204-a6da-d46c39e191fb",
            "name": "Brightleaf",
            "slug": "brightleaf",
            "removedAt": None,
            "staleAssessments": "FLAG",
            "scope": None,
            "riskLevels": None,
            "mail": "DAILY",
            "keepReplacedFilesDays": None,
            "allowsSelfApproval": False,
            "verifiesFindings": False,
            "invitation": SENT
            | {
                "organizationId": "01a1f87c-691d-7204-a6da-d46c39e191fb",
                "email": "kim@brightleaf.example",
                "role": "owner",
            },
        },
        errors=(errors.AlreadyMember,),
    ),
    ChangeOperation(
        http_method="PATCH",
        path="/organizations/{id}/",
        operation_id="changeOrganization",
        tag="Members",
        summary="Change an organization",
        description="""\
Changes the name of an organization, its scope, the levels of its risk matrix, what becomes of stale assessments,
whether findings are verified before they are closed, whether approvers may approve what they have written themselves,
or when notifications are mailed to members who have not chosen.
Its slug stays, since addresses have it. All members see the new name with their next request. A change of
`staleAssessments` is followed by a job within a minute: with `LAPSE` the assessments whose `reviewBy` has passed lapse,
and with `FLAG` those that have lapsed count again. A statement of applicability has the `scope` in its head; null
removes it.""",
        role="admin",
        scope="admin",
        about=OrganizationTable,
        id_description=_ID,
        body=OrganizationPatch,
        body_required=True,
        body_example={"name": "Harbourlight Robotics", "staleAssessments": "LAPSE", "scope": _SCOPE},
        work=_change,
        present=_as_wire,
        writes=organization_life.CHANGE_WRITES,
        answer=Organization,
        answer_description="The organization as it is now.",
        example=_ORGANIZATION | {"staleAssessments": "LAPSE", "scope": _SCOPE},
    ),
    ChangeOperation(
        http_method="DELETE",
        path="/organizations/{id}/",
        operation_id="removeOrganization",
        tag="Members",
        summary="Remove an organization",
        description="""\
Removes an organization: all memberships end at this moment, yours too, so that nobody sees it any more. Nothing of it
is deleted, and `normata organization restore` brings it back as it was.""",
        role="owner",
        scope="admin",
        about=OrganizationTable,
        id_description=_ID,
        work=lambda unit, request: organization_life.remove(unit, request.id),
        present=_as_wire,
        writes=organization_life.REMOVAL_WRITES,
        answer=Organization,
        answer_description="The organization, removed.",
        example=_ORGANIZATION | {"removedAt": "2026-11-20T10:02:41.507Z"},
    ),
)
