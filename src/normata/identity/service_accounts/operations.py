"""The operations of service accounts."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from normata import errors
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.http.operation import ChangeOperation, ListOperation, Operation, ReadOperation
from normata.core.http.request import Request
from normata.core.schema.fields import VisibleName
from normata.core.schema.paging import OrganizationId, OrganizationQuery, Page, PageQuery
from normata.core.schema.wire import Input
from normata.identity.members import members
from normata.identity.model import User
from normata.identity.organization_lookup import reached
from normata.identity.service_accounts import service_accounts
from normata.identity.service_accounts.service_accounts import ServiceAccount, ServiceRole


class ServiceAccountPage(Page[ServiceAccount]):
    """A page of service accounts."""


class ServiceAccountCreation(Input):
    """A new service account."""

    organization_id: OrganizationId
    name: Annotated[VisibleName, Field(description="What people call the program.")]
    role: Annotated[ServiceRole, Field(description="What it may do; not more than you may.")]


def _nothing() -> None:
    """The default of a field that is left out; so OpenAPI shows none."""


class ServiceAccountPatch(Input):
    """The changes of a service account. Omitted fields stay as they are."""

    name: Annotated[VisibleName | None, Field(default_factory=_nothing, description="What people call the program.")]
    role: Annotated[
        ServiceRole | None, Field(default_factory=_nothing, description="What it may do; not more than you may.")
    ]


def _create(unit: UnitOfWork, request: Request) -> Any:
    organization_id = reached(unit, request.body.organization_id)
    return service_accounts.create(unit, organization_id, request.body.name, request.body.role)


_ID = "The id of the service account."
_ACCOUNT: dict[str, Any] = {
    "id": "01a1f87c-691d-7204-a6da-d46c39e191fb",
    "organizationId": "org-harbourlight",
    "memberId": "01a1f87c-691d-7204-a6da-d46c39e191fc",
    "name": "Asset inventory",
    "role": "editor",
}


def _change(unit: UnitOfWork, request: Request) -> Any:
    return service_accounts.change(unit, request.id, name=request.body.name, role=request.body.role)


OPERATIONS: tuple[Operation, ...] = (
    ListOperation(
        path="/service-accounts/",
        operation_id="listServiceAccounts",
        tag="Members",
        summary="List service accounts",
        description="""\
The programs that work in the organization, by name, each with its role and its membership. Those that were removed are
not among them.""",
        role="auditor",
        scope="admin",
        query=PageQuery,
        build=lambda transaction, request: service_accounts.list_accounts(transaction, request.query),
        answer=ServiceAccountPage,
        answer_description="A page of service accounts.",
        example={"items": [_ACCOUNT], "total": 1, "totalIsExact": True, "page": 1, "limit": 100},
    ),
    ReadOperation(
        path="/service-accounts/{id}/",
        operation_id="getServiceAccount",
        tag="Members",
        summary="Get a service account",
        description="""\
One program that works in the organization, with its role and its membership. One that was removed is not found; as a
member it can still be looked up.""",
        role="auditor",
        scope="admin",
        about=User,
        id_description=_ID,
        query=OrganizationQuery,
        build=lambda transaction, request: service_accounts.one_account(
            transaction, request.organization_id, request.id
        ),
        answer=ServiceAccount,
        answer_description="The service account.",
        example=_ACCOUNT,
    ),
    ChangeOperation(
        http_method="POST",
        path="/service-accounts/",
        operation_id="createServiceAccount",
        tag="Members",
        summary="Create a service account",
        description="""\
Creates a user for a program. It is a member of this organization alone, has tokens, and nobody can sign in as it. So
the work of a program does not end when a person leaves.""",
        role="admin",
        scope="admin",
        body=ServiceAccountCreation,
        body_required=True,
        body_example={"organizationId": "org-harbourlight", "name": "Asset inventory", "role": "editor"},
        work=_create,
        present=service_accounts.as_wire,
        writes=service_accounts.CREATION_WRITES,
        creates=True,
        answer=ServiceAccount,
        answer_description="The service account.",
        example=_ACCOUNT,
    ),
    ChangeOperation(
        http_method="PATCH",
        path="/service-accounts/{id}/",
        operation_id="changeServiceAccount",
        tag="Members",
        summary="Change a service account",
        description="""\
Gives a service account another name, another role, or both. Neither its role before nor the new one may be larger than
your own.""",
        role="admin",
        scope="admin",
        about=User,
        id_description=_ID,
        body=ServiceAccountPatch,
        body_required=True,
        body_example={"name": "Asset inventory", "role": "viewer"},
        work=lambda unit, request: service_accounts.change(
            unit, request.id, name=request.body.name, role=request.body.role
        ),
        present=service_accounts.as_wire,
        writes=service_accounts.CHANGE_WRITES,
        answer=ServiceAccount,
        answer_description="The service account as it is now.",
        example=_ACCOUNT | {"role": "viewer"},
        errors=(errors.MemberRemoved,),
    ),
    ChangeOperation(
        http_method="DELETE",
        path="/service-accounts/{id}/",
        operation_id="removeServiceAccount",
        tag="Members",
        summary="Remove a service account",
        description="""\
Ends a service account: its tokens are no longer valid. Its membership stays listed among removed ones, because records
may name it. Repeating it is harmless.""",
        role="admin",
        scope="admin",
        about=User,
        id_description=_ID,
        work=lambda unit, request: service_accounts.remove(unit, request.id),
        present=service_accounts.as_wire,
        writes=members.REMOVAL_WRITES,
        answer=ServiceAccount,
        answer_description="The service account, as it was.",
        example=_ACCOUNT,
    ),
)
