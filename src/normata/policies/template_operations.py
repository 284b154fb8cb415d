"""The operations of the templates of policies: which there are, the text of one, and a policy that begins with it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from pydantic import Field

from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.http.operation import ChangeOperation, Operation, ReadOperation
from normata.core.http.request import Request
from normata.core.schema.fields import Identifier, Name, Timestamp
from normata.core.schema.paging import OrganizationId, OrganizationQuery
from normata.core.schema.wire import Input, Wire, as_wire, wire
from normata.errors import SlugTaken
from normata.policies.from_template import TEMPLATE_WRITES, create_from_template, template_of
from normata.policies.templates import TEMPLATES, Template
from normata.records import examples
from normata.records.kinds import Policy

_TAG = "Policies"
_ID = "The id of the template."


class TemplateControl(Wire):
    """A control that a policy helps with."""

    framework: str = Field(description="The name of the framework.")
    identifier: str = Field(description="The identifier of the control in it.")


class PolicyTemplate(Wire):
    """A text that policies begin with."""

    id: str = Field(description="The id of the template.")
    title: str = Field(description="The title of the policy.")
    controls: list[TemplateControl] = Field(description="The controls that it helps with.")


class PolicyTemplateText(PolicyTemplate):
    """A template with its text."""

    content: str = Field(
        description="The text, in Markdown. A policy that is created from it has values in place of `{{organization}}`,"
        " `{{approver}}` and `{{date}}`."
    )


class PolicyTemplates(Wire):
    """The templates."""

    items: list[PolicyTemplate] = Field(description="The templates, the most general first.")


class PolicyFromTemplate(Input):
    """A policy that begins with the text of a template."""

    organization_id: OrganizationId
    title: Name | None = Field(default=None, description="The title; that of the template where it is left out.")
    approver_id: Identifier | None = Field(
        default=None, description="The membership of the approver, whom admins name; nobody where it is left out."
    )
    next_review_at: Timestamp | None = Field(default=None, description="When it is to be reviewed next.")


def _present(template: Template) -> Mapping[str, Any]:
    controls = [one._asdict() for one in template.controls]
    return {"id": template.id, "title": template.title, "controls": controls}


def _with_text(template: Template) -> Mapping[str, Any]:
    return {**_present(template), "content": template.text}


def _create(unit: UnitOfWork, request: Request) -> Any:
    sent = request.body.model_dump(by_alias=True, exclude_none=True, exclude={"organization_id"})
    return create_from_template(unit, request.id, request.body.organization_id, sent)


_EXAMPLE = TEMPLATES["backup"]

OPERATIONS: tuple[Operation, ...] = (
    ReadOperation(
        path="/policy-templates/",
        operation_id="listPolicyTemplates",
        tag=_TAG,
        summary="List the templates of policies",
        description="The texts that policies can begin with, each with the controls that it helps with.",
        query=OrganizationQuery,
        build=lambda _transaction, _request: {"items": [_present(one) for one in TEMPLATES.values()]},
        answer=PolicyTemplates,
        answer_description="The templates.",
        example={"items": [_present(_EXAMPLE)]},
    ),
    ReadOperation(
        path="/policy-templates/{id}/",
        operation_id="getPolicyTemplate",
        tag=_TAG,
        summary="Get a template of policies",
        description="""\
A template with its text: numbered sections in plain English, which an organization changes as it needs.""",
        id_description=_ID,
        query=OrganizationQuery,
        build=lambda _transaction, request: _with_text(template_of(request.id)),
        answer=PolicyTemplateText,
        answer_description="The template.",
        example=_with_text(_EXAMPLE),
    ),
    ChangeOperation(
        http_method="POST",
        path="/policy-templates/{id}/policies/",
        operation_id="createPolicyFromTemplate",
        tag=_TAG,
        summary="Create a policy from a template",
        description="""\
Creates a policy whose text is that of the template, with the names of the organization and of the approver in it. It
implements (`IMPLEMENTS`) the controls that the template names, as far as the organization has adopted their frameworks.
The policy and its links are made in one transaction.""",
        id_description=_ID,
        work=_create,
        present=partial(as_wire, Policy),
        writes=TEMPLATE_WRITES,
        body=PolicyFromTemplate,
        body_required=True,
        has_rules=True,
        body_example={"organizationId": "org-harbourlight", "title": "Backup and Restoration"},
        creates=True,
        made_at=f"/{Policy.path}/",
        answer=wire(Policy),
        answer_description="The policy.",
        example=examples.restored(Policy),
        errors=(SlugTaken, *Policy.refusals),
    ),
)
