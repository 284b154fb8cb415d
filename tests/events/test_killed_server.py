"""A server killed amid a stream of writes: what was acknowledged is there with one event, and is sealed later."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import closing
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import select

from normata.core.db.database import Database
from normata.core.db.transaction import Transaction
from normata.events.checking import event_faults
from normata.events.model import AuditEvent, EventLeaf, UnsealedEvent
from normata.identity.tokens import tokens
from normata.records.kinds import Label
from tests import stored, world
from tests.databases import change, open_url
from tests.killing import Clients, kill, start
from tests.server import reserved_port
from tests.world import ALPHA

CLIENTS = 4
ENOUGH = 150  # acknowledged writes before the kill


def live(clients: Clients, token: str, name: str) -> None:
    """Make a label, change, archive and restore it."""
    body = {"organizationId": ALPHA, "name": name}
    made = clients.send(token, "POST", "/labels/", f"{name}-create", body)["id"]
    label = f"/labels/{made}/"
    clients.send(token, "PATCH", label, f"{name}-update", {"name": f"{name} changed"}, record=made)
    clients.send(token, "POST", f"{label}archive/", f"{name}-archive", {"reason": "test"}, record=made)
    clients.send(token, "POST", f"{label}restore/", f"{name}-restore", record=made)


def is_sealed(database: Database) -> bool:
    """Whether every event has its leaf, and exactly one."""

    def work(transaction: Transaction) -> list[list[str]]:
        columns = (AuditEvent.id, EventLeaf.event_id, UnsealedEvent.event_id)
        return [sorted(transaction.scalars(select(column))) for column in columns]

    events, leaves, noted = database.read_now(work)
    return events == leaves and not noted


@pytest.mark.long
def test_what_was_acknowledged_is_there_with_one_event_and_sealed_after_a_restart(
    database_url: str, tmp_path: Path
) -> None:
    with closing(open_url(database_url)) as database, reserved_port() as port:
        token = change(
            database,
            lambda unit: tokens.create(unit, email=world.USERS["editor"], scope="write", lifetime=timedelta(hours=1)),
        )
        clients = Clients(f"http://127.0.0.1:{port}")
        server = start(database_url, port, tmp_path / "key")
        with clients.writing([partial(live, clients, token)] * CLIENTS):
            try:
                deadline = time.monotonic() + 60
                while len(clients.acknowledged) < ENOUGH and time.monotonic() < deadline:
                    time.sleep(0.01)
            finally:
                kill(server)
        assert len(clients.acknowledged) >= ENOUGH

        # In one look: PostgreSQL may still commit what it was sent before the kill.
        found = stored.everything(database)
        events = found[str(AuditEvent.__tablename__)]
        labels = {row["id"]: row for row in found[str(Label.__tablename__)]}
        told = Counter(event["request_id"] for event in events)
        assert set(told.values()) == {1}
        by_request = {event["request_id"]: event for event in events}
        for request, (action, record) in clients.acknowledged.items():
            assert (by_request[request]["action"], by_request[request]["entity_id"]) == (action, record)
        assert told.keys() <= clients.sent
        assert len(told.keys() - clients.acknowledged.keys()) <= CLIENTS, "under way when it was killed"
        last = {event["entity_id"]: event for event in sorted(events, key=lambda event: (event["at"], event["id"]))}
        for record, event in last.items():  # no event without its change, and no change without its event
            assert (labels[record]["archived_at"] is not None) == (event["action"] == "archive")
            assert labels[record]["name"].endswith("changed") == (event["action"] != "create")
        made = {event["entity_id"] for event in events if event["action"] == "create"}
        assert made == labels.keys() - {row["id"] for row in world.bundle()["labels"]}

        server = start(database_url, port, tmp_path / "key")
        try:
            deadline = time.monotonic() + 30
            while not is_sealed(database) and time.monotonic() < deadline:
                time.sleep(0.05)
            assert is_sealed(database)
        finally:
            kill(server)
        assert database.read_now(lambda transaction: list(event_faults(transaction))) == []
