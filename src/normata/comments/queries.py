"""Reading comments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, model_validator
from sqlalchemy import bindparam, select

from normata.comments.commands import KINDS
from normata.comments.model import Comment
from normata.core.db.transaction import Transaction
from normata.core.schema.fields import Identifier, Timestamp
from normata.core.schema.paging import PageQuery, envelope, fetch_page
from normata.core.schema.table import sql_table
from normata.core.schema.wire import Wire
from normata.errors import NotFound
from normata.identity.model import Membership, User

if TYPE_CHECKING:
    CommentedKind = str
else:  # the names are known at run time only
    CommentedKind = Annotated[
        Literal[KINDS],
        Field(description="The kind: that of a record as in its path (`tasks`), or `controls`."),
    ]


class About(Wire):
    """What a comment is about: a record or a control."""

    kind: str = Field(description="The kind: that of a record as in its path, or `controls`.")
    id: str = Field(description="The id.")


class Author(Wire):
    """The member who has written a comment."""

    member_id: str = Field(description="The id of the membership.")
    user_id: str = Field(description="The id of the user.")
    name: str = Field(description="The name of the user.")


class CommentAnswer(Wire):
    """What a member says about a record or a control."""

    id: str
    organization_id: str
    about: About = Field(description="What it is about.")
    author: Author = Field(description="Who has written it.")
    text: str = Field(description="What it says, in Markdown.")
    created_at: Timestamp
    updated_at: Timestamp = Field(description="When its author last changed it; as `createdAt` if they never did.")


class CommentQuery(PageQuery):
    """The query of the list of comments."""

    kind: Annotated[CommentedKind | None, Field(description="Only comments on what has this kind and `id`.")] = None
    id: Annotated[Identifier | None, Field(description="Only comments on what has this id, of this `kind`.")] = None

    @model_validator(mode="after")
    def _names_one_thing(self) -> Self:
        if (self.kind is None) != (self.id is None):
            raise ValueError("must have both kind and id, or neither")
        return self


def list_comments(transaction: Transaction, query: CommentQuery) -> dict[str, Any]:
    """A page of an organization's comments, in two statements.

    Those on one thing come as they were written, the oldest first; all of them come with the newest first.
    """
    statement = _ALL.where(_COMMENT.c.organization_id == query.organization_id)
    if query.kind is not None and query.id is not None:
        statement = statement.where(_COMMENT.c.about_id == query.id, _COMMENT.c.about_kind == query.kind)
        order = [_COMMENT.c.created_at.asc(), _COMMENT.c.id.asc()]
    else:
        order = [_COMMENT.c.created_at.desc(), _COMMENT.c.id.desc()]
    found = fetch_page(transaction, statement, order, query)
    return envelope(_as_wire(found.rows), found, query)


def one_comment(transaction: Transaction, organization_id: str, comment_id: str) -> dict[str, Any]:
    """A comment. Raises NotFound."""
    row = transaction.row(_ONE, {"organization": organization_id, "comment": comment_id})
    if row is None:
        raise NotFound
    return _as_wire([row])[0]


def _as_wire(rows: Iterable[Any]) -> list[dict[str, Any]]:
    return [
        {
            "id": row.id,
            "organizationId": row.organization_id,
            "about": {"kind": row.about_kind, "id": row.about_id},
            "author": {"memberId": row.author_id, "userId": row.author_user_id, "name": row.author_name},
            "text": row.text,
            "createdAt": row.created_at,
            "updatedAt": row.updated_at,
        }
        for row in rows
    ]


_COMMENT, _MEMBER, _USER = sql_table(Comment), sql_table(Membership), sql_table(User)
_ALL = (
    select(*_COMMENT.c, _USER.c.id.label("author_user_id"), _USER.c.name.label("author_name"))
    .join(_MEMBER, _MEMBER.c.id == _COMMENT.c.author_id)
    .join(_USER, _USER.c.id == _MEMBER.c.user_id)
)
_ONE = _ALL.where(_COMMENT.c.organization_id == bindparam("organization"), _COMMENT.c.id == bindparam("comment"))
