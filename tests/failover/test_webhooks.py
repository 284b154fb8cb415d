"""The primary is lost, and workers are killed, while webhooks are sent: no event is lost."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.failover.cluster import Cluster
from tests.failover.records import ORGANIZATION
from tests.failover.test_failover import Normata, cluster, normata, template
from tests.webhooks import losing
from tests.webhooks.receiver import receiving

__all__ = ["cluster", "normata", "template"]  # fixtures

EVENTS = int(os.environ.get("NORMATA_TEST_EVENTS", "1000"))


@pytest.fixture
def listed(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let webhooks reach this machine, and name the key that encrypts their secrets."""
    del cluster  # whose fixture clears the environment
    monkeypatch.setenv("NORMATA_WEBHOOK_NETWORKS", "127.0.0.0/8")
    monkeypatch.setenv("NORMATA_EVENT_KEY", str(tmp_path / "event-key"))


@pytest.mark.usefixtures("listed")
def test_no_event_is_lost(cluster: Cluster, normata: Normata, capsys: pytest.CaptureFixture[str]) -> None:
    owner = cluster.url("normata_owner")

    def lose() -> None:
        """Lose the primary, and have the standby take its place."""
        cluster.primary.kill()
        cluster.standby.promote()

    kill = partial(losing.kill_workers, normata.process)
    with receiving() as receiver:
        first = losing.create(owner, ORGANIZATION, receiver)
        with losing.writing(owner, ORGANIZATION, EVENTS):
            losing.disturb(receiver, EVENTS, [kill, lose, kill])
        sent = losing.check(owner, ORGANIZATION, first, EVENTS, receiver)
    with capsys.disabled():
        sys.stdout.write(f"\nwith a failover: {sent}\n")
    assert sent.events >= EVENTS
