"""The operations of an organization's own frameworks and their controls."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field

from normata.core.changes.unit_of_work import insert_of, update_of
from normata.core.changes.writing import every_column_of
from normata.core.http.operation import ChangeOperation, Operation, ReadOperation
from normata.core.schema.fields import Identifier, ShortText
from normata.core.schema.paging import OrganizationId, OrganizationQuery
from normata.core.schema.wire import Input, Wire, body_model, wire
from normata.coverage.recompute import COVERAGE_WRITES
from normata.frameworks import framework_list
from normata.frameworks.model import Control, Framework
from normata.own_frameworks import controls, frameworks

_ORGANIZATION = "org-harbourlight"

FrameworkPatch = body_model(
    "FrameworkPatch",
    Framework,
    frameworks.WRITABLE,
    doc="What is to change of a framework. What is left out stays as it is; `null` clears a field.",
)


class FrameworkCreation(
    body_model(  # type: ignore[misc] # the base class is created from the table
        "_FrameworkCreation", Framework, frameworks.WRITABLE, doc="", required=("name",)
    )
):
    """An organization's own framework."""

    organization_id: OrganizationId


def present_fields(body: BaseModel, *without: str) -> dict[str, Any]:
    """The members of a body, by their wire names."""
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
    summary="Create a framework of your own",
    description="""\
Creates a framework that belongs to the organization. It has no controls yet, and is not adopted.

Only `name` is required. The identifier defaults to the name, and the slug is generated from the identifier. `createdBy`
is the name of the user.""",
    role="admin",
    body_limit=2**20,
    body=FrameworkCreation,
    body_required=True,
    has_rules=True,
    body_example={
        "organizationId": _ORGANIZATION,
        "name": "Harbourlight Robotics Internal Control Set",
        "identifier": "HRL-ICS",
        "version": "4.1",
    },
    work=lambda unit, request: frameworks.create(
        unit, request.body.organization_id, present_fields(request.body, "organization_id")
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
One framework that the organization can see, with the same fields as in the list of frameworks: an active centralized
one, one that the organization has adopted, or its own.""",
    about=Framework,
    id_description="The id of the framework.",
    query=OrganizationQuery,
    build=lambda transaction, request: framework_list.one_framework(transaction, request.organization_id, request.id),
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
Changes the fields in the body, a JSON merge patch (RFC 7396), of a framework that belongs to the organization. `null`
clears an optional field. A body that changes nothing leaves `updatedAt` as it is.

Only imports can change a centralized framework: the response is 403.""",
    role="admin",
    about=Framework,
    id_description="The id of the framework.",
    query=OrganizationQuery,
    body_limit=2**20,
    body=FrameworkPatch,
    body_required=True,
    has_rules=True,
    body_example={"name": "Harbourlight Robotics Internal Control Set", "version": "4.2", "description": None},
    work=lambda unit, request: frameworks.change(
        unit, request.query.organization_id, request.id, present_fields(request.body)
    ),
    present=lambda framework: framework,
    writes=(every_column_of(Framework),),
    answer=framework_list.Framework,
    answer_description="The changed framework.",
    example=_FRAMEWORK | {"version": "4.2", "description": None},
)

# --- Controls


def _nothing() -> None:
    """The default of an omitted field; so OpenAPI shows none."""


_Parent = Annotated[
    ShortText | None,
    Field(
        default_factory=_nothing,
        description="The identifier of the parent, instead of `parentId`: a control of the request or the framework.",
    ),
]
_After = Annotated[
    Identifier | None,
    Field(
        default_factory=_nothing,
        description="The id of the preceding control in catalog order, of the same framework; `null` to come first.",
    ),
]


class ControlCreation(
    body_model(  # type: ignore[misc] # as above
        "_ControlCreation", Control, controls.WRITABLE, doc="", required=("identifier", "name")
    )
):
    """A control to add to a framework."""

    parent: _Parent


class ControlsCreation(Input):
    """Controls to add to a framework, in catalog order: either all of them or none."""

    controls: Annotated[
        list[ControlCreation],
        Field(min_length=1, max_length=controls.MAX_AT_ONCE, description="The controls, in catalog order."),
    ]
    after: _After


class ControlPatch(body_model("_ControlPatch", Control, controls.WRITABLE, doc="")):  # type: ignore[misc] # as above
    """The changes of a control. Omitted fields stay as they are; `null` clears a field."""

    parent: _Parent
    after: _After


class CatalogControl(wire(Control)):  # type: ignore[misc] # as above
    """A control of a framework: a requirement, or a category of requirements."""

    is_decomposed: bool


class CatalogControls(Wire):
    """The controls of a request, in its order."""

    items: list[CatalogControl] = Field(description="The controls, in the order of the request.")


def _control(number: str, **fields: Any) -> dict[str, Any]:
    return {
        "id": f"hrl-ics:{number}",
        "frameworkId": "hrl-ics",
        "parentId": None,
        "identifier": number,
        "name": "",
        "slug": number.lower().replace(".", "-"),
        "purpose": None,
        "type": "CONTROL",
        "description": None,
        "isMandatory": False,
        "isCentralized": False,
        "createdAt": "2026-11-20T09:14:03.120Z",
        "updatedAt": "2026-11-20T09:14:03.120Z",
        "isDecomposed": False,
        **fields,
    }


_DOCK = {"identifier": "HRL-40", "name": "Docks", "type": "CATEGORY"}
_BERTH = {"identifier": "HRL-40.1", "name": "Berths are locked at night", "isMandatory": True}

_ADD = ChangeOperation(
    http_method="POST",
    path="/frameworks/{id}/controls/",
    operation_id="createControls",
    is_long=True,
    tag="Frameworks",
    summary="Add controls to a framework of your own",
    description=f"""\
Adds up to {controls.MAX_AT_ONCE} controls to a framework that belongs to the organization: either all of them or none.
Then every fault is reported with its place, such as `controls/3/parent`.

A parent is named by its id, or by its identifier: that of another control of the request, at any position, or of an
existing control of the framework. An identifier is unique in a framework, so sending a request twice adds nothing
twice.

In catalog order, the controls are in the order of the request: after all others, or after the one that
`after` names.""",
    role="admin",
    about=Framework,
    id_description="The id of the framework.",
    query=OrganizationQuery,
    body=ControlsCreation,
    body_required=True,
    body_limit=4 * 2**20,
    has_rules=True,
    body_example={"controls": [_DOCK, _BERTH | {"parent": "HRL-40"}]},
    work=lambda unit, request: controls.create(
        unit,
        request.query.organization_id,
        request.id,
        [present_fields(control) for control in request.body.controls],
        present_fields(request.body, "controls"),
    ),
    present=lambda found: {"items": found},
    writes=(
        insert_of(Control),
        update_of(Control, "position"),
        update_of(Framework, "control_count"),
        *COVERAGE_WRITES,
    ),
    answer=CatalogControls,
    answer_description="The controls, in the order of the request.",
    example={"items": [_control("HRL-40", **_DOCK), _control("HRL-40.1", **_BERTH, parentId="hrl-ics:HRL-40")]},
)

_CHANGE_CONTROL = ChangeOperation(
    http_method="PATCH",
    path="/controls/{id}/",
    operation_id="changeControl",
    tag="Frameworks",
    summary="Change a control of your own",
    description="""\
Changes the fields in the body, a JSON merge patch (RFC 7396), of a control of a framework that belongs to the
organization. `after` moves it in catalog order, without its children.

A control is never deleted, since assessments, matches and findings may refer to it. To retire one, assess it as not
applicable, with a justification: then it does not affect other controls, and is ignored in the roll-up of its parent.
Only imports can change a control of a centralized framework: the response is 403.""",
    role="admin",
    about=Control,
    id_description="The id of the control.",
    query=OrganizationQuery,
    body=ControlPatch,
    body_required=True,
    body_limit=2**20,
    has_rules=True,
    body_example={"name": "Berths are locked at night and on Sundays", "isMandatory": True},
    work=lambda unit, request: controls.change(
        unit, request.query.organization_id, request.id, present_fields(request.body)
    ),
    present=lambda control: control,
    writes=(every_column_of(Control), *COVERAGE_WRITES),
    answer=CatalogControl,
    answer_description="The changed control.",
    example=_control("HRL-40.1", name="Berths are locked at night and on Sundays", isMandatory=True),
)

OPERATIONS: tuple[Operation, ...] = (_CREATE, _GET, _CHANGE, _ADD, _CHANGE_CONTROL)
