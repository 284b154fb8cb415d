"""A server killed amid a stream of writes: what was acknowledged is there with one event, and is sealed later."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta
from http.client import HTTPException
from itertools import count
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
from tests.prepared import Normata
from tests.server import reserved_port, serve_command, wait_until_ready
from tests.world import ALPHA

CLIENTS = 4
ENOUGH = 150  # acknowledged writes before the kill


@dataclass
class Stream:
    """Clients that write all the time, and what they have been told."""

    base: str
    token: str
    sent: set[str] = field(default_factory=set)
    acknowledged: dict[str, tuple[str, str]] = field(default_factory=dict)  # request → action, record

    def write(self, client: int) -> None:
        """Make labels, change, archive and restore each, until the server is gone."""
        for number in count():
            name = f"{client}-{number}"
            try:
                made = self._send("POST", "/labels/", f"{name}-create", {"organizationId": ALPHA, "name": name})
                label = f"/labels/{made}/"
                self._send("PATCH", label, f"{name}-update", {"name": f"{name} changed"}, made)
                self._send("POST", f"{label}archive/", f"{name}-archive", {"reason": "test"}, made)
                self._send("POST", f"{label}restore/", f"{name}-restore", None, made)
            except (OSError, HTTPException):
                return

    def _send(self, method: str, path: str, request: str, body: object, record: str = "") -> str:
        self.sent.add(request)
        headers = {"Authorization": f"Bearer {self.token}", "X-Request-Id": request}
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            headers["Content-Type"] = "application/json"
        asked = urllib.request.Request(f"{self.base}{path}", data=data, headers=headers, method=method)
        with urllib.request.urlopen(asked, timeout=10) as answer:
            found = record or json.load(answer)["id"]
        self.acknowledged[request] = (request.rpartition("-")[2], found)
        return found


def start(url: str, port: int, key: Path) -> subprocess.Popen[bytes]:
    """A server in a process group of its own, so that all of it can be killed at once."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NORMATA_")}
    return Normata(
        serve_command(port, url),
        env=environment | {"NORMATA_EVENT_KEY": str(key)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def kill(server: subprocess.Popen[bytes]) -> None:
    """Kill a server with all its processes."""
    os.killpg(server.pid, signal.SIGKILL)
    server.wait()


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
        stream = Stream(f"http://127.0.0.1:{port}", token)
        server = start(database_url, port, tmp_path / "key")
        try:
            wait_until_ready(stream.base, server)
            clients = [threading.Thread(target=stream.write, args=(client,)) for client in range(CLIENTS)]
            for client in clients:
                client.start()
            deadline = time.monotonic() + 60
            while len(stream.acknowledged) < ENOUGH and time.monotonic() < deadline:
                time.sleep(0.01)
        finally:
            kill(server)
        for client in clients:
            client.join()
        assert len(stream.acknowledged) >= ENOUGH

        # In one look: PostgreSQL may still commit what it was sent before the kill.
        found = stored.everything(database)
        events = found[str(AuditEvent.__tablename__)]
        labels = {row["id"]: row for row in found[str(Label.__tablename__)]}
        told = Counter(event["request_id"] for event in events)
        assert set(told.values()) == {1}
        by_request = {event["request_id"]: event for event in events}
        for request, (action, record) in stream.acknowledged.items():
            assert (by_request[request]["action"], by_request[request]["entity_id"]) == (action, record)
        assert told.keys() <= stream.sent
        assert len(told.keys() - stream.acknowledged.keys()) <= CLIENTS, "under way when it was killed"
        last = {event["entity_id"]: event for event in sorted(events, key=lambda event: (event["at"], event["id"]))}
        for record, event in last.items():  # no event without its change, and no change without its event
            assert (labels[record]["archived_at"] is not None) == (event["action"] == "archive")
            assert labels[record]["name"].endswith("changed") == (event["action"] != "create")
        made = {event["entity_id"] for event in events if event["action"] == "create"}
        assert made == labels.keys() - {row["id"] for row in world.bundle()["labels"]}

        server = start(database_url, port, tmp_path / "key")
        try:
            wait_until_ready(stream.base, server)
            deadline = time.monotonic() + 30
            while not is_sealed(database) and time.monotonic() < deadline:
                time.sleep(0.05)
            assert is_sealed(database)
        finally:
            kill(server)
        assert database.read_now(lambda transaction: list(event_faults(transaction))) == []
