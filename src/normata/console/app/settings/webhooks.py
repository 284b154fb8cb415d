"""Settings: the webhooks of the organization."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, get_args

from starlette.responses import Response

from normata.console.app.api_calls import ApiQuery, Fields, Refusal
from normata.console.app.organization_request import OrganizationRequest
from normata.console.texts import text
from normata.core.http.problems import InvalidRequest
from normata.webhooks.model import Format

FORMATS: tuple[str, ...] = get_args(Format)
_UNTYPED: Mapping[str, str] = {"url": "", "kinds": "", "actions": "", "format": FORMATS[0]}


async def show_list(page_request: OrganizationRequest) -> Response:
    """List the webhooks with how far they have come."""
    return await _list_page(page_request)


async def create(page_request: OrganizationRequest) -> Response:
    """Create a webhook, and show its secret once."""
    form = await page_request.fields()
    outcome = await page_request.change("createWebhook", body=_body(form), key=form.get("key"))
    if outcome.refusal is not None:
        return await _list_page(page_request, outcome.refusal, {name: form.get(name) for name in _UNTYPED})
    return await _list_page(page_request, made=outcome.answer)


async def show_one(page_request: OrganizationRequest) -> Response:
    """Show a webhook."""
    return await _webhook_page(page_request)


async def change(page_request: OrganizationRequest) -> Response:
    """Change, test, stop or remove a webhook, let it go on elsewhere, or change its secret, as ``step`` says."""
    form, webhook_id = await page_request.fields(), page_request.param("id")
    match form.get("step"):
        case "change":
            outcome = await page_request.change("changeWebhook", row_id=webhook_id, body=_body(form))
            done = "webhook_changed"
        case "stop" | "start" as step:
            body = {"isActive": step == "start"}
            outcome = await page_request.change("changeWebhook", row_id=webhook_id, body=body)
            done = f"webhook_{step}"
        case "replay":
            number = form.get("number").strip()
            body_of_replay: dict[str, Any] = {"number": int(number) if re.fullmatch(r"\d{1,15}", number) else number}
            outcome = await page_request.change("replayWebhook", row_id=webhook_id, body=body_of_replay)
            done = "webhook_replay"
        case "test":
            outcome = await page_request.change("testWebhook", row_id=webhook_id)
            if outcome.refusal is None:
                return await _webhook_page(page_request, tested=outcome.answer)
            done = ""
        case "rotate":
            outcome = await page_request.change("rotateWebhookSecret", row_id=webhook_id, key=form.get("key"))
            if outcome.refusal is None:
                return await _webhook_page(page_request, secret=outcome.answer["secret"])
            done = ""
        case "remove":
            outcome = await page_request.change("removeWebhook", row_id=webhook_id)
            if outcome.refusal is None:
                return page_request.go(page_request.path("settings", "webhooks"), "webhook_removed")
            done = ""
        case _:
            raise InvalidRequest(text("problem.form"))
    if outcome.refusal is not None:
        return await _webhook_page(page_request, outcome.refusal)
    return page_request.go(page_request.path("settings", "webhooks", webhook_id), done)


def _body(form: Fields) -> dict[str, Any]:
    """What was typed, in wire form: kinds and actions are separated by commas or blanks."""
    return {
        "url": form.get("url").strip(),
        "format": form.get("format"),
        **{name: re.split(r"[\s,]+", typed) if (typed := form.get(name).strip(" ,")) else [] for name in _LISTS},
    }


_LISTS = ("kinds", "actions")


async def _list_page(
    page_request: OrganizationRequest,
    refusal: Refusal | None = None,
    typed: Mapping[str, str] = _UNTYPED,
    made: Mapping[str, Any] | None = None,
) -> Response:
    found = await page_request.ask_one(ApiQuery("listWebhooks", page_request.place))
    return page_request.page(
        "app/settings/webhooks.html",
        status=refusal.status if refusal else 200,
        webhooks=found,
        formats=FORMATS,
        typed=typed,
        made=made,
        key=page_request.new_key(),
        refusal=refusal,
    )


async def _webhook_page(
    page_request: OrganizationRequest,
    refusal: Refusal | None = None,
    *,
    tested: Mapping[str, Any] | None = None,
    secret: str | None = None,
) -> Response:
    webhook = await page_request.ask_one(ApiQuery("getWebhook", id=page_request.param("id")))
    return page_request.page(
        "app/settings/webhook.html",
        status=refusal.status if refusal else 200,
        webhook=webhook,
        formats=FORMATS,
        tested=tested,
        secret=secret,
        key=page_request.new_key(),
        refusal=refusal,
    )
