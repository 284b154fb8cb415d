"""Webhooks as tests send them: with the rights of the service, and a clock of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest

from normata.console.app.event_sentences import described
from normata.core.db.opening import open_database
from normata.core.db.types import format_timestamp, now
from normata.core.http.outgoing import outgoing_of
from normata.events.keys import Signer
from normata.webhooks import sender
from normata.webhooks.secrets import SecretBox
from normata.webhooks.sender import Sender
from normata.wiring import changes_of
from tests.databases import settings_for
from tests.served import Served, served
from tests.webhooks.receiver import Receiver, receiving
from tests.world import ALPHA

HERE = "127.0.0.0/8"
SITE = "https://normata.example.org"


@dataclass
class Sending:
    """The service, a receiver, and the clock of whoever sends."""

    service: Served
    receiver: Receiver
    moment: str = field(default_factory=now)
    headers: dict[str, str] = field(default_factory=dict)

    def ask(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """The answer to a request of an admin, which succeeds."""
        found = self.service.client.request(method, path, json=body, params=query, headers=self.headers)
        assert found.status_code in (200, 201), found.text
        return found.json()

    def create(self, url: str | None = None, **values: Any) -> Any:
        """A new webhook of events about labels."""
        body = {"organizationId": ALPHA, "url": url or self.receiver.url, "kinds": ["labels"], **values}
        return self.ask("POST", "/webhooks/", body)

    def happen(self, *names: str) -> None:
        """Let events happen, and be sealed: a label each."""
        for name in names:
            self.ask("POST", "/labels/", {"organizationId": ALPHA, "name": name})
        self.service.wait_for_seals()

    def delivery(self, webhook: Any) -> Any:
        """How far a webhook has come."""
        return self.one(webhook)["delivery"]

    def one(self, webhook: Any) -> Any:
        """A webhook as it is now."""
        return self.ask("GET", f"/webhooks/{webhook['id']}/", organizationId=ALPHA)

    def run(self, after: timedelta = timedelta(), *, processes: int = 1) -> list[Any]:
        """Send what is due once some time has passed, and return what has arrived."""
        self.moment = format_timestamp(datetime.fromisoformat(max(self.moment, now())) + after)
        before = len(self.receiver.got)
        self.with_senders(_until_idle, processes)
        return self.receiver.got[before:]

    def with_senders(self, work: Callable[[Sender], Any], processes: int = 1) -> None:
        """Do something with senders, each with a database of its own."""
        self.moment = max(self.moment, now())

        async def all_of_them() -> None:
            settings = settings_for(self.service.url, webhook_networks=HERE)
            databases = [open_database(settings, serving=True) for _ in range(processes)]
            try:
                await asyncio.gather(*(work(self._sender(one, settings)) for one in databases))
            finally:
                for one in databases:
                    await one.aclose()

        asyncio.run(all_of_them())

    def _sender(self, database: Any, settings: Any) -> Sender:
        key = self.service.app.services.means[Signer]
        say = partial(described, public_url=SITE)
        out = outgoing_of(settings)
        return Sender(database, changes_of(database), SecretBox(key), out, say, clock=lambda: self.moment)


async def _until_idle(sending: Sender) -> None:
    while await sending.start_due():
        await sending.idle()


@contextmanager
def sending_of(url: str, **settings: Any) -> Iterator[Sending]:
    """The service over a database, with a receiver, and with more settings. It sends nothing itself."""
    with pytest.MonkeyPatch.context() as patch, receiving() as receiver:
        patch.setattr(sender, "_PAUSE", 3_600)
        with served(url, webhook_networks=HERE, **settings) as service:
            yield Sending(service, receiver, headers=service.bearer("admin"))
