"""Normata without the sealing of events, to measure its cost."""

import asyncio
from unittest import mock

from normata import app
from normata.app import Service
from normata.events.sealer import Sealer

NOTING = "note_unsealed_event"  # the trigger on `audit_event`


class Idle(Sealer):
    """A sealer that does nothing."""

    async def seal_periodically(self) -> None:
        await asyncio.Event().wait()

    async def finish(self) -> None:
        pass


def create_app() -> Service:
    """The application with that sealer."""
    with mock.patch("normata.app.Sealer", Idle):
        return app.create_app()
