"""Comments on a record or a control: on its page, and written, changed and removed there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup
from starlette.responses import Response

from normata.console.app.api_calls import ApiQuery, Fields, Refusal
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.row_links import steps_to
from normata.console.markdown import markdown
from normata.core.http.roles import AUDITOR
from normata.errors import InsufficientRole

_MOST = "100"


class CommentItem(NamedTuple):
    """A comment with its rendered text, and whether the person has written it."""

    id: str
    name: str
    at: str
    changed_at: str | None
    written: Markup
    is_own: bool


class Comments(NamedTuple):
    """The comments on something: the first ones, and how many there are in all. ``key`` is that of the form."""

    kind: str
    id: str
    items: Sequence[CommentItem]
    total: int
    can_write: bool
    key: str


def comments_query(kind: str, row_id: str) -> ApiQuery:
    """The query of the comments on something."""
    return ApiQuery("listComments", {"kind": kind, "id": row_id, "limit": _MOST})


def comments_of(
    page_request: OrganizationRequest, kind: str, row_id: str, answer: Mapping[str, Any], *, is_live: bool = True
) -> Comments:
    """The comments on something, from the answer to their query. Nobody comments on what is archived."""
    items = [_item(page_request, comment) for comment in answer["items"]]
    can_write = is_live and _may_write(page_request)
    return Comments(kind, row_id, items, answer["total"], can_write, page_request.new_key())


def _may_write(page_request: OrganizationRequest) -> bool:
    return page_request.membership.role != AUDITOR


def _item(page_request: OrganizationRequest, comment: Mapping[str, Any]) -> CommentItem:
    author, created, updated = comment["author"], comment["createdAt"], comment["updatedAt"]
    return CommentItem(
        comment["id"],
        author["name"],
        created,
        updated if updated != created else None,
        markdown(comment["text"]),
        author["userId"] == page_request.person.user_id and _may_write(page_request),
    )


async def write(page_request: OrganizationRequest) -> Response:
    """Write a comment, once, however often the form is sent. An empty one is none."""
    form = await page_request.fields()
    if not form.get("text").strip():
        return page_request.back(form, page_request.path())
    about = {"kind": form.get("kind"), "id": form.get("id")}
    body = {"about": about, "text": form.get("text")}
    outcome = await page_request.change("createComment", body=body, key=form.get("key"))
    if outcome.refusal is not None:
        return _form_page(page_request, form, outcome.refusal)
    return page_request.back(form, page_request.path(), "commented")


async def show_one(page_request: OrganizationRequest) -> Response:
    """A comment on a page of its own, with the form to change it if the person has written it."""
    comment = await page_request.ask_one(ApiQuery("getComment", id=page_request.param("id")))
    about = comment["about"]
    steps = steps_to(about["kind"], about["id"])
    return_to = page_request.path(*steps) if steps else page_request.path()
    sent = {"text": comment["text"], "return_to": return_to}
    return _form_page(page_request, sent, read=_item(page_request, comment))


async def change(page_request: OrganizationRequest) -> Response:
    """Change or remove a comment, as ``step`` says."""
    form, comment_id = await page_request.fields(), page_request.param("id")
    if not _may_write(page_request):
        raise InsufficientRole
    is_removed = form.get("step") == "remove"
    outcome = (
        await page_request.change("deleteComment", row_id=comment_id)
        if is_removed
        else await page_request.change("changeComment", row_id=comment_id, body={"text": form.get("text")})
    )
    if outcome.refusal is not None:
        return _form_page(page_request, form, outcome.refusal)
    return page_request.back(form, page_request.path(), "comment_removed" if is_removed else "commented")


def _form_page(
    page_request: OrganizationRequest,
    sent: Fields | Mapping[str, str],
    refusal: Refusal | None = None,
    *,
    read: CommentItem | None = None,
) -> Response:
    """A comment on a page of its own: as it was ``read``, to change it, or because it was refused."""
    return page_request.page(
        "app/comment.html",
        status=refusal.status if refusal else 200,
        entered={name: sent.get(name) or "" for name in ("kind", "id", "text", "return_to")},
        key=page_request.new_key(),
        refusal=refusal,
        comment=read if read is not None and not read.is_own else None,
    )
