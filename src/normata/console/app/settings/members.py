"""Settings: members, their roles and responsibilities, and removing them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from normata.console.app.api_calls import ApiQuery, Fields, Refusal, tag_of
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.people import with_all
from normata.console.app.records.kinds import label
from normata.console.app.row_links import steps_to
from normata.console.texts import text
from normata.core.http.problems import InvalidRequest
from normata.core.http.roles import AUDITOR, ROLES, Role, role_suffices

_SHOWN = ("exclude", "only", "include")


async def show_list(page_request: OrganizationRequest) -> Response:
    """List the members with their roles; removed ones, too, if the address asks for them."""
    wanted = {name: page_request.query.get(name, "") for name in ("removed", "page", "cursor")}
    found = await page_request.ask_one(ApiQuery("listMembers", wanted))
    return page_request.page(
        "app/settings/members.html", members=found, removed=wanted["removed"] or _SHOWN[0], choices=_SHOWN
    )


async def show_one(page_request: OrganizationRequest) -> Response:
    """Show a member with their responsibilities."""
    return await _page(page_request)


async def change(page_request: OrganizationRequest) -> Response:
    """Change a member's role and when that ends, hand over their responsibilities, or remove them, as ``step`` says."""
    form, member_id = await page_request.fields(), page_request.param("id")
    step = form.get("step")
    if step == "remove":
        return await _remove(page_request, member_id)
    page_request.require("editor")
    if step == "hand_over":
        return await _hand_over(page_request, member_id, form)
    if step != "role":
        raise InvalidRequest(text("problem.form"))
    body: dict[str, Any] = {"role": form.get("role")}
    # A day that was left as it is stands for a moment on that day.
    if form.get("ends") != form.get("ended")[:10]:
        body["expiresAt"] = form.get("ends") or None
    outcome = await page_request.change("changeMember", row_id=member_id, body=body, if_match=form.get("seen"))
    if outcome.refusal is not None:
        return await _page(page_request, outcome.refusal)
    return page_request.go(page_request.path("settings", "members", member_id), "role_changed")


def roles_within(own: str) -> list[Role]:
    """The roles that a member with the role ``own`` may give, the lowest first."""
    return [role for role in ROLES if role_suffices(own, role)]


async def _remove(page_request: OrganizationRequest, member_id: str) -> Response:
    outcome = await page_request.change("removeMember", row_id=member_id)
    if outcome.refusal is not None:
        return await _page(page_request, outcome.refusal)
    if outcome.answer["member"]["userId"] == page_request.person.user_id:
        return page_request.redirect("/app/")  # they are no longer a member here
    return page_request.go(page_request.path("settings", "members", member_id), "member_removed")


async def _hand_over(page_request: OrganizationRequest, member_id: str, form: Fields) -> Response:
    body = {"toMemberId": form.get("to")}
    outcome = await page_request.change("handOver", row_id=member_id, body=body)
    if outcome.refusal is not None:
        return await _page(page_request, outcome.refusal)
    done = "handed_over_some" if outcome.answer["more"] else "handed_over"
    return page_request.go(page_request.path("settings", "members", member_id), done)


async def _page(page_request: OrganizationRequest, refusal: Refusal | None = None) -> Response:
    member_id, can_hand_over = page_request.param("id"), page_request.may("editor")
    api_queries = [
        ApiQuery("getMember", id=member_id),
        ApiQuery("listResponsibilities", page_request.place, id=member_id),
    ]
    if can_hand_over:
        api_queries.append(ApiQuery("listMembers"))
    member, named, *others = await page_request.ask(*api_queries)
    heirs: list[Mapping[str, Any]] = []
    if can_hand_over and named["total"]:
        everybody = await with_all(page_request, others[0], removed="exclude")
        heirs = [one for one in everybody["items"] if one["id"] != member_id and one["role"] != AUDITOR]
    is_self, is_there = member["userId"] == page_request.person.user_id, member["removedAt"] is None
    is_above = page_request.may("admin") and role_suffices(page_request.membership.role, member["role"])
    return page_request.page(
        "app/settings/member.html",
        status=refusal.status if refusal else 200,
        member=member,
        named=named,
        heirs=heirs,
        roles=[
            role
            for role in roles_within(page_request.membership.role)
            if not (member["isServiceAccount"] and role == "owner")
        ],
        seen=tag_of(member),
        can_change=is_above and is_there,
        can_remove=(is_self or is_above) and is_there,
        is_self=is_self,
        refusal=refusal,
        steps_to=steps_to,
        label=label,
    )
