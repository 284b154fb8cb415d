"""The main process: it starts the workers, replaces those that die, and on SIGHUP all of them.

Granian's own loop ends the service when a worker dies for the second time in five seconds, and its reload resets the
connections that wait for the worker that ends.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from granian.net import SocketSpec  # type: ignore[attr-defined] # as Granian's server does
from granian.server import Server

from normata.core import log
from normata.core.http.failure import Failure
from normata.settings import Settings

IDLE = 10  # seconds after which a connection without a request is closed
GRACE = 10  # seconds for a worker to finish its requests when the service ends
ENDING = (signal.SIGINT, signal.SIGTERM)  # end the main process and its workers in order
LAST_ANSWERS = signal.SIGUSR1  # makes a worker ask clients to close their connections

_LOOK = 0.02  # seconds between looks at whether the first worker accepts connections
_YOUNG = 10.0  # seconds; a worker that dies within them has failed to start
_ATTEMPTS = 3  # to start a worker, before the service ends
_START = 120.0  # seconds for the start of a worker that replaces another one
_LAST_REQUESTS = 300.0  # seconds for a replaced worker to finish its requests
_CLOSING = IDLE + 1.0  # seconds after which no connection of a replaced worker is idle


class Prepared(NamedTuple):
    """What a worker reports once it has prepared the service."""

    result: Any


@dataclass
class _Replaced:
    """A worker that finishes its requests after it was replaced."""

    worker: Any
    since: float
    is_terminated: bool = False


class Supervisor(Server):  # type: ignore[misc,valid-type] # Granian chooses the class when it is imported
    """Granian's server, with workers that are replaced when they die, each time with a line in the log.

    SIGHUP replaces all workers, one after the other, without a failed request. The new one accepts connections from the
    same socket before the old one stops. The old one then accepts no more, answers with `Connection: close` for as long
    as a connection may be idle, and ends: a request that is sent while the server closes its connection would be lost
    (RFC 9112, section 9.5).
    """

    def __init__(
        self,
        settings: Settings,
        application: str,
        prepare: Callable[[], object],
        announce: Callable[[Any], None],
        **options: Any,
    ) -> None:
        """The first worker calls ``prepare`` before it serves. ``announce`` gets its result once that one serves."""
        super().__init__(application, workers_kill_timeout=GRACE, **options)
        self.has_failed = False
        self.failure: Failure | None = None  # of preparing
        self._prepare = prepare
        self._prepared: Prepared | None = None  # null until a worker has reported it
        self._announce: Callable[[Any], None] | None = announce  # null once it was called
        self._settings = settings
        self._sockets: list[Any] = []  # on Linux one for each worker
        self._replaced: list[_Replaced] = []
        self._had_terminal = _has_terminal()

    def prepare_here(self) -> None:
        """Prepare in this process instead. Raises what that raises."""
        self._prepared = Prepared(self._prepare())

    def startup(self, *arguments: Any) -> None:
        """Bind the address and start the workers."""
        if sys.platform == "linux":
            multiprocessing.set_start_method("fork", force=True)  # workers share imported modules, and the sockets
        ignores_hangup = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN  # set by nohup
        super().startup(*arguments)
        if ignores_hangup:
            signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def signal_handler_reload(self, *arguments: Any) -> None:
        """SIGHUP: replace the workers; or end, if it came because the terminal has been closed."""
        if self._had_terminal and not _has_terminal():
            self.signal_handler_interrupt()
        else:
            super().signal_handler_reload(*arguments)

    def _init_shared_socket(self) -> None:
        """Open a socket for each worker. It stays open when the worker ends, with the connections that wait in it.

        Linux distributes the connections over the sockets. Granian would let each worker open one.
        """
        if sys.platform != "linux":
            super()._init_shared_socket()
            return
        spec = SocketSpec(self.bind_addr, self.bind_port, self.backlog)
        self._sockets = [spec.build() for _ in range(self.workers)]
        self._ssp = self._sso = None

    def _drop_shared_socket(self) -> None:
        super()._drop_shared_socket()
        for one in self._sockets:
            os.close(one.get_fd())

    def _spawn_worker(self, idx: int, target: Any, callback_loader: Any) -> Any:
        if self._sockets:
            self._shd = self._sockets[idx]
        others = [one.get_fd() for number, one in enumerate(self._sockets) if number != idx]
        receiver, sender = multiprocessing.Pipe(duplex=False)
        prepare = self._prepare if self._prepared is None else None
        load = partial(callback_loader, report_ready=sender, close=others, port=self.bind_port, prepare=prepare)
        worker = super()._spawn_worker(idx, target, load)
        worker.ready = receiver
        return worker

    def _spawn_workers(self, *arguments: Any) -> None:
        with _signals_blocked():
            super()._spawn_workers(*arguments)

    def _respawn_workers(self, *arguments: Any) -> None:
        with _signals_blocked():
            super()._respawn_workers(*arguments)

    def _stop_workers(self) -> None:
        self.wrks.extend(one.worker for one in self._replaced)
        stopped = threading.Event()
        threading.Thread(target=_terminate_again, args=(list(self.wrks), stopped), daemon=True).start()
        super()._stop_workers()
        stopped.set()
        self.interrupt_children.clear()  # the service went on without workers that had ended before

    def _serve_loop(self, spawn_target: Any, target_loader: Any) -> None:
        failures: dict[int, int] = {}
        while not self.interrupt_signal and not self.has_failed:
            # Granian wakes this loop. The timeout is for two workers that die at the same moment.
            self.main_loop_interrupt.wait(_LOOK if self._announce else 1)
            self.main_loop_interrupt.clear()
            if self.reload_signal and self._announce is None:
                self._reload(spawn_target, target_loader)
            self._end_replaced()
            dead = [worker for worker in self.wrks if not worker.is_alive()]
            if self._announce is not None:
                self._look_at_first(self._announce)
                if self.has_failed:
                    break
            for worker in dead:
                is_young = time.monotonic() - worker.birth < _YOUNG
                failures[worker.idx] = failures.get(worker.idx, 0) + 1 if is_young else 0
                self._log_worker_exit(worker)
                _remove_metrics(worker.inner.pid)
                if self.interrupt_signal:
                    break
                if failures[worker.idx] >= _ATTEMPTS:
                    self.has_failed = True
                    self._log("error", "workers_keep_dying", attempts=_ATTEMPTS)
                    break
                self._respawn_workers([worker.idx], spawn_target, target_loader)
                self._log("info", "worker_replaced", worker=worker.idx + 1, pid=self.wrks[worker.idx].inner.pid)

    def _look_at_first(self, announce: Callable[[Any], None]) -> None:
        """Note what the first worker has reported, and announce the service once it serves."""
        ready = self.wrks[0].ready
        with suppress(EOFError):
            while self._prepared is None and self.failure is None and ready.poll():
                report = ready.recv()
                if isinstance(report, Failure):
                    self.failure, self.has_failed = report, True
                elif isinstance(report, Prepared):
                    self._prepared = report
        if self._prepared is not None and self._accepts_connections():
            announce(self._prepared.result)
            self._announce = None

    def _accepts_connections(self) -> bool:
        """Whether a worker listens; true where the workers' sockets are not known."""
        if not self._sockets:
            return True
        for one in self._sockets:
            with socket.socket(fileno=os.dup(one.get_fd())) as copy:
                if copy.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                    return True
        return False

    def _reload(self, spawn_target: Any, target_loader: Any) -> None:
        """Replace each worker by a new one. Workers whose successor does not start continue to serve."""
        self.reload_signal = False
        for idx, old in enumerate(self.wrks):
            try:
                with _signals_blocked():
                    new = self._spawn_worker(idx, spawn_target, target_loader)
                    new.start()
            except OSError as error:  # no memory or no process left
                self._log("error", "reload_failed", worker=idx + 1, pid=None, reason=str(error))
                return
            if not self._gets_ready(new):
                new.kill()
                if not self.interrupt_signal:
                    reason = "the new worker did not start"
                    self._log("error", "reload_failed", worker=idx + 1, pid=new.inner.pid, reason=reason)
                return
            self.wrks[idx] = new
            old.interrupt_by_parent = True  # its end is intended
            if old.is_alive():
                os.kill(old.inner.pid, LAST_ANSWERS)
            self._replaced.append(_Replaced(old, time.monotonic()))
            self._log("info", "worker_reloaded", worker=idx + 1, pid=new.inner.pid, replaced=old.inner.pid)

    def _gets_ready(self, worker: Any) -> bool:
        """Wait until a new worker can serve. Returns false if it dies, takes too long, or the service is to end."""
        end = time.monotonic() + _START
        while worker.is_alive() and time.monotonic() < end and not self.interrupt_signal:
            if worker.ready.poll(0.1):
                with suppress(EOFError):
                    return bool(worker.ready.recv())
        return False

    def _end_replaced(self) -> None:
        """Stop the workers that were replaced long enough ago."""
        for one in list(self._replaced):
            age = time.monotonic() - one.since
            if not one.worker.is_alive():
                _remove_metrics(one.worker.inner.pid)
                self._replaced.remove(one)
            elif age > _CLOSING and not one.is_terminated:
                one.worker.terminate()
                one.is_terminated = True
            elif age > _CLOSING + _LAST_REQUESTS:
                one.worker.kill()

    def _log_worker_exit(self, worker: Any) -> None:
        code = worker.inner.exitcode
        ended_by = {one.value: one.name for one in signal.Signals}.get(-(code or 0))
        self._log("error", "worker_died", worker=worker.idx + 1, pid=worker.inner.pid, exit_code=code, signal=ended_by)

    def _log(self, level: str, event: str, **values: object) -> None:
        log.configure(self._settings)
        with suppress(OSError, ValueError):  # the workers need supervision, even without a log
            getattr(log.logger, level)(event, **values)


def _terminate_again(workers: Sequence[Any], stopped: threading.Event) -> None:
    """Send SIGTERM once more to workers that have only just started: one that comes while they start may be lost.

    Without that, 3 of 120 services of two workers that were ended at once waited until a worker was killed. A worker
    of some age gets only one: it may be writing its last data.
    """
    if not stopped.wait(1):
        for one in workers:
            if one.is_alive() and time.monotonic() - one.birth < _YOUNG:
                one.terminate()


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Block signals that end processes while a block starts some: they get these once they are ready."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _has_terminal() -> bool:
    """Whether this process has a controlling terminal, which sends SIGHUP when it is closed."""
    try:
        with Path("/dev/tty").open("rb", buffering=0):
            return True
    except OSError:
        return False


def _remove_metrics(pid: int) -> None:
    """Remove the current activity of an ended process from the metrics."""
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        from prometheus_client.multiprocess import mark_process_dead  # noqa: PLC0415 - rarely needed in this process

        with suppress(OSError):
            mark_process_dead(pid)  # type: ignore[no-untyped-call]
