"""The operations of frameworks that an organization makes for itself, and of their controls."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from normata.changes.unit_of_work import insert_of
from normata.frameworks import framework_list
from normata.frameworks.model import Framework
from normata.frameworks.own import frameworks
from normata.frameworks.own.storing import every_column_of
from normata.schema.paging import OrganizationId, OrganizationQuery
from normata.schema.wire import body_model
from normata.web.operation import ChangeOperation, Operation, ReadOperation

_ORGANIZATION = "org-harbourlight"

FrameworkPatch = body_model(
    "FrameworkPatch",
    Framework,
    frameworks.WRITABLE,
    doc="What is to change of a framework. What is left out stays as it is; `null` clears a field.",
)


class FrameworkCreation(
    body_model(  # type: ignore[misc] # a base made at run time, from the table
        "_FrameworkCreation", Framework, frameworks.WRITABLE, doc="", required=("name",)
    )
):
    """A framework of an organization's own."""

    organization_id: OrganizationId


def given_of(body: BaseModel, *without: str) -> dict[str, Any]:
    """What a body says, by its wire names."""
    return body.model_dump(by_alias=True, exclude_unset=True, exclude=set(without))


_FRAMEWORK: dict[str, Any] = {
    "id": "hrl-ics",
    "organizationId": _ORGANIZATION,
    "identifier": "HRL-ICS",
    "slug": "harbourlight-internal-control-set",
    "version": "4.1",
    "identifierColor": None,
    "publishedAt": None,
    "deprecatedAt": None,
    "name": "Harbourlight Robotics Internal Control Set",
    "description": "The controls that Harbourlight Robotics has set itself.",
    "lastSyncAt": None,
    "createdAt": "2025-01-20T09:00:00.000Z",
    "updatedAt": "2025-01-20T09:00:00.000Z",
    "createdBy": "Dana Demo",
    "isActive": True,
    "isCentralized": False,
    "requiredTier": "free-trial",
    "isAdopted": False,
    "_count": {"controls": 0},
    "frameworkAdoptions": [],
    "adoption": None,
}

_CREATE = ChangeOperation(
    http_method="POST",
    path="/frameworks/",
    operation_id="createFramework",
    tag="Frameworks",
    summary="Make a framework of your own",
    description="""\
Makes a framework that belongs to the organization alone. It has no controls yet, and nobody has adopted it.

Of the fields only `name` is required. The identifier is the name unless it is given, and the slug is made from the
identifier. `createdBy` is the name of the user.""",
    role="admin",
    body=FrameworkCreation,
    body_required=True,
    body_example={
        "organizationId": _ORGANIZATION,
        "name": "Harbourlight Robotics Internal Control Set",
        "identifier": "HRL-ICS",
        "version": "4.1",
    },
    work=lambda unit, given: frameworks.create(
        unit, given.body.organization_id, given_of(given.body, "organization_id")
    ),
    present=lambda framework: framework,
    writes=(insert_of(Framework),),
    creates=True,
    answer=framework_list.Framework,
    answer_description="The framework.",
    example=_FRAMEWORK,
)

_GET = ReadOperation(
    path="/frameworks/{id}/",
    operation_id="getFramework",
    tag="Frameworks",
    summary="Get a framework",
    description="""\
One framework that the organization can see, as the list of frameworks has it: an active centralized one, one that the
organization has adopted, or its own.""",
    about=Framework,
    id_description="The id of the framework.",
    query=OrganizationQuery,
    build=lambda transaction, query, asker: framework_list.one_framework(transaction, query.organization_id, asker.id),
    answer=framework_list.Framework,
    answer_description="The framework.",
    example=_FRAMEWORK,
)

_CHANGE = ChangeOperation(
    http_method="PATCH",
    path="/frameworks/{id}/",
    operation_id="changeFramework",
    tag="Frameworks",
    summary="Change a framework of your own",
    description="""\
Changes the fields that the body has, as a JSON merge patch (RFC 7396), of a framework that belongs to the organization.
`null` clears a field that may be empty. A body that changes nothing leaves `updatedAt` as it is.

A centralized framework stays what imports make of it: the answer is 403.""",
    role="admin",
    about=Framework,
    id_description="The id of the framework.",
    query=OrganizationQuery,
    body=FrameworkPatch,
    body_required=True,
    body_example={"name": "Harbourlight Robotics Internal Control Set", "version": "4.2", "description": None},
    work=lambda unit, given: frameworks.change(unit, given.query.organization_id, given.id, given_of(given.body)),
    present=lambda framework: framework,
    writes=(every_column_of(Framework),),
    answer=framework_list.Framework,
    answer_description="The framework as it is now.",
    example=_FRAMEWORK | {"version": "4.2", "description": None},
)

OPERATIONS: tuple[Operation, ...] = (_CREATE, _GET, _CHANGE)
