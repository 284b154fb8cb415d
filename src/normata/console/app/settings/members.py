"""Settings: members, their roles, what they answer for, and how they go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from normata.console.app.api_calls import Fields, Question, Refusal, tag_of
from normata.console.app.organization_request import OrganizationVisit
from normata.console.app.people import with_all
from normata.console.app.records.kinds import label
from normata.console.app.row_links import steps_to
from normata.console.texts import text
from normata.core.http.problems import InvalidRequest
from normata.core.http.roles import ROLES, Role, role_suffices

_SHOWN = ("exclude", "only", "include")


async def show_list(visit: OrganizationVisit) -> Response:
    """Who is a member, with which role; and who was, where that is asked for."""
    wanted = {name: visit.query.get(name, "") for name in ("removed", "page")}
    found = await visit.ask_one(Question("listMembers", wanted))
    return visit.page(
        "app/settings/members.html", members=found, removed=wanted["removed"] or _SHOWN[0], choices=_SHOWN
    )


async def show_one(visit: OrganizationVisit) -> Response:
    """A member, and what they answer for."""
    return await _page(visit)


async def change(visit: OrganizationVisit) -> Response:
    """Give a member another role, hand over what they answer for, or remove them, as ``step`` says."""
    form, member_id = await visit.fields(), visit.param("id")
    step = form.get("step")
    if step == "remove":
        return await _remove(visit, member_id)
    visit.require("editor")
    if step == "hand_over":
        return await _hand_over(visit, member_id, form)
    if step != "role":
        raise InvalidRequest(text("problem.form"))
    body = {"role": form.get("role")}
    outcome = await visit.change("changeMember", row_id=member_id, body=body, if_match=form.get("seen"))
    if outcome.refusal is not None:
        return await _page(visit, outcome.refusal)
    return visit.go(visit.path("settings", "members", member_id), "role_changed")


def roles_within(own: str) -> list[Role]:
    """The roles that somebody with the role ``own`` may give, the smallest first."""
    return [role for role in ROLES if role_suffices(own, role)]


async def _remove(visit: OrganizationVisit, member_id: str) -> Response:
    outcome = await visit.change("removeMember", row_id=member_id)
    if outcome.refusal is not None:
        return await _page(visit, outcome.refusal)
    if outcome.answer["member"]["userId"] == visit.person.user_id:
        return visit.redirect("/app/")  # where they are somebody still
    return visit.go(visit.path("settings", "members", member_id), "member_removed")


async def _hand_over(visit: OrganizationVisit, member_id: str, form: Fields) -> Response:
    body = {"toMemberId": form.get("to")}
    outcome = await visit.change("handOver", row_id=member_id, body=body)
    if outcome.refusal is not None:
        return await _page(visit, outcome.refusal)
    done = "handed_over_some" if outcome.answer["more"] else "handed_over"
    return visit.go(visit.path("settings", "members", member_id), done)


async def _page(visit: OrganizationVisit, refusal: Refusal | None = None) -> Response:
    member_id, can_hand_over = visit.param("id"), visit.may("editor")
    questions = [
        Question("getMember", id=member_id),
        Question("listResponsibilities", {"page": visit.query.get("page", "")}, id=member_id),
    ]
    if can_hand_over:
        questions.append(Question("listMembers"))
    member, named, *others = await visit.ask(*questions)
    heirs: list[Mapping[str, Any]] = []
    if can_hand_over and named["total"]:
        everybody = await with_all(visit, others[0], removed="exclude")
        heirs = [one for one in everybody["items"] if one["id"] != member_id]
    is_self, is_there = member["userId"] == visit.person.user_id, member["removedAt"] is None
    is_above = visit.may("admin") and role_suffices(visit.place.role, member["role"])
    return visit.page(
        "app/settings/member.html",
        status=refusal.status if refusal else 200,
        member=member,
        named=named,
        heirs=heirs,
        roles=[role for role in roles_within(visit.place.role) if not (member["isServiceAccount"] and role == "owner")],
        seen=tag_of(member),
        can_change=is_above and is_there,
        can_remove=(is_self or is_above) and is_there,
        is_self=is_self,
        refusal=refusal,
        steps_to=steps_to,
        label=label,
    )
