"""How many events a webhook sends in a second, one after the other, to a receiver on this machine.

    python -m benchmarks.webhooks DATABASE_URL [EVENTS]

``DATABASE_URL`` is a database with the test world in it, which is changed. Each way is measured three times, in turns:
as it is, with progress stored after each event, and with a connection for each event.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from normata.core.changes.unit_of_work import Change, UnitOfWork
from normata.core.db.opening import open_database
from normata.core.http.outgoing import outgoing_of
from normata.events.keys import Signer
from normata.events.sealing import seal_all_now
from normata.records.kinds import Label
from normata.settings import Settings
from normata.webhooks import commands, sender
from normata.webhooks.secrets import SecretBox
from normata.webhooks.sender import Sender
from normata.wiring import changes_of
from tests.databases import change, open_url
from tests.webhooks.receiver import Receiver, receiving
from tests.world import ALPHA

HERE = "127.0.0.0/8"
TURNS = 3


def write(url: str, events: int) -> None:
    """Write and seal events."""

    def publish(unit: UnitOfWork) -> None:
        for number in range(events):
            unit.publish(Change("touch", Label, ALPHA, f"label-{number}", {"id": f"label-{number}"}))

    with closing(open_url(url)) as database:
        change(database, publish)
        seal_all_now(database)


async def send(settings: Settings, signer: Signer) -> None:
    """Send all that is due."""
    database = open_database(settings, serving=True)
    out = outgoing_of(settings)
    sending = Sender(database, changes_of(database), SecretBox(signer), out, lambda _event, _slug: ("", ""))
    try:
        while await sending.start_due():
            await sending.idle()
    finally:
        await database.aclose()


@contextmanager
def as_it_is(receiver: Receiver) -> Iterator[None]:
    """One connection, and progress stored four times a second."""
    receiver.answer = lambda _: (204, {})
    yield


@contextmanager
def each_stored(receiver: Receiver) -> Iterator[None]:
    """Progress stored after each event."""
    receiver.answer = lambda _: (204, {})
    with patch.object(sender, "_STORE_EVERY", 0.0):
        yield


@contextmanager
def each_connected(receiver: Receiver) -> Iterator[None]:
    """A connection for each event, because the receiver closes it."""
    receiver.answer = lambda _: (204, {"Connection": "close"})
    yield


def main(url: str, events: int) -> None:
    """Measure, and print the medians."""
    rates: dict[str, list[float]] = {}
    with TemporaryDirectory() as folder, receiving() as receiver:
        settings = Settings(database_url=url, webhook_networks=HERE, event_key=str(Path(folder, "event-key")))
        signer = Signer(settings.event_key_file)
        out, body = outgoing_of(settings), {"url": receiver.url, "kinds": [], "actions": [], "format": "FULL"}
        with closing(open_url(url)) as database:
            change(database, lambda unit: commands.create(unit, SecretBox(signer), out.networks, ALPHA, body))
        for _ in range(TURNS):
            for way in (as_it_is, each_stored, each_connected):
                write(url, events)
                before, began = len(receiver.got), time.perf_counter()
                with way(receiver):
                    asyncio.run(send(settings, signer))
                took = time.perf_counter() - began
                rates.setdefault(way.__name__, []).append((len(receiver.got) - before) / took)
    for name, found in rates.items():
        sys.stdout.write(f"{name}: {statistics.median(found):.0f} events/s ({min(found):.0f} to {max(found):.0f})\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 2_000)
