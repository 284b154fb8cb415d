"""Processes that are killed while they mail: nothing is lost, and twice comes only what the server had accepted."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import Counter
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import pytest

from normata.core.db.types import format_timestamp, now
from normata.notifications import outbox
from tests.databases import on_both
from tests.notifications.posting import posting
from tests.prepared import Normata

PROCESS = Path(__file__).with_name("mailing_process.py")


@pytest.mark.long
@on_both
def test_killed_before_and_after_the_server_has_a_message(database_url: str) -> None:
    """A mail program recognizes a repetition by its Message-ID: it is that of the first attempt."""
    with posting(database_url) as post:
        post.choose("IMMEDIATELY")
        post.notify("One", "Two", "Three")
        running: list[subprocess.Popen[bytes]] = []
        kills = iter(("recipient", "message"))

        def kill() -> None:
            """Kill the process, and return once it is gone: it must not see the answer."""
            os.kill(running[-1].pid, signal.SIGKILL)
            with suppress(ProcessLookupError):
                while True:
                    os.kill(running[-1].pid, 0)
                    time.sleep(0.005)

        for attempt in range(3):
            where = next(kills, None)
            post.inbox.before_recipient = kill if where == "recipient" else None
            post.inbox.before_answer = kill if where == "message" else None
            moment = format_timestamp(datetime.fromisoformat(now()) + attempt * 2 * outbox.CLAIMED_FOR)
            arguments = [str(PROCESS), database_url, post.inbox.url, moment]
            running.append(Normata(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            assert running[-1].wait(30) == (0 if where is None else -signal.SIGKILL)
        counts = Counter(message["Message-ID"] for message in post.inbox.messages)
        assert sorted(counts.values()) == [1, 1, 2]
        assert post.outcomes() == ["SENT"] * 3
        assert post.jobs() == []
