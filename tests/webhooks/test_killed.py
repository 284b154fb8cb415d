"""Workers that are killed while they send webhooks: nothing is lost, and first deliveries are in order."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.prepared import starting
from tests.server import reserved_port, serve_command, wait_until_ready
from tests.webhooks import losing
from tests.webhooks.receiver import receiving
from tests.world import ALPHA

# With 10,000 and 5 this is the measurement of the decision about deliveries.
EVENTS = int(os.environ.get("NORMATA_TEST_EVENTS", "300"))
KILLS = int(os.environ.get("NORMATA_TEST_KILLS", "1"))


@pytest.mark.long
def test_a_killed_worker_loses_nothing(database_url: str, event_key: Path, capsys: pytest.CaptureFixture[str]) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NORMATA_")}
    environment |= {"NORMATA_EVENT_KEY": str(event_key), "NORMATA_WEBHOOK_NETWORKS": "127.0.0.0/8"}
    with receiving() as receiver, reserved_port() as port:
        first = losing.create(database_url, ALPHA, receiver)
        server = starting(2, environment)(serve_command(port, database_url, 2), env=environment)
        try:
            wait_until_ready(f"http://127.0.0.1:{port}", server)
            with losing.writing(database_url, ALPHA, EVENTS):
                losing.disturb(receiver, EVENTS, [partial(losing.kill_workers, server)] * KILLS)
            sent = losing.check(database_url, ALPHA, first, EVENTS, receiver)
        finally:
            server.terminate()
            server.wait(30)
    with capsys.disabled():
        sys.stdout.write(f"\n{database_url.partition(':')[0]}: {sent}\n")
    assert sent.events >= EVENTS
