"""Seals events while the service runs, and logs checkpoints, so that the log has them where nobody can change them."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

import structlog

from normata.core.db.database import Database
from normata.errors import Unavailable
from normata.events.keys import KeyUnusable, Signer
from normata.events.merkle import Checkpoint
from normata.events.sealing import seal

log = structlog.get_logger("normata")

_PAUSE = 0.25  # seconds between two rounds
_LONGEST_PAUSE = 5.0  # while something is wrong
_BETWEEN_LINES = 60.0  # seconds between two lines of the log about one organization


class Sealer:
    """Seals what is noted, again and again. Each process of the service has one; they compete without harm."""

    def __init__(self, database: Database, signer: Signer) -> None:
        self._database = database
        self._signer = signer
        self._unlogged: dict[str, Checkpoint] = {}
        self._logged_at: dict[str, float] = {}

    async def seal_periodically(self) -> None:
        """Seal until cancelled."""
        pause = _PAUSE
        while True:
            try:
                while await self.round():
                    pass
                pause = _PAUSE
            except Unavailable:
                pause = min(2 * pause, _LONGEST_PAUSE)
            except Exception:  # whatever went wrong, the next attempt may succeed
                pause = _LONGEST_PAUSE
                with suppress(OSError, ValueError):  # a log that cannot be written must not end this
                    log.exception("events_not_sealed")
            self._log_checkpoints(time.monotonic())
            await asyncio.sleep(pause)

    async def round(self) -> bool:
        """Seal some of what is noted; whether there may be more."""
        grown, is_more = await seal(self._database)
        self._unlogged.update((checkpoint.organization_id, checkpoint) for checkpoint in grown)
        return is_more

    async def finish(self) -> None:
        """Seal what the last requests have left, and log what has not been logged."""
        with suppress(Unavailable):
            while await self.round():
                pass
        self._log_checkpoints(float("inf"))

    def _log_checkpoints(self, moment: float) -> None:
        """Log the checkpoints of logs that have grown, each at most once a minute."""
        due = [
            owner for owner in self._unlogged if moment - self._logged_at.get(owner, float("-inf")) >= _BETWEEN_LINES
        ]
        for owner in due:
            checkpoint = self._unlogged.pop(owner)
            self._logged_at[owner] = moment
            try:
                level, line = "info", {"event": "checkpoint", "note": self._signer.note(checkpoint)}
            except KeyUnusable as error:
                level, line = "error", {"event": "event_key_unusable", "reason": str(error)}
            with suppress(OSError, ValueError):
                getattr(log, level)(**line, organization=owner or None, size=checkpoint.size)
