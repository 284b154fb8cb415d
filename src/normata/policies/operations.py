"""The operations of policies beyond those of all records: their steps, their drafts and their versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import Field, StringConstraints, create_model
from pydantic.alias_generators import to_camel

from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.security import Write
from normata.core.http.change_endpoint import as_null
from normata.core.http.operation import ChangeOperation, ListOperation, Operation, ReadOperation
from normata.core.http.request import Request
from normata.core.http.roles import Role
from normata.core.schema.fields import MAX_NUMBER, Json, ShortText, Text, Timestamp
from normata.core.schema.paging import OrganizationQuery, Page
from normata.core.schema.wire import Input, Wire, as_wire, wire
from normata.errors import Archived, NoApprover, WrongState, WrongVersion
from normata.policies import drafts, steps
from normata.policies.listing import ChangesQuery, VersionQuery, changes_of, list_versions
from normata.policies.model import ACKNOWLEDGING_ROLES, AcknowledgingRole, PolicyVersion
from normata.policies.paragraphs import ParagraphChange
from normata.records import examples
from normata.records.kinds import Policy
from normata.records.writing import MAX_DOCUMENT_BYTES

_ID = "The id of the live policy."
_TAG = "Policies"

_Number = Annotated[
    int,
    Field(ge=1, le=MAX_NUMBER, description="The number of the version that was read, as in its draft and in versions."),
]


class PolicyApproval(Input):
    """Which version was read."""

    version: _Number


class PolicyPublication(Input):
    """Who is asked to acknowledge the version."""

    acknowledging_roles: Annotated[
        list[AcknowledgingRole],
        Field(
            max_length=len(ACKNOWLEDGING_ROLES),
            description="The roles whose members are asked; all of these where it is left out, nobody if it is empty.",
        ),
    ] = list(ACKNOWLEDGING_ROLES)  # noqa: RUF012 - Pydantic copies it


class PolicyRejection(Input):
    """Which version is rejected, and why."""

    version: _Number
    reason: Annotated[
        Text, StringConstraints(strip_whitespace=True, min_length=1), Field(description="What has to change.")
    ]


class PolicyReview(Input):
    """The optional body when a policy is reviewed."""

    note: Annotated[ShortText | None, Field(default=None, description="What was looked at, for later readers.")]


class PolicyText(Input):
    """The text of a draft."""

    content: Annotated[Json, Field(description="The whole text: Markdown, or any other JSON document.")]


class PolicyDraft(Wire):
    """The text of a policy that is to be approved next."""

    policy_id: str = Field(description="The id of the policy.")
    number: int | None = Field(
        description="The number of the version. Each submission gives the next one; null until the first."
    )
    state: str = Field(description="`DRAFT`, or `IN_REVIEW` while its text is frozen.")
    title: str = Field(description="The title of the policy.")
    content: Any = Field(description="The text.")
    reason: str | None = Field(description="Why it was rejected last; null if it was not.")
    edited_by_id: str | None = Field(description="The membership of who wrote the text last; null if that is unknown.")
    created_at: Timestamp | None = Field(description="When the draft was begun; null if that is the policy itself.")
    submitted_by_id: str | None = Field(description="The membership of who submitted it last.")
    submitted_at: Timestamp | None = Field(description="When it was submitted last.")


_Listed = create_model(
    "PolicyVersion",
    __base__=wire(PolicyVersion),
    __doc__="A version of a policy, as it was approved.",
    changes=(
        list[ParagraphChange] | None,
        Field(
            description="What it changed, by paragraph; null if there is no version before, or a text of the two was"
            " erased, or it is left out."
        ),
    ),
    changes_left_out=(
        bool,
        Field(
            description="Whether `changes` are left out, because the texts of the page are so long:"
            " `/policies/{id}/changes/` compares two of them."
        ),
    ),
)


class PolicyChanges(Wire):
    """What a text of a policy changes."""

    version: int | None = Field(description="The number of the version; null for a draft that was never submitted.")
    since: int | None = Field(description="The number of the version that it is compared with; null if there is none.")
    changes: list[ParagraphChange] | None = Field(
        description="What differs, by paragraph; null if there is no version before, or a text of the two was erased."
    )


class PolicyVersionPage(Page[_Listed]):
    """A page of versions."""


_POLICY = examples.restored(Policy) or {}
_DRAFT: dict[str, Any] = {
    "policyId": "policy-cryptography",
    "number": 4,
    "state": "IN_REVIEW",
    "title": "Cryptography and Key Management",
    "content": "## Approved methods\n\nOnly methods of the current list are used.",
    "reason": None,
    "editedById": "member-tomasz",
    "createdAt": "2026-11-09T09:14:03.120Z",
    "submittedById": "member-tomasz",
    "submittedAt": "2026-11-18T09:14:03.120Z",
}
_CHANGE = {"change": "ADDED", "paragraph": 2, "text": "Only methods of the current list are used."}
_VERSION: dict[str, Any] = {
    "id": "01a2033c-19a0-7c51-93a4-0f4b8b7c9d42",
    "organizationId": "org-harbourlight",
    "policyId": "policy-cryptography",
    "number": 4,
    "state": "PUBLISHED",
    "isImported": False,
    "title": "Cryptography and Key Management",
    "content": "## Approved methods\n\nOnly methods of the current list are used.",
    "contentSha256": "b137985ff484fb600db93107c77b0365c80d78f5b429ded0fd97361d077999eb",
    "editedById": "member-tomasz",
    "submittedById": "member-tomasz",
    "approvedById": "member-ines",
    "acknowledgingRoles": ["viewer", "editor", "admin", "owner"],
    "reason": None,
    "createdAt": "2026-11-09T09:14:03.120Z",
    "submittedAt": "2026-11-18T09:14:03.120Z",
    "approvedAt": "2026-11-20T15:02:41.007Z",
    "publishedAt": "2026-11-20T15:10:02.500Z",
    "supersededAt": None,
    "erasedAt": None,
    "changes": [_CHANGE],
    "changesLeftOut": False,
}


def _present(draft: Mapping[str, Any] | None) -> Any:
    return None if draft is None else {to_camel(name): value for name, value in draft.items()}


def _step(
    name: str,
    summary: str,
    description: str,
    work: Callable[[UnitOfWork, Request], Any],
    *,
    role: Role = "editor",
    own_role: Role | None = None,
    errors: tuple[type[Exception], ...] = (),
    writes: tuple[Write, ...] = steps.STEP_WRITES,
    **more: Any,
) -> ChangeOperation:
    return ChangeOperation(
        http_method="POST",
        path=f"/{Policy.path}/{{id}}/{name}/",
        operation_id=f"{name}Policy",
        tag=_TAG,
        summary=summary,
        description=description,
        about=Policy,
        id_description=_ID,
        work=work,
        present=lambda row: as_wire(Policy, row),
        role=role,
        own_role=own_role,
        writes=writes,
        errors=(Archived, WrongState, *errors),
        answer=wire(Policy),
        answer_description="The policy as it is now.",
        example=_POLICY,
        **more,
    )


OPERATIONS: tuple[Operation, ...] = (
    _step(
        "submit",
        "Submit a policy for approval",
        """\
Submits the draft to the approver: the version gets its number, its text is frozen, and its hash is in the event. Until
the first approval the draft is the text of the policy itself, later that of `/policies/{id}/draft/`. Without an
approver who is a person and a member, and no auditor, the response is 409 `no_approver`.""",
        lambda unit, request: steps.submit(unit, request.id),
        errors=(NoApprover,),
    ),
    _step(
        "withdraw",
        "Withdraw a policy from review",
        "Makes what is in review a draft again, so that its text can be changed. Its number is not given again.",
        lambda unit, request: steps.withdraw(unit, request.id),
    ),
    _step(
        "approve",
        "Approve a policy",
        """\
Approves the version in review, which the approver of the policy alone can do, whatever their role; an owner cannot in
their place, and a service account approves nothing. Who submitted the text or edited it last, also by an account or a
token that they have made, cannot approve it, unless the organization allows that (`allowsSelfApproval`). Another
`version` than the one in review is 409 `wrong_version`. It is in force at once if no version is published, else once
it is published.""",
        lambda unit, request: steps.approve(unit, request.id, request.body.version),
        role="owner",
        own_role="viewer",
        errors=(WrongVersion,),
        body=PolicyApproval,
        body_required=True,
        body_example={"version": 4},
    ),
    _step(
        "reject",
        "Reject a policy",
        """\
Makes the version in review a draft again, for a reason, which the approver of the policy alone can do. Another
`version` than the one in review is 409 `wrong_version`.""",
        lambda unit, request: steps.reject(unit, request.id, request.body.version, request.body.reason),
        role="owner",
        own_role="viewer",
        errors=(WrongVersion,),
        body=PolicyRejection,
        body_required=True,
        body_example={"version": 4, "reason": "Say until when keys of generation 1 are replaced."},
    ),
    _step(
        "publish",
        "Publish a policy",
        """\
Publishes the approved version, which replaces the published one: from then on it is the version in force. Members are
asked to acknowledge it, all but auditors or those with the roles in `acknowledgingRoles`, and reminded every week until
they have. The publication counts as a review: `lastReviewedAt` is set, and `nextReviewAt` moves by the interval between
both.""",
        lambda unit, request: steps.publish(
            unit, request.id, ACKNOWLEDGING_ROLES if request.body is None else request.body.acknowledging_roles
        ),
        writes=steps.PUBLICATION_WRITES,
        body=PolicyPublication,
        body_example={"acknowledgingRoles": ["viewer", "editor"]},
    ),
    _step(
        "review",
        "Record the review of a policy",
        """\
Records that the version in force was reviewed, and stays as it is: `lastReviewedAt` is set, and `nextReviewAt` moves by
the interval between both. The approver of the policy can do it, whatever their role, and admins, but no service
account.""",
        lambda unit, request: steps.review(unit, request.id, None if request.body is None else request.body.note),
        role="admin",
        own_role="viewer",
        body=PolicyReview,
        body_example={"note": "Read with the administrators: nothing has to change."},
    ),
    _step(
        "retire",
        "Retire a policy",
        """\
Ends the version in force: its text stays to be read, and the policy is `RETIRED`. A draft stays; approved and
published, it brings the policy back.""",
        lambda unit, request: steps.retire(unit, request.id),
    ),
    ReadOperation(
        path=f"/{Policy.path}/{{id}}/draft/",
        operation_id="getPolicyDraft",
        tag=_TAG,
        summary="Get the draft of a policy",
        description="""\
The text that is to be approved next, as a draft or in review. Until the first approval it is that of the policy itself.
It is not found if the version in force is the newest text.""",
        about=Policy,
        id_description="The id of the policy.",
        query=OrganizationQuery,
        build=lambda transaction, request: _present(
            drafts.read_draft(transaction, request.organization_id, request.id)
        ),
        answer=PolicyDraft,
        answer_description="The draft.",
        example=_DRAFT,
    ),
    ChangeOperation(
        http_method="PUT",
        path=f"/{Policy.path}/{{id}}/draft/",
        operation_id="putPolicyDraft",
        tag=_TAG,
        summary="Write the draft of a policy",
        description="""\
Writes the text of the next version. The version in force stays as it was approved. In review it is 409 `wrong_state`,
and before the first approval, when `PATCH /policies/{id}/` changes the text, as well.""",
        about=Policy,
        id_description=_ID,
        work=lambda unit, request: drafts.write_draft(
            unit,
            request.id,
            request.body.content,
            require_current=lambda draft: request.require_current(_present(draft)),
        ),
        present=_present,
        writes=drafts.DRAFT_WRITES,
        body=PolicyText,
        body_required=True,
        body_limit=MAX_DOCUMENT_BYTES,
        body_example={"content": _DRAFT["content"]},
        is_conditional=True,
        errors=(Archived, WrongState),
        answer=PolicyDraft,
        answer_description="The draft.",
        example=_DRAFT | {"number": None, "state": "DRAFT", "submittedById": None, "submittedAt": None},
    ),
    ChangeOperation(
        http_method="DELETE",
        path=f"/{Policy.path}/{{id}}/draft/",
        operation_id="discardPolicyDraft",
        tag=_TAG,
        summary="Discard the draft of a policy",
        description="Removes the draft of the next version, which must not be in review. The version in force stays.",
        about=Policy,
        id_description=_ID,
        work=lambda unit, request: drafts.discard_draft(unit, request.id),
        present=as_null,
        writes=drafts.DISCARD_WRITES,
        errors=(Archived, WrongState),
        answer=None,
        answer_description="`null`: there is no draft any more.",
        example=None,
    ),
    ListOperation(
        path=f"/{Policy.path}/{{id}}/versions/",
        operation_id="listPolicyVersions",
        tag=_TAG,
        summary="List the versions of a policy",
        description="""\
The approved versions of a policy, the newest first: each with its text as it was approved, who submitted and approved
it, when, its hash, which the events of its steps have as well, and what it changed. One with `isImported` comes from
elsewhere: it was imported, and not approved here.""",
        about=Policy,
        id_description="The id of the policy.",
        query=VersionQuery,
        build=lambda transaction, request: list_versions(transaction, request.id, request.query),
        is_long=True,
        answer=PolicyVersionPage,
        answer_description="A page of versions.",
        example={"items": [_VERSION], "total": 1, "totalIsExact": True, "page": 1, "limit": 100},
    ),
    ReadOperation(
        path=f"/{Policy.path}/{{id}}/changes/",
        operation_id="getPolicyChanges",
        tag=_TAG,
        summary="Compare two texts of a policy",
        description="""\
What a version of a policy, or its draft, changes in the text of an earlier version, by paragraph. Where more than 300
paragraphs lie between the first and the last that differ, all of them count as replaced.""",
        about=Policy,
        id_description="The id of the policy.",
        query=ChangesQuery,
        build=lambda transaction, request: changes_of(transaction, request.id, request.query),
        is_long=True,
        answer=PolicyChanges,
        answer_description="The changes.",
        example={"version": 4, "since": 3, "changes": [_CHANGE]},
    ),
)
