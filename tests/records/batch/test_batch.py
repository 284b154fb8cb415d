"""Creating and changing many records of a kind at once, each as alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from normata.events.model import AuditEvent
from normata.external_ids.model import ExternalId
from normata.records.base import Restorable
from tests import stored
from tests.served import Served, served
from tests.world import ALPHA

each = pytest.mark.parametrize

MISSING = "01a1f87c-691d-7204-a6da-000000000000"


class Batches:
    """Sends batches about alpha, and reads what came of them."""

    def __init__(self, service: Served) -> None:
        self.service = service
        self._bearers: dict[str, dict[str, str]] = {}

    def bearer(self, user: str) -> dict[str, str]:
        if user not in self._bearers:
            self._bearers[user] = self.service.bearer(user)
        return self._bearers[user]

    def send(self, *items: dict[str, Any], kind: str = "tasks", user: str = "editor", **body: Any) -> Any:
        headers, params = self.bearer(user) | body.pop("headers", {}), body.pop("params", None)
        body = {"organizationId": ALPHA, "items": list(items)} | body
        return self.service.client.post(f"/{kind}/batch/", json=body, params=params, headers=headers)

    def done(self, *items: dict[str, Any], status: int = 200, **more: Any) -> Any:
        answer = self.send(*items, **more)
        assert answer.status_code == status, answer.text
        return answer.json()

    def outcomes(self, *items: dict[str, Any], **more: Any) -> list[str]:
        """What became of each item: the outcome, or the code of the refusal."""
        found = self.done(*items, **more)["items"]
        return [one["outcome"] or one["refusal"]["code"] for one in found]

    def record(self, record: str, kind: str = "tasks") -> Any:
        query = {"organizationId": ALPHA}
        return self.service.client.get(f"/{kind}/{record}/", params=query, headers=self.bearer("viewer"))

    def events(self) -> int:
        return len(stored.rows(self.service.database, AuditEvent))


@pytest.fixture
def batches(database_url: str) -> Iterator[Batches]:
    """The application over a fresh copy of the test world."""
    with served(database_url) as opened:
        yield Batches(opened)


def upsert(number: int | str, source: str = "tracker", **values: Any) -> dict[str, Any]:
    external = {"source": source, "id": str(number)}
    return {"action": "upsert", "external": external, "values": {"title": f"Task {number}"} | values}


def update(record: str, **values: Any) -> dict[str, Any]:
    return {"action": "update", "id": record, "values": values}


def create(**values: Any) -> dict[str, Any]:
    return {"action": "create", "values": values}


def test_an_upsert_creates_then_changes_then_leaves_alone(batches: Batches) -> None:
    first = batches.done(upsert(1), upsert(2, status="IN_PROGRESS"))
    assert [one["outcome"] for one in first["items"]] == ["created", "created"]
    ids = [one["id"] for one in first["items"]]
    assert [batches.record(one).json()["title"] for one in ids] == ["Task 1", "Task 2"]
    before = batches.events(), [batches.record(one).headers["ETag"] for one in ids]
    assert batches.outcomes(upsert(1), upsert(2, status="IN_PROGRESS")) == ["unchanged", "unchanged"]
    assert (batches.events(), [batches.record(one).headers["ETag"] for one in ids]) == before
    again = batches.done(upsert(1, title="Renamed"), upsert(2), upsert(3))
    assert [one["outcome"] for one in again["items"]] == ["updated", "unchanged", "created"]
    assert [one["id"] for one in again["items"]][:2] == ids
    found = [row for row in stored.rows(batches.service.database, ExternalId) if row["source"] == "tracker"]
    assert sorted((row["external_id"], row["kind"]) for row in found) == [(str(n), "tasks") for n in (1, 2, 3)]


def test_every_kind_is_created_and_changed_as_alone(batches: Batches) -> None:
    for kind in Restorable.kinds:
        one, two = ({kind.title_column(): title} for title in ("One", "Two"))
        item = {"action": "upsert", "external": {"source": "x", "id": "1"}, "values": one}
        made = batches.done(item, kind=kind.path)["items"][0]
        body = {"organizationId": ALPHA} | two
        alone = batches.service.client.post(f"/{kind.path}/", json=body, headers=batches.bearer("editor")).json()
        record = batches.record(made["id"], kind.path).json()
        own = {"id", "createdAt", "updatedAt", "slug", "shortId", "order", *one}
        assert {name: value for name, value in record.items() if name not in own} == {
            name: value for name, value in alone.items() if name not in own
        }
        assert batches.outcomes(item, kind=kind.path) == ["unchanged"]
        assert batches.outcomes(item | {"values": two}, kind=kind.path) == ["updated"]
