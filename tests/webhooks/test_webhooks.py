"""Webhooks over HTTP, with a receiver on this machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.served import Served, served
from tests.webhooks.receiver import Receiver, is_signed, receiving
from tests.webhooks.waiting import until
from tests.world import ALPHA


@pytest.fixture
def service(database_url: str) -> Iterator[Served]:
    """The application over a fresh copy of the test world; its webhooks may reach this machine."""
    with served(database_url, webhook_networks="127.0.0.0/8") as opened:
        yield opened


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver."""
    with receiving() as opened:
        yield opened


def test_events_arrive_signed_and_in_order(service: Served, receiver: Receiver) -> None:
    admin = service.bearer("admin")
    body = {"organizationId": ALPHA, "url": receiver.url, "kinds": ["labels"], "format": "FULL"}
    made = service.client.post("/webhooks/", json=body, headers=admin)
    assert made.status_code == 201, made.text
    secret = made.json()["secret"]
    for number in range(5):
        label = {"organizationId": ALPHA, "name": f"Label {number}"}
        assert service.client.post("/labels/", json=label, headers=admin).status_code == 201
    until(lambda: len(receiver.got) == 5)
    assert all(is_signed(one, secret) for one in receiver.got)
    assert receiver.numbers == sorted(receiver.numbers)
    log = service.client.get("/events/log/", params={"organizationId": ALPHA, "limit": 1000}, headers=admin).json()
    by_id = {one["id"]: one for one in log["items"]}
    for one in receiver.got:
        assert {name: one.data[name] for name in ("number", "id", "leafHash", "body")} == by_id[one.id]
    assert [one.data["action"] for one in receiver.got] == ["create"] * 5
