"""Seals events while the service runs, and logs checkpoints, so that copies exist outside of the database."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from normata.core.db.database import Database
from normata.core.db.transaction import TenantScope
from normata.core.http.metrics import SealingFailure
from normata.core.log import logger
from normata.errors import Unavailable
from normata.events.keys import KeyUnusable, Signer
from normata.events.marks import Marks, sign
from normata.events.merkle import Checkpoint
from normata.events.sealing import UnsoundLog, seal

_PAUSE = 0.25  # seconds between two rounds
_LONGEST_PAUSE = 5.0  # seconds between two rounds after failures
_BETWEEN_LINES = 60.0  # seconds between two log lines about one organization


class Sealer:
    """Seals noted events repeatedly. Each process of the service has one; they can work at the same time.

    ``failed`` is called with the reason of each failure: of a round, of a log, of a checkpoint.
    """

    def __init__(
        self, database: Database, signer: Signer, failed: Callable[[SealingFailure], None] = lambda _: None
    ) -> None:
        self._database = database
        self._signer = signer
        self._failed = failed
        self._unlogged: dict[str, Checkpoint] = {}
        self._logged_at: dict[str, float] = {}
        self._logged_unsound_at: dict[str, float] = {}

    async def seal_periodically(self) -> None:
        """Seal until cancelled."""
        pause = _PAUSE
        while True:
            try:
                while await self.round():
                    pass
                await self._log_checkpoints(time.monotonic())
                pause = _PAUSE
            except Unavailable:
                self._failed("unavailable")
                pause = min(2 * pause, _LONGEST_PAUSE)
            except Exception:  # whatever went wrong, the next attempt may succeed
                self._failed("other")
                pause = _LONGEST_PAUSE
                with suppress(OSError, ValueError):  # this task must go on without a log
                    logger.exception("events_not_sealed")
            await asyncio.sleep(pause)

    async def round(self) -> bool:
        """Seal some noted events; returns whether there may be more."""
        unsound: dict[str, str] = {}
        grown, is_more = await seal(self._database, unsound)
        self._log_unsound(unsound, time.monotonic())
        self._unlogged.update((checkpoint.organization_id, checkpoint) for checkpoint in grown)
        return is_more

    async def finish(self) -> None:
        """Seal the remaining events, and log the remaining checkpoints."""
        with suppress(Unavailable):
            while await self.round():
                pass
            await self._log_checkpoints(float("inf"))

    async def _note(self, checkpoint: Checkpoint) -> str:
        """A checkpoint that was just stored, signed. Raises UnsoundLog, KeyUnusable and Unavailable."""
        owner, signer = checkpoint.organization_id, self._signer
        mark = await asyncio.to_thread(Marks(signer).of, owner)
        return await self._database.read(
            lambda transaction: sign(transaction, signer, checkpoint, mark),
            TenantScope(readable=(owner,)),
            is_long=True,  # signing waits for a disk
        )

    def _log_unsound(self, unsound: Mapping[str, str], moment: float) -> None:
        """Log the unsound logs, each at most once a minute."""
        for owner, reason in unsound.items():
            if moment - self._logged_unsound_at.get(owner, float("-inf")) >= _BETWEEN_LINES:
                self._logged_unsound_at[owner] = moment
                self._failed("unsound")
                with suppress(OSError, ValueError):
                    logger.error("log_unsound", organization=owner or None, reason=reason)

    async def _log_checkpoints(self, moment: float) -> None:
        """Log the checkpoints of logs that have grown, each at most once a minute. Raises Unavailable."""
        due = [
            owner for owner in self._unlogged if moment - self._logged_at.get(owner, float("-inf")) >= _BETWEEN_LINES
        ]
        for owner in due:
            checkpoint = self._unlogged.pop(owner)
            self._logged_at[owner] = moment
            try:
                level, line = "info", {"event": "checkpoint", "note": await self._note(checkpoint)}
            except UnsoundLog as error:
                self._failed("unsound")
                level, line = "error", {"event": "log_unsound", "reason": str(error)}
            except KeyUnusable as error:
                self._failed("key")
                level, line = "error", {"event": "event_key_unusable", "reason": str(error)}
            with suppress(OSError, ValueError):
                getattr(logger, level)(**line, organization=owner or None, size=checkpoint.size)
