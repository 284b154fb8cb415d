"""Webhooks of the test world, because bundles contain none."""

from __future__ import annotations

from typing import Any

from sqlalchemy import insert, select

from normata.core.changes.unit_of_work import Change, UnitOfWork
from normata.webhooks.model import Webhook, WebhookDelivery

EARLIER = "2026-01-02T03:04:05.678Z"


def webhooks() -> list[dict[str, Any]]:
    """A webhook of each organization, as a bundle would have it."""
    return [{"id": f"webhook-of-{owner}", "organizationId": owner} for owner in ("org-alpha", "org-beta")]


TABLES = {Webhook: webhooks}  # as samples of requests take them


def add_missing_webhooks(unit: UnitOfWork) -> None:
    """Add those of the world to a database that an older schema had none in."""
    if not unit.rows(select(Webhook.id)):
        add_webhooks(unit, tuple(row["organizationId"] for row in webhooks()))


def add_webhooks(unit: UnitOfWork, organization_ids: tuple[str, ...]) -> None:
    """Add a stopped webhook of each organization. Nothing can be sent: its secret is not one that was encrypted."""
    for owner in organization_ids:
        values: dict[str, Any] = {
            "id": f"webhook-of-{owner}",
            "organization_id": owner,
            "url": f"https://receiver.example/{owner}?key=Zq7-of-a-url",
            "origin": "https://receiver.example",
            "kinds": [],
            "actions": [],
            "format": "THIN",
            "secret": "Zq7-unreadable",
            "created_at": EARLIER,
            "updated_at": EARLIER,
            "disabled_at": EARLIER,
            "disabled_reason": "STOPPED",
        }
        unit.rows(insert(Webhook).values(values))
        state = {"webhook_id": values["id"], "owner": owner, "next_number": 0, "attempts": 0}
        unit.rows(insert(WebhookDelivery).values(state))
        unit.publish(Change("create", Webhook, owner, values["id"], values))
