"""The sender of webhooks: each process of the service has one, and they share the work through the table of deliveries.

Each webhook that is due is a task of its own, with one connection and a claim. So one that is slow or dead takes a
place among many, for a few seconds, and nothing else of the service waits for it.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple

from normata.core.changes.periodic import repeat
from normata.core.changes.unit_of_work import Actor, Changes
from normata.core.db.database import Database
from normata.core.db.transaction import Transaction
from normata.core.db.types import now
from normata.core.http.outgoing import Answer, Connection, NoAnswer, Outgoing
from normata.core.log import logger
from normata.core.schema.table import new_id
from normata.errors import Unavailable
from normata.webhooks import deliveries
from normata.webhooks.deliveries import DISABLING_WRITES, Batch, Claimed, Places, Progress
from normata.webhooks.messages import Describe, Message, headers_of, is_wanted, message_of
from normata.webhooks.model import Reason, Stop
from normata.webhooks.names import arrays, names_in
from normata.webhooks.secrets import SecretBox, SecretUnreadable

Outcome = Literal["delivered", "failed", "disabled"]

COMMAND = "webhooks"
_PAUSE = 0.5  # seconds between two looks for due webhooks
_SHARE = 20  # a look that takes long is followed by a pause that is so many times as long
_LONGEST_PAUSE = 5.0  # seconds; a look may also wait for the database
_AT_ONCE = 256  # webhooks that a process sends at the same time: hundreds may die at once
_FAILING_AT_ONCE = 128  # of these, those whose last attempt has failed
_OF_ONE_OWNER = 4
_TURN = 10.0  # seconds for one webhook, before another one may have its place
_STORE_EVERY = 0.25  # seconds; what a killed process has sent since then is sent again
_FINISH_WITHIN = 5.0  # seconds that tasks get when the process ends


class Attempt(NamedTuple):
    """What has become of an attempt: a success if ``reason`` is null."""

    status: int | None
    reason: Reason | None
    retry_after: float | None = None


class Sender:
    """Sends due webhooks while the service runs. ``say`` describes an event to people; ``count`` counts outcomes."""

    def __init__(
        self,
        database: Database,
        changes: Changes,
        box: SecretBox,
        outgoing: Outgoing,
        say: Describe,
        *,
        count: Callable[[Outcome], None] = lambda _: None,
        clock: Callable[[], str] = now,
    ) -> None:
        self._database = database
        self._changes = changes
        self._box = box
        self._outgoing = outgoing
        self._say = say
        self._count = count
        self._clock = clock
        self._running: dict[str, tuple[Claimed, asyncio.Task[None]]] = {}
        self._is_ending = False

    async def send_periodically(self) -> None:
        """Send until cancelled."""
        took = 0.0

        async def look() -> None:
            nonlocal took
            began = time.monotonic()
            try:
                await self.start_due()
            finally:
                took = time.monotonic() - began

        await repeat(look, pause=lambda: max(_PAUSE, min(_SHARE * took, _LONGEST_PAUSE)), failure="webhooks_not_sent")

    async def start_due(self) -> int:
        """Begin to send what is due and has a place, and return the number of webhooks. Raises Unavailable."""
        free = _AT_ONCE - len(self._running)
        if free <= 0:
            return 0
        moment, places = self._clock(), self._places(free)
        rows = await self._database.read(lambda transaction: deliveries.due(transaction, moment, places))
        chosen = self._chosen(rows, free)
        if not chosen:
            return 0
        claimed = await self._database.write(lambda transaction: deliveries.claim(transaction, chosen, new_id, moment))
        for one in claimed:
            task = asyncio.create_task(self._deliver(one))
            self._running[one.webhook_id] = one, task
            task.add_done_callback(partial(self._ended, one.webhook_id))
        return len(claimed)

    async def finish(self) -> None:
        """Let tasks end after the request that they send; those that take too long are left to another process."""
        self._is_ending = True
        tasks = [task for _, task in self._running.values()]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=_FINISH_WITHIN)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)

    async def idle(self) -> None:
        """Wait until nothing is being sent."""
        while self._running:
            await asyncio.wait([task for _, task in self._running.values()])

    def _places(self, free: int) -> Places:
        """The free places, and whom they may go to."""
        failing = sum(one.attempts > 0 for one, _ in self._running.values())
        of_owner = Counter(one.owner for one, _ in self._running.values())
        full = [owner for owner, number in of_owner.items() if number >= _OF_ONE_OWNER]
        return Places(free, max(0, _FAILING_AT_ONCE - failing), _OF_ONE_OWNER, full)

    def _chosen(self, rows: list[Any], free: int) -> list[Any]:
        """Those of due deliveries that get the free places."""
        of_owner = Counter(one.owner for one, _ in self._running.values())
        chosen: list[Any] = []
        for row in rows:
            if row.webhook_id in self._running or of_owner[row.owner] >= _OF_ONE_OWNER:
                continue
            of_owner[row.owner] += 1
            chosen.append(row)
        return chosen[:free]

    def _ended(self, webhook_id: str, _task: asyncio.Task[None]) -> None:
        del self._running[webhook_id]

    async def _deliver(self, claimed: Claimed) -> None:
        """Send the events of a claimed webhook for a turn, and store how far that came."""
        turn = _Turn(self._database, self._clock, claimed)
        connection: Connection | None = None
        try:
            until = time.monotonic() + _TURN
            while not self._is_ending and time.monotonic() < until:
                batch, names = await self._next(turn)
                if batch is None or not batch.rows:
                    break
                if connection is None:
                    connection = await self._outgoing.connection(batch.webhook.url)
                if not await self._send_batch(turn, batch, names, connection, until):
                    return
            await turn.store(ends=True)
        except Unavailable:
            pass  # the claim expires
        except Exception:  # an error of one webhook must not stop the others
            with suppress(OSError, ValueError):
                logger.exception("webhook_not_sent", webhook=claimed.webhook_id)
        finally:
            if connection is not None:
                await connection.aclose()
                await connection.resolved()  # until then it has its place, as there are only so many threads

    async def _next(self, turn: _Turn) -> tuple[Batch | None, Mapping[str, str]]:
        def read(transaction: Transaction) -> tuple[Batch | None, Mapping[str, str]]:
            batch = deliveries.next_batch(transaction, turn.claimed, turn.progress.next_number)
            is_named = batch is not None and batch.webhook.format == "SLACK"
            rows = [row for row in batch.rows if row.id is not None] if batch is not None and is_named else []
            return batch, names_in(transaction, rows) if rows else {}

        return await self._database.read(read, turn.claimed.scope)

    async def _send_batch(
        self, turn: _Turn, batch: Batch, names: Mapping[str, str], connection: Connection, until: float
    ) -> bool:
        """Send some events in their order; returns false if the turn is over by that."""
        kinds = arrays()
        for row in batch.rows:
            if self._is_ending or time.monotonic() >= until:
                await turn.store(ends=True)
                return False
            if turn.is_old and not await turn.store():  # before each attempt: the claim must outlast it
                return False
            if row.id is None or not is_wanted(batch.webhook, row, kinds):
                turn.passed(row.number)
                continue
            message = message_of(batch.webhook, row, kinds, names, self._say)
            attempt = await attempt_at(connection, message, batch.webhook, self._box, self._clock())
            if attempt.reason is not None:
                await self._failed(turn, attempt)
                return False
            self._count("delivered")
            turn.delivered(row.number, attempt)
        return True

    async def _failed(self, turn: _Turn, attempt: Attempt) -> None:
        """Store a failure: with a later attempt, or with none if it was the last one."""
        self._count("failed")
        moment = self._clock()
        stop: Stop | None = "GONE" if attempt.reason == "GONE" else None
        if stop is None and deliveries.has_failed_for_days(turn.claimed, moment):
            stop = "FAILED"
        progress = turn.failed(attempt, moment)
        claimed = turn.claimed
        if stop is None:
            await self._database.write(
                lambda transaction: deliveries.fail(transaction, claimed, progress, moment, attempt.retry_after),
                claimed.scope,
            )
            return
        is_disabled = await self._changes.make(
            lambda unit: deliveries.disable(unit, claimed, progress, stop),
            actor=Actor(command=COMMAND),
            scope=claimed.scope,
            writes=DISABLING_WRITES,
        )
        if is_disabled:
            self._count("disabled")
            with suppress(OSError, ValueError):
                logger.warning("webhook_disabled", webhook=claimed.webhook_id, organization=claimed.owner, reason=stop)


class _Turn:
    """What one task has done of a webhook, and what of it is stored."""

    def __init__(self, database: Database, clock: Callable[[], str], claimed: Claimed) -> None:
        self.claimed = claimed
        self.progress = Progress(claimed.next_number)
        self._database = database
        self._clock = clock
        self._stored_at = time.monotonic()

    @property
    def is_old(self) -> bool:
        """Whether it is time to store."""
        return time.monotonic() - self._stored_at >= _STORE_EVERY

    def passed(self, number: int) -> None:
        """Note that an event is not wanted."""
        self.progress = self.progress._replace(next_number=number + 1)

    def delivered(self, number: int, attempt: Attempt) -> None:
        """Note that an event was taken."""
        moment = self._clock()
        self.progress = Progress(number + 1, moment, attempt.status, None, number, moment)
        self.claimed = replace(self.claimed, attempts=0, failing_since=None)

    def failed(self, attempt: Attempt, moment: str) -> Progress:
        """What is to be stored of a failure."""
        return self.progress._replace(last_at=moment, status=attempt.status, reason=attempt.reason)

    async def store(self, *, ends: bool = False) -> bool:
        """Store the progress; returns false if the claim is no longer this process's. Raises Unavailable."""
        claimed, progress, moment = self.claimed, self.progress, self._clock()
        is_own = await self._database.write(
            lambda transaction: deliveries.advance(transaction, claimed, progress, moment, ends=ends), claimed.scope
        )
        self.progress = Progress(progress.next_number)
        self._stored_at = time.monotonic()
        return is_own


async def attempt_at(connection: Connection, message: Message, webhook: Any, box: SecretBox, moment: str) -> Attempt:
    """Send a message once, and return what has become of it, ten seconds later at most."""
    try:
        headers = headers_of(message, webhook, box, moment)
    except SecretUnreadable:
        return Attempt(None, "KEY")
    try:
        answer = await connection.post(headers, message.body)
    except NoAnswer as error:
        return Attempt(None, error.reason)  # type: ignore[arg-type] # the reasons of connections are among them
    return Attempt(answer.status, _reason(answer), answer.retry_after)


def _reason(answer: Answer) -> Reason | None:
    if 200 <= answer.status < 300:
        return None
    if answer.status == 410:
        return "GONE"
    return "REDIRECT" if 300 <= answer.status < 400 else "STATUS"
