"""The operations of comments."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, StringConstraints

from normata import errors
from normata.comments import commands
from normata.comments.model import Comment
from normata.comments.queries import (
    CommentAnswer,
    CommentedKind,
    CommentQuery,
    list_comments,
    one_comment,
)
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.http.change_endpoint import as_null
from normata.core.http.operation import ChangeOperation, ListOperation, Operation, ReadOperation
from normata.core.http.request import Request
from normata.core.schema.fields import NOT_BLANK, Identifier
from normata.core.schema.paging import OrganizationId, OrganizationQuery, Page
from normata.core.schema.wire import Input
from normata.links.model import End

MAX_TEXT = 10_000


class CommentPage(Page[CommentAnswer]):
    """A page of comments."""


class CommentedThing(Input):
    """A record of any kind, or a control."""

    kind: CommentedKind
    id: Annotated[Identifier, Field(description="The id.")]


CommentText = Annotated[
    str,
    StringConstraints(min_length=1, max_length=MAX_TEXT, pattern=NOT_BLANK),
    Field(description="What it says, in Markdown. `@` and the name or address of a member mentions them."),
]


class CommentCreation(Input):
    """A comment to write."""

    organization_id: OrganizationId
    about: Annotated[CommentedThing, Field(description="What it is about.")]
    text: CommentText


class CommentPatch(Input):
    """Another text of a comment."""

    text: CommentText


def _create(unit: UnitOfWork, request: Request) -> dict[str, Any]:
    body: CommentCreation = request.body
    row = commands.write(unit, body.organization_id, End(body.about.kind, body.about.id), body.text)
    return one_comment(unit, row.organization_id, row.id)


def _change(unit: UnitOfWork, request: Request) -> dict[str, Any]:
    def require_current(row: Any) -> None:
        request.require_current(one_comment(unit, row.organization_id, row.id))

    row = commands.change(unit, request.id, request.body.text, require_current=require_current)
    return one_comment(unit, row.organization_id, row.id)


_ID = "The id of a comment."
_COMMENT: dict[str, Any] = {
    "id": "01a1f87c-691d-7204-a6da-d46c39e191fb",
    "organizationId": "org-harbourlight",
    "about": {"kind": "policies", "id": "policy-information-security"},
    "author": {"memberId": "member-ines", "userId": "user-ines", "name": "Ines Albrecht"},
    "text": "Does section 6 hold for freelancers, too?",
    "createdAt": "2026-11-20T09:14:03.120Z",
    "updatedAt": "2026-11-20T09:14:03.120Z",
}
_BODY: dict[str, Any] = {name: _COMMENT[name] for name in ("organizationId", "about", "text")}
_OTHER = {"text": "Does section 6 hold for freelancers and interns, too?"}

OPERATIONS: tuple[Operation, ...] = (
    ListOperation(
        path="/comments/",
        operation_id="listComments",
        tag="Comments",
        summary="List comments",
        description="""\
The comments of the organization, newest first; with `kind` and `id` those on one record or control, oldest first.
Comments on an archived record stay.""",
        query=CommentQuery,
        build=lambda transaction, request: list_comments(transaction, request.query),
        answer=CommentPage,
        answer_description="A page of comments.",
        example={"items": [_COMMENT], "total": 1, "totalIsExact": True, "page": 1, "limit": 100},
    ),
    ReadOperation(
        path="/comments/{id}/",
        operation_id="getComment",
        tag="Comments",
        summary="Get a comment",
        description="""\
A comment on a record or a control, with its author. One that was removed is not found; its events have it.""",
        about=Comment,
        id_description=_ID,
        query=OrganizationQuery,
        build=lambda transaction, request: one_comment(transaction, request.organization_id, request.id),
        answer=CommentAnswer,
        answer_description="The comment.",
        example=_COMMENT,
    ),
    ChangeOperation(
        http_method="POST",
        path="/comments/",
        operation_id="createComment",
        tag="Comments",
        summary="Write a comment",
        description="""\
Comments on a live record of any kind, or on a control. Every member but an auditor may. The responsible member, owners
by link, who has commented before, and who is mentioned are notified.""",
        role="viewer",
        work=_create,
        present=lambda comment: comment,
        writes=commands.CREATION_WRITES,
        body=CommentCreation,
        body_required=True,
        body_example=_BODY,
        has_rules=True,
        creates=True,
        answer=CommentAnswer,
        answer_description="The comment.",
        example=_COMMENT,
        errors=(errors.Archived,),
    ),
    ChangeOperation(
        http_method="PATCH",
        path="/comments/{id}/",
        operation_id="changeComment",
        tag="Comments",
        summary="Change a comment",
        description="Gives one's own comment another text; its events have the earlier one. Who is newly mentioned is"
        " notified.",
        role="owner",
        own_role="viewer",
        about=Comment,
        id_description=_ID,
        work=_change,
        present=lambda comment: comment,
        writes=commands.CHANGE_WRITES,
        body=CommentPatch,
        body_required=True,
        body_example=_OTHER,
        has_rules=True,
        is_conditional=True,
        answer=CommentAnswer,
        answer_description="The comment as it is now.",
        example=_COMMENT | _OTHER | {"updatedAt": "2026-11-20T09:20:41.007Z"},
    ),
    ChangeOperation(
        http_method="DELETE",
        path="/comments/{id}/",
        operation_id="deleteComment",
        tag="Comments",
        summary="Remove a comment",
        description="Removes one's own comment. The events of it have what it said, and who removed it.",
        role="owner",
        own_role="viewer",
        about=Comment,
        id_description=_ID,
        work=lambda unit, request: commands.remove(unit, request.id),
        present=as_null,
        writes=commands.REMOVAL_WRITES,
        answer=None,
        answer_description="`null`: the comment was removed.",
        example=None,
    ),
)
