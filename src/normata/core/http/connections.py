"""The connections of this process: their limit for each address, and when they are closed."""

from __future__ import annotations

import errno
import os
import socket
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from pathlib import Path

from normata.core.http.rate_limit import network_of

_INTERVAL = 0.5  # seconds between two checks of the connections
_DESCRIPTORS = Path("/proc/self/fd")  # on Linux; elsewhere connections are not limited by address


@dataclass
class Persistence:
    """Whether a connection may be used for another request (RFC 9112, section 9.3)."""

    ends: bool = False  # each answer asks the client to close its connection, because this process is about to end


PERSISTENCE = Persistence()


class InFlight:
    """The requests in flight of each address, of IPv6 each /64: at most ``limit`` in this process; 0 is none."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._counts: Counter[str] = Counter()

    def begin(self, client: str) -> str | None:
        """Count a request. Returns the address to pass to :meth:`end`, or null if there are too many."""
        if not self._limit:
            return ""
        address = network_of(client)
        if self._counts[address] >= self._limit:
            return None
        self._counts[address] += 1
        return address

    def end(self, address: str | None) -> None:
        """Stop counting a request."""
        if address:
            self._counts[address] -= 1
            if not self._counts[address]:
                del self._counts[address]


class ConnectionLimit:
    """Closes the newest connections of an address that has more than ``limit`` to this process; 0 is no limit.

    The limit is that of each worker, as the number of all its connections is. It is not shared out: while the workers
    start, the first of them gets all connections, and would close those of an honest client.

    Granian has no such limit, and Python sees no connection before it has a request. So a thread looks at all sockets
    of the process. It works on duplicates of their descriptors, so that it never closes another one by mistake.
    """

    def __init__(self, limit: int, port: int, *, exempt: Iterable[str] = ()) -> None:
        self._limit = limit
        self._port = port
        self._exempt = [ip_network(one) for one in exempt]
        self._ages: dict[tuple[str, int], int] = {}  # by peer: the check that saw it first
        self._look = 0

    def start(self) -> None:
        """Check from now on, until the process ends."""
        if self._limit and _DESCRIPTORS.is_dir():
            threading.Thread(target=self._run, name="normata-connections", daemon=True).start()

    def _run(self) -> None:
        pause = threading.Event()
        while not pause.wait(_INTERVAL):
            with suppress(OSError):
                self.close_excess()

    def close_excess(self) -> int:
        """Close the connections beyond the limit, and return their number."""
        if len(os.listdir(_DESCRIPTORS)) <= self._limit:  # noqa: PTH208 - needs the names only
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
            # Of those that one check saw first, the newer ones mostly have the larger descriptors.
            for peer in sorted(peers, key=lambda one: (self._ages[one], descriptors[one]))[self._limit :]:
                closed += _shut_down(descriptors[peer], peer)
        return closed

    def _peers(self) -> Iterator[tuple[int, tuple[str, int]]]:
        """The connections to our port: their descriptors and the addresses and ports of their peers."""
        for descriptor, one in _sockets(self._port):
            with suppress(OSError):  # a listening socket, or the peer is gone
                yield descriptor, _peer(one)

    def _is_exempt(self, network: str) -> bool:
        """Whether an address, or the /64 that begins with it, is that of a trusted proxy."""
        address = ip_address(network.partition("%")[0])
        return any(address in one or (one.version == 6 and network_of(str(one[0])) == network) for one in self._exempt)


def stop_accepting(port: int) -> None:
    """Leave all further connections to ``port`` to the other processes that listen on the same socket.

    Granian accepts until its worker ends, and a connection whose request it has not read by then is closed without an
    answer. So an empty socket takes the place of each one that listens. Granian is not woken by it, and finds nothing
    to accept in it. Only Linux needs this: elsewhere workers share one socket, and are not replaced in this way.
    """
    if not _DESCRIPTORS.is_dir():
        return
    with socket.socket(socket.AF_UNIX) as empty:
        empty.setblocking(False)
        empty.bind("")  # the system chooses a name
        empty.listen(1)
        for descriptor, one in _sockets(port):
            if not _is_connected(one):  # a listening socket, or about to listen
                os.dup2(empty.fileno(), descriptor, inheritable=False)


def _sockets(port: int) -> Iterator[tuple[int, socket.socket]]:
    """The sockets of this process that are bound to ``port``: their descriptors, and a duplicate to ask."""
    for name in os.listdir(_DESCRIPTORS):  # noqa: PTH208 - needs the names only
        with suppress(OSError), _duplicate(int(name)) as one:
            if one.family in (socket.AF_INET, socket.AF_INET6) and one.getsockname()[1] == port:
                yield int(name), one


def _duplicate(descriptor: int) -> socket.socket:
    """A socket of its own for the same connection. Raises OSError if the descriptor is none, or gone."""
    duplicate = os.dup(descriptor)
    try:
        return socket.socket(fileno=duplicate)
    except OSError:
        os.close(duplicate)
        raise


def _is_connected(one: socket.socket) -> bool:
    try:
        one.getpeername()
    except OSError as error:
        return error.errno != errno.ENOTCONN
    return True


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
