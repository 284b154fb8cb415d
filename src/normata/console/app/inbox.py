"""The inbox: what the person was told in this organization."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from starlette.responses import Response

from normata.console.app.api_calls import Fields, Question, Refusal
from normata.console.app.organization_request import OrganizationVisit
from normata.console.app.records.references import Named, names_of
from normata.console.app.row_links import Steps, entity_of, steps_to
from normata.console.filters import is_moment
from normata.console.texts import text
from normata.core.http.problems import InvalidRequest
from normata.notifications.texts import sentence

_LIMIT = "50"
_MAY_BE_LEFT = ("frameworks", "controls")  # what has no page where the framework is not adopted any more
_MARKS = {"read": "markNotificationRead", "unread": "markNotificationUnread"}


class Line(NamedTuple):
    """A notification in words: its two texts, and the steps to the page of what it is about, if there is one."""

    id: str
    title: str
    body: str
    steps: Steps | None
    created_at: str
    is_unread: bool


async def show(visit: OrganizationVisit) -> Response:
    """The person's notifications, newest first."""
    return await _page(visit)


async def mark(visit: OrganizationVisit) -> Response:
    """Mark one as read or unread, or all up to a moment as read, as ``step`` says."""
    form = await visit.fields()
    step = form.get("step")
    if step == "all":
        outcome = await visit.change("markNotificationsRead", body={"until": form.get("until")})
    elif step in _MARKS:
        outcome = await visit.change(_MARKS[step], row_id=form.get("notification"))
    else:
        raise InvalidRequest(text("problem.form"))
    if outcome.refusal is not None:
        return await _page(visit, outcome.refusal)
    return _back(visit, form)


def _back(visit: OrganizationVisit, form: Fields) -> Response:
    return visit.back(form, visit.path("inbox"))


async def _page(visit: OrganizationVisit, refusal: Refusal | None = None) -> Response:
    wanted = {"limit": _LIMIT} | {name: visit.query.get(name, "") for name in ("unreadOnly", "page")}
    found = await visit.ask_one(Question("listNotifications", wanted))
    return visit.page(
        "app/inbox.html",
        status=refusal.status if refusal else 200,
        notifications=found,
        lines=await lines_of(visit, found["items"]),
        is_unread_only=wanted["unreadOnly"] == "true",
        newest=found["items"][0]["createdAt"] if found["items"] else "",
        refusal=refusal,
    )


async def lines_of(visit: OrganizationVisit, notifications: Sequence[Mapping[str, Any]]) -> list[Line]:
    """Notifications in words. What is about a framework or a control leads nowhere that is not there any more."""
    wanted = (_entity_of(one) for one in notifications)
    named = await names_of(visit, (entity for entity in wanted if entity[0] in _MAY_BE_LEFT))
    return [_line(one, named) for one in notifications]


def _line(notification: Mapping[str, Any], named: Named) -> Line:
    """One whose texts are not known here says at least what it is about."""
    payload = notification["payload"]
    params = {name: _readable(value) for name, value in (payload.get("params") or {}).items()}
    title = sentence(payload.get("titleKey"), params)
    about = payload.get("entityLabel") or payload.get("entityMeta") or ""
    said = notification["type"].replace(".", " ").replace("_", " ").capitalize()
    return Line(
        notification["id"],
        title or (f"{said}: {about}" if about else said),
        sentence(payload.get("bodyKey"), params) or "",
        _steps(_entity_of(notification), named),
        notification["createdAt"],
        notification["readAt"] is None,
    )


def _entity_of(notification: Mapping[str, Any]) -> tuple[str, str]:
    payload = notification["payload"]
    return entity_of(payload.get("entityType"), payload.get("entityId"))


def _steps(entity: tuple[str, str], named: Named) -> Steps | None:
    if entity[0] not in _MAY_BE_LEFT:
        return steps_to(*entity)
    called = named.get(entity)
    return called.steps or None if called else None


def _readable(value: Any) -> str:
    said = str(value)
    return f"{said[:10]} {said[11:16]} UTC" if is_moment(said) else said
