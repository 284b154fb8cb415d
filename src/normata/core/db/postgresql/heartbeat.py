"""The heartbeat: confirms every second which server is the primary; a confirmation is valid for three seconds.

A server that has been replaced may not know it: its Patroni was killed, or it was frozen when another one was promoted.
It would continue to read, with tokens that have been revoked since. So answers of a server count only while it is known
to be the primary. A commit proves that: if a synchronous standby has confirmed it, this standby had not been promoted
when the commit began. This gives a lease of some seconds, as in Gray and Cheriton's "Leases" (1989), on a clock of this
machine alone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass

from normata.core.db.postgresql.server_status import BackgroundClosing, HostProbe, Hosts, ServerStatus
from normata.core.log import logger
from normata.errors import Unavailable

INTERVAL = 1.0  # seconds from the start of a beat to the start of the next
PATIENCE = 1.0  # seconds for the server's answer, including a commit
LEASE = 3.0  # seconds that a confirmation is valid, from the start of its beat
READY = 2.0  # seconds that `/readyz` relies on it
_MIN_PAUSE = 0.1  # minimum seconds between two beats, however many requests wait

RESTART = "if that is meant to be, restart the service"

_NEVER = float("-inf")
# A clock that counts suspended time, where there is one.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def clock() -> float:
    """Seconds of a monotonic clock."""
    return time.clock_gettime(_CLOCK)


@dataclass(frozen=True, slots=True, eq=False)
class Server:
    """A primary, from one promotion to the next; the same server under a new timeline is another one."""

    address: str
    system: int
    timeline: str


class Heartbeat:
    """Confirms the primary with a commit each second, and asks all other hosts for their status.

    ``adopt`` is called with every new primary, before it is used. ``renew`` is called when earlier sessions cannot be
    used any more. It starts at the first call.
    """

    def __init__(self, hosts: Hosts, adopt: Callable[[Server], None], renew: Callable[[], None]) -> None:
        self._hosts = hosts
        self._adopt = adopt
        self._renew = renew
        self._is_read_only = False
        patience = min(PATIENCE, hosts.timeout)
        self._closing = BackgroundClosing(hosts.timeout)
        self._probes: Mapping[str, HostProbe] = {
            address: HostProbe(hosts, address, self._closing, patience) for address in hosts.addresses
        }
        self._server: Server | None = None
        self._read = _NEVER  # the start of the last beat that allows reads
        self._written = _NEVER
        self._reason = "no server has been asked yet"
        self._logged = ""
        self._task: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._next = asyncio.Event()  # set when the next beat ends or confirms

    async def confirmed(self, *, writing: bool = False) -> Server:
        """The primary, confirmed for reading or for writing not longer than LEASE ago.

        If the confirmation has expired, it waits for the next beat. Raises Unavailable.
        """
        return await self._confirmed(LEASE, writing=writing)

    async def ready(self) -> None:
        """Return if changes can be served now. Raises Unavailable."""
        await self._confirmed(READY, writing=True)

    async def is_still(self, server: Server) -> bool:
        """Whether an answer of ``server`` counts, because it is still the primary. Raises Unavailable."""
        return await self.confirmed() is server

    def wake(self) -> None:
        """Start the next beat immediately, because there may be another primary."""
        self._wake.set()

    def doubt(self, server: Server) -> None:
        """Discard the confirmation until the next beat, because another server has answered."""
        if server is self._server:
            self._read = self._written = _NEVER
        self.wake()

    async def close(self) -> None:
        """Stop."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None
        for probe in self._probes.values():
            probe.drop()
        await self._closing.finish()

    async def _confirmed(self, within: float, *, writing: bool) -> Server:
        if self._server is not None and self._holds(within, writing=writing):
            return self._server
        over = self._next
        self._begin()
        self.wake()
        await over.wait()
        if self._server is not None and self._holds(within, writing=writing):
            return self._server
        raise Unavailable(self._reason, "unconfirmed")

    def _holds(self, within: float, *, writing: bool) -> bool:
        return clock() - (self._written if writing else self._read) < within

    def _begin(self) -> None:
        if self._task is None or self._task.done():
            # In an empty context, because the task goes on after the request that starts it.
            self._task = asyncio.create_task(self._beat_forever(), context=Context())

    async def _beat_forever(self) -> None:
        while True:
            began = clock()
            over, self._next = self._next, asyncio.Event()
            self._wake.clear()
            try:
                await self._beat(began, over)
            except Exception:  # whatever went wrong, the next beat may succeed
                self._reason = "the primary could not be looked for"
                logger.exception("heartbeat_failed")
            finally:
                over.set()
            self._log_changes(began)
            await asyncio.sleep(_MIN_PAUSE)
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, began + INTERVAL - clock())):
                    await self._wake.wait()

    async def _beat(self, began: float, over: asyncio.Event) -> None:
        server = self._server or await self._first()
        if server is None:
            return
        others = [probe for address, probe in self._probes.items() if address != server.address]
        requests = [asyncio.create_task(probe.status()) for probe in others]
        try:
            found = await self._commit(server, began)
            if self._read == began:
                over.set()
            statuses = dict(zip(others, await asyncio.gather(*requests), strict=True))
        finally:
            for task in requests:
                task.cancel()
        newest = _newest(statuses)
        if newest is not None and self._is_newer(newest[1], self._server):
            self._go_to(*newest)
            await self._commit(self._server, clock())
        elif self._read != began and found is None and _are_standbys(statuses.values(), server):
            self._read = began  # it cannot commit, but no other server has replaced it
        elif newest is not None and found is None:
            host = self._hosts.label(newest[0].address)
            self._reason = f"{host} takes writes, but is of an older timeline than the primary before; {RESTART}"

    async def _commit(self, server: Server | None, began: float) -> ServerStatus | None:
        """Confirm the primary with a commit, and update the state; returns its status, or null."""
        assert server is not None  # noqa: S101 - narrows the type
        probe = self._probes[server.address]
        found = await probe.status(commit=True)
        is_done = found is not None
        if found is None and len(self._probes) == 1:
            # The old connection may lead to a former primary; a new one goes where the proxy leads now. A pooler may
            # reuse an old one, so connections through it prove nothing.
            found = await probe.status()
            if found is not None and found.is_pooled:
                found = None
        if found is not None and self._is_newer(found, server):
            self._go_to(probe, found)
            if not is_done:
                return await self._commit(self._server, clock())
        elif found is None or not _is_of(found, server):
            if found is None:
                self._reason = probe.reason
            elif not found.is_primary:
                self._reason = f"{self._hosts.label(probe.address)} is a standby now"
            else:
                self._reason = f"the server that answers is not the primary before; {RESTART}"
            probe.drop()
            return found
        if not is_done:
            self._reason = "the primary does not commit"
        elif not found.takes_writes:
            self._reason = "the primary is read-only"
            probe.drop()  # a session keeps the setting with which it began
        elif self._is_read_only:
            self._renew()
        self._is_read_only = not found.takes_writes
        if is_done or found.is_primary:
            self._read = began
        if is_done and found.takes_writes:
            self._written = began
        return found

    async def _first(self) -> Server | None:
        """The primary, where none is known."""
        statuses = dict(
            zip(
                self._probes.values(),
                await asyncio.gather(*(probe.status() for probe in self._probes.values())),
                strict=True,
            )
        )
        known = [status for status in statuses.values() if status is not None]
        newest = _newest(statuses)
        if len({status.system for status in known}) > 1:
            self._reason = "the hosts of the database URL belong to different clusters"
        elif newest is not None:
            self._go_to(*newest)
        elif known:
            self._reason = "no host of the database URL is a primary"
        else:
            self._reason = "; ".join(probe.reason for probe in self._probes.values())
        return self._server

    def _go_to(self, probe: HostProbe, status: ServerStatus) -> None:
        is_first, self._server = self._server is None, Server(probe.address, status.system, status.timeline)
        self._read = self._written = _NEVER
        self._adopt(self._server)
        if not is_first:
            logger.info("database_primary", host=self._hosts.label(probe.address), timeline=status.timeline)

    def _is_newer(self, status: ServerStatus, server: Server | None) -> bool:
        if server is None or not status.is_primary:
            return False
        if status.system != server.system:
            return len(self._probes) == 1  # another cluster has taken over the address
        return status.timeline > server.timeline

    def _log_changes(self, began: float) -> None:
        """Log changes once."""
        reason = "" if self._written >= began else self._reason
        if reason and reason != self._logged:
            logger.warning("database_unconfirmed", reason=reason)
        elif self._logged and not reason:
            logger.info("database_confirmed")
        self._logged = reason


def _newest(statuses: Mapping[HostProbe, ServerStatus | None]) -> tuple[HostProbe, ServerStatus] | None:
    """The primary to use, of several."""
    primaries = [(probe, status) for probe, status in statuses.items() if status is not None]
    primaries = [pair for pair in primaries if pair[1].is_primary]
    return max(primaries, key=lambda pair: pair[1].rank, default=None)


def _is_of(status: ServerStatus, server: Server) -> bool:
    return (status.system, status.timeline) == (server.system, server.timeline)


def _are_standbys(statuses: Collection[ServerStatus | None], server: Server) -> bool:
    """Whether there are other hosts, all have answered, and none has been promoted."""
    return bool(statuses) and all(
        one is not None and not one.is_primary and one.system == server.system for one in statuses
    )
