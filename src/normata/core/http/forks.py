"""Processes that have what this one has imported.

To start one anew takes seconds of a processor, for imports. A process with threads must not be forked, since a lock
that another thread holds at that moment would be held in the new process for ever. So before a worker has threads, it
forks a process that only waits, and that forks the others when they are needed. They share memory, too.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

# What ends or replaces a worker comes to its whole group, or to all that belongs to a service. These processes have to
# finish what a worker waits for. They end with the connection to it, however it ends.
_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
_STANDARD = 3  # input, output and error

Run = Callable[[socket.socket], None]


class Forks:
    """Forks processes that ``run``. The caller must have no threads yet.

    ``run`` gets one end of a connection, whose other end is this process's, and returns once it is closed.
    """

    def __init__(self, run: Run) -> None:
        gc.collect()
        gc.freeze()  # or the garbage collector would write to shared memory
        self._orders, theirs = socket.socketpair()
        if os.fork() == 0:
            _in_new_process(_wait_for_orders, theirs, run)
        theirs.close()

    def fork(self) -> socket.socket:
        """Start a process, and return the end of the connection to it. Raises OSError.

        If it cannot be forked, the connection ends before anything has come over it.
        """
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                socket.send_fds(self._orders, [b"."], [theirs.fileno()])
        except OSError:
            ours.close()
            raise
        return ours

    def close(self) -> None:
        """Start no more."""
        self._orders.close()


def _in_new_process(run: Callable[[socket.socket, Run], None], connection: socket.socket, then: Run) -> NoReturn:
    """Be the new process. It must not return to where the old one goes on, nor end what belongs to that."""
    status = 1
    try:
        for one in _IGNORED:
            signal.signal(one, signal.SIG_IGN)
        _close_all_but(connection.fileno())
        run(connection, then)
        status = 0
    finally:
        os._exit(status)


def _wait_for_orders(orders: socket.socket, run: Run) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    while True:
        order, descriptors, _, _ = socket.recv_fds(orders, 1, 1)
        if not order:
            return
        if not descriptors:  # there are too many open files, and the system has closed this one
            continue
        with socket.socket(fileno=descriptors[0]) as connection, suppress(OSError):  # no memory or no process left
            if os.fork() == 0:
                _in_new_process(_run, connection, run)


def _run(connection: socket.socket, run: Run) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    run(connection)


def _close_all_but(descriptor: int) -> None:
    """Close the files of the other process: its listening sockets, and its connections to others."""
    os.closerange(_STANDARD, descriptor)
    os.closerange(descriptor + 1, os.sysconf("SC_OPEN_MAX"))
