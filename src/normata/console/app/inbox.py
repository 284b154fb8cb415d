"""The inbox: the person's notifications from this organization."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

from markupsafe import Markup, escape
from starlette.responses import Response

from normata.console.app.api_calls import ApiQuery, Fields, Refusal
from normata.console.app.organization_request import OrganizationRequest
from normata.console.app.records.references import Named, names_of
from normata.console.app.row_links import Steps, entity_of, steps_to
from normata.console.filters import date_text, is_moment, moment_text, when
from normata.console.texts import text
from normata.core.http.problems import InvalidRequest
from normata.notifications.texts import sentence

_LIMIT = "50"
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_MAY_BE_LEFT = ("frameworks", "controls")  # a row of these has a page only while its framework is adopted
_MARKS = {"read": "markNotificationRead", "unread": "markNotificationUnread"}


class Line(NamedTuple):
    """A notification in words. ``steps`` lead to the page of its row, and are null if it has none."""

    id: str
    title: str
    body: Markup
    steps: Steps | None
    created_at: str
    is_unread: bool


async def show(page_request: OrganizationRequest) -> Response:
    """Show the person's notifications, newest first."""
    return await _page(page_request)


async def mark(page_request: OrganizationRequest) -> Response:
    """Mark one as read or unread, or all up to a point in time as read, as ``step`` says."""
    form = await page_request.fields()
    step = form.get("step")
    if step == "all":
        outcome = await page_request.change("markNotificationsRead", body={"until": form.get("until")})
    elif step in _MARKS:
        outcome = await page_request.change(_MARKS[step], row_id=form.get("notification"))
    else:
        raise InvalidRequest(text("problem.form"))
    if outcome.refusal is not None:
        return await _page(page_request, outcome.refusal)
    return _back(page_request, form)


def _back(page_request: OrganizationRequest, form: Fields) -> Response:
    return page_request.back(form, page_request.path("inbox"))


async def _page(page_request: OrganizationRequest, refusal: Refusal | None = None) -> Response:
    wanted = {"limit": _LIMIT} | {name: page_request.query.get(name, "") for name in ("unreadOnly", "page")}
    found = await page_request.ask_one(ApiQuery("listNotifications", wanted))
    return page_request.page(
        "app/inbox.html",
        status=refusal.status if refusal else 200,
        notifications=found,
        lines=await lines_of(page_request, found["items"]),
        is_unread_only=wanted["unreadOnly"] == "true",
        newest=found["items"][0]["createdAt"] if found["items"] else "",
        refusal=refusal,
    )


async def lines_of(page_request: OrganizationRequest, notifications: Sequence[Mapping[str, Any]]) -> list[Line]:
    """Notifications in words, with links to the rows that still have a page."""
    wanted = (_entity_of(one) for one in notifications)
    named = await names_of(page_request, (entity for entity in wanted if entity[0] in _MAY_BE_LEFT))
    return [_line(one, named) for one in notifications]


def _line(notification: Mapping[str, Any], named: Named) -> Line:
    """A notification in words. One of an unknown type shows its type and the name of its row."""
    payload = notification["payload"]
    params = payload.get("params") or {}
    title = sentence(payload.get("titleKey"), {name: _in_words(value) for name, value in params.items()})
    body = sentence(payload.get("bodyKey"), {name: _as_markup(value) for name, value in params.items()})
    about = payload.get("entityLabel") or payload.get("entityMeta") or ""
    label_text = notification["type"].replace(".", " ").replace("_", " ").capitalize()
    return Line(
        notification["id"],
        title or (f"{label_text}: {about}" if about else label_text),
        Markup(body or ""),  # noqa: S704 - our own text, with escaped values
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


def _in_words(value: Any) -> str:
    shown = str(value)
    if is_moment(shown):
        return moment_text(shown)
    return date_text(date.fromisoformat(shown)) if _DATE.fullmatch(shown) else shown


def _as_markup(value: Any) -> Markup:
    """A value in words, as markup; a time has a tooltip with its UTC time."""
    return when(value) if is_moment(value) else escape(_in_words(value))
