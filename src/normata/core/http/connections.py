"""The connections of this process: how many an address may have, and until when they are used."""

from __future__ import annotations

import os
import socket
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from math import ceil
from pathlib import Path

from normata.core.http.rate_limit import network_of

_INTERVAL = 0.5  # seconds between two looks at the connections
_DESCRIPTORS = Path("/proc/self/fd")  # of Linux; elsewhere connections have no limit of an address


@dataclass
class Persistence:
    """Whether a connection may be used for another request (RFC 9112, section 9.3)."""

    ends: bool = False  # every answer asks the client to close its connection, since this process is going to end


PERSISTENCE = Persistence()


class InFlight:
    """The requests in flight of each address, of IPv6 each /64: at most ``limit``, shared by the workers; 0 is none."""

    def __init__(self, limit: int, *, workers: int = 1) -> None:
        self._limit = ceil(limit / workers)
        self._counts: Counter[str] = Counter()

    def begin(self, client: str) -> str | None:
        """Count a request; the address that :meth:`end` takes, or null where it is one too many."""
        if not self._limit:
            return ""
        address = network_of(client)
        if self._counts[address] >= self._limit:
            return None
        self._counts[address] += 1
        return address

    def end(self, address: str | None) -> None:
        """Count a request no more."""
        if address:
            self._counts[address] -= 1
            if not self._counts[address]:
                del self._counts[address]


class ConnectionLimit:
    """Closes the newest connections of an address that has more than ``limit`` to this process.

    Granian has no such limit, and Python sees no connection before it has a request. So a thread looks at all sockets
    of the process. It works on duplicates of their descriptors, so that it never closes another one by mistake.
    """

    def __init__(self, limit: int, port: int, *, workers: int = 1, exempt: Iterable[str] = ()) -> None:
        self._limit = ceil(limit / workers)
        self._port = port
        self._exempt = [ip_network(one) for one in exempt]
        self._ages: dict[tuple[str, int], int] = {}  # of a peer: the look that first saw it
        self._look = 0

    def start(self) -> None:
        """Look from now on, until the process ends."""
        if self._limit and _DESCRIPTORS.is_dir():
            threading.Thread(target=self._run, name="normata-connections", daemon=True).start()

    def _run(self) -> None:
        pause = threading.Event()
        while not pause.wait(_INTERVAL):
            with suppress(OSError):
                self.close_excess()

    def close_excess(self) -> int:
        """Close what is beyond the limit, and return how many those were."""
        if len(os.listdir(_DESCRIPTORS)) <= self._limit:  # noqa: PTH208 - the names are enough
            return 0
        self._look += 1
        found: dict[str, list[tuple[str, int]]] = defaultdict(list)
        descriptors: dict[tuple[str, int], int] = {}
        for descriptor, peer in self._peers():
            descriptors[peer] = descriptor
            found[network_of(peer[0])].append(peer)
        self._ages = {peer: self._ages.get(peer, self._look) for peer in descriptors}
        closed = 0
        for address, peers in found.items():
            if len(peers) <= self._limit or self._is_exempt(address):
                continue
            # Of those of one look, the later ones mostly have the larger descriptors.
            for peer in sorted(peers, key=lambda one: (self._ages[one], descriptors[one]))[self._limit :]:
                closed += _shut_down(descriptors[peer], peer)
        return closed

    def _peers(self) -> Iterator[tuple[int, tuple[str, int]]]:
        """The connections to our port: their descriptors and the addresses and ports of their peers."""
        for name in os.listdir(_DESCRIPTORS):  # noqa: PTH208 - the names are enough
            with suppress(OSError), _duplicate(int(name)) as one:
                if one.family in (socket.AF_INET, socket.AF_INET6) and one.getsockname()[1] == self._port:
                    yield int(name), _peer(one)

    def _is_exempt(self, network: str) -> bool:
        """Whether an address, or the /64 that begins with it, is one of a proxy that speaks for many."""
        address = ip_address(network.partition("%")[0])
        return any(address in one or (one.version == 6 and network_of(str(one[0])) == network) for one in self._exempt)


def _duplicate(descriptor: int) -> socket.socket:
    """A socket of its own for the same connection. Raises OSError where the descriptor is none, or gone."""
    duplicate = os.dup(descriptor)
    try:
        return socket.socket(fileno=duplicate)
    except OSError:
        os.close(duplicate)
        raise


def _peer(one: socket.socket) -> tuple[str, int]:
    host, port = one.getpeername()[:2]
    return host, port


def _shut_down(descriptor: int, peer: tuple[str, int]) -> bool:
    """Close a connection, if the descriptor is still the one to ``peer``."""
    with suppress(OSError), _duplicate(descriptor) as one:
        if _peer(one) == peer:
            one.shutdown(socket.SHUT_RDWR)
            return True
    return False
