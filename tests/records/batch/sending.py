"""How tests send batches about alpha, and what they read of the outcome."""

from __future__ import annotations

from typing import Any

from normata.events.model import AuditEvent
from tests import stored
from tests.served import Served
from tests.world import ALPHA

Item = dict[str, Any]


class Batches:
    """Sends batches about alpha, and reads what came of them."""

    def __init__(self, service: Served) -> None:
        self.service = service
        # Made now, since to make a token is a change, too.
        self._bearers = {user: service.bearer(user) for user in ("editor", "viewer")}

    def bearer(self, user: str) -> dict[str, str]:
        """The header of a user, with the same token each time."""
        if user not in self._bearers:
            self._bearers[user] = self.service.bearer(user)
        return self._bearers[user]

    def send(self, *items: Item, kind: str = "tasks", user: str = "editor", **body: Any) -> Any:
        """The answer to a batch. ``params`` and ``headers`` are those of the request, all else is of the body."""
        headers, params = self.bearer(user) | body.pop("headers", {}), body.pop("params", None)
        body = {"organizationId": ALPHA, "items": list(items)} | body
        return self.service.client.post(f"/{kind}/batch/", json=body, params=params, headers=headers)

    def done(self, *items: Item, **more: Any) -> Any:
        """What a batch that is answered with 200 is answered with."""
        answer = self.send(*items, **more)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def outcomes(self, *items: Item, **more: Any) -> list[str]:
        """What became of each item: the outcome, or the code of the refusal."""
        return [one["outcome"] or one["refusal"]["code"] for one in self.done(*items, **more)["items"]]

    def faults(self, *items: Item, status: int = 400, **more: Any) -> dict[str, str]:
        """The faults of a batch that is refused: the code of each by its place."""
        answer = self.send(*items, **more)
        assert answer.status_code == status, answer.text
        return {fault["name"]: fault["code"] for fault in answer.json()["errors"]}

    def record(self, record: str, kind: str = "tasks") -> Any:
        """The answer to a request for a record."""
        query = {"organizationId": ALPHA}
        return self.service.client.get(f"/{kind}/{record}/", params=query, headers=self.bearer("viewer"))

    def events(self) -> int:
        """How many events there are."""
        return len(stored.rows(self.service.database, AuditEvent))


def upsert(number: int | str, source: str = "tracker", **values: Any) -> Item:
    """Create or change the task with an id in another system."""
    external = {"source": source, "id": str(number)}
    return {"action": "upsert", "external": external, "values": {"title": f"Task {number}"} | values}


def update(record: str, **values: Any) -> Item:
    """Change a record."""
    return {"action": "update", "id": record, "values": values}


def create(**values: Any) -> Item:
    """Create a record."""
    return {"action": "create", "values": values}
