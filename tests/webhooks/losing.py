"""Events that are sent while processes are killed: they are written, and what has arrived is compared with the log."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from typing import NamedTuple

from normata.core.changes.unit_of_work import Change, UnitOfWork
from normata.core.http.outgoing_addresses import networks_of
from normata.events.keys import Signer
from normata.events.log import sealed_rows
from normata.events.proofs import size_of
from normata.records.kinds import Label
from normata.settings import Settings
from normata.webhooks import commands
from normata.webhooks.secrets import SecretBox
from tests.databases import change, open_url
from tests.failover.cluster import children
from tests.webhooks.receiver import Got, Receiver

AT_ONCE = 20  # events in one transaction
YOUNG = 12.0  # seconds; more than that of `core.http.supervisor`
SECONDS = 400.0  # at most, for all of them to arrive


class Sent(NamedTuple):
    """What has arrived: events, messages, and those that came more than once."""

    events: int
    messages: int
    repeated: int


def create(url: str, organization: str, receiver: Receiver) -> int:
    """Create a webhook of all events, and return the number of the first event that it sends."""
    body = {"url": receiver.url, "kinds": [], "actions": [], "format": "THIN"}
    box, networks = SecretBox(Signer(Settings().event_key_file)), networks_of("127.0.0.0/8")
    with closing(open_url(url)) as database:
        made = change(database, lambda unit: commands.create(unit, box, networks, organization, body))
    return int(made.row.next_number)


@contextmanager
def writing(url: str, organization: str, events: int) -> Iterator[threading.Thread]:
    """Write so many events meanwhile, again where the database was lost."""

    def publish(unit: UnitOfWork, first: int) -> None:
        for number in range(first, min(first + AT_ONCE, events)):
            unit.publish(Change("touch", Label, organization, f"label-{number}", {"id": f"label-{number}"}))

    def write() -> None:
        for first in range(0, events, AT_ONCE):
            while True:
                with suppress(Exception), closing(open_url(url)) as database:
                    change(database, partial(publish, first=first))
                    break
                time.sleep(0.2)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    yield thread
    thread.join(SECONDS)


def kill_workers(server: subprocess.Popen[bytes]) -> None:
    """Kill all workers of a server."""
    for worker in children(server.pid):
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)


def disturb(receiver: Receiver, events: int, disturbances: Sequence[Callable[[], None]]) -> None:
    """Do all of this, one after the other, each while a message is there and not answered yet.

    Between them is the time in which a worker must not die: one that dies young has failed to start, and the server
    would end. Answers take so long that not all events have arrived before.
    """
    pause = 1.5 * YOUNG * len(disturbances) / events
    next_one: list[Callable[[], None]] = []

    def answer(_got: Got) -> tuple[int, dict[str, str]]:
        time.sleep(pause)
        if next_one:
            next_one.pop()()
        return 204, {}

    receiver.answer = answer
    for disturbance in disturbances:
        time.sleep(YOUNG)
        next_one.append(disturbance)
        until(lambda: not next_one)


def until(is_done: Callable[[], bool]) -> None:
    """Wait until something holds."""
    end = time.monotonic() + SECONDS
    while not is_done():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.05)


def check(url: str, organization: str, first: int, events: int, receiver: Receiver) -> Sent:
    """Wait until all is there; no event is lost, and the first message about each comes in the order of the log."""
    with closing(open_url(url)) as database:
        until(lambda: database.read_now(lambda transaction: size_of(transaction, organization)) >= first + events)
        rows = database.read_now(lambda transaction: sealed_rows(transaction, organization, first, 10**6))
        expected = [row.event_id for row in rows]
        until(lambda: len({one.id for one in receiver.got}) >= len(expected))
    came = [one.id for one in receiver.got]
    assert list(dict.fromkeys(came)) == expected
    counts = Counter(came)
    return Sent(len(expected), len(came), sum(counts.values()) - len(counts))
