"""Running the application in its server, Granian."""

from __future__ import annotations

import errno
import gc
import importlib
import multiprocessing
import os
import resource
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from granian.constants import HTTPModes, Interfaces, Loops
from granian.http import HTTP1Settings
from granian.server import Server

from normata.core import log
from normata.settings import Settings

# No client may stop a worker, whether it has a token or not. HTTP/2 is off: without TLS nobody needs it, and its
# compressed headers make megabytes of a few kilobytes. The head of a request is small, and must arrive within ten
# seconds. A connection without a request is closed after the same time.
HTTP1 = HTTP1Settings(header_read_timeout=10_000, max_buffer_size=16_384)

# The most connections of one worker, idle ones included; further ones wait. An idle one takes 3 kB of memory.
CONNECTIONS = 8_192
_OTHER_FILES = 256  # that a worker opens: database, log, libraries

_GRACE = 10  # seconds that a worker gets to finish its requests before it is killed
_YOUNG = 10.0  # seconds; a worker that dies within them counts as one that failed to start
_ENDING = (signal.SIGINT, signal.SIGTERM)  # they end the main process and its workers in order

_ATTEMPTS = 3  # to start a worker, before the service ends


class AddressInUse(OSError):
    """Something else listens on the address, or it is not one of this machine."""


def run(
    settings: Settings, application: str = "normata.app:create_app", announce: Callable[[], None] = lambda: None
) -> None:
    """Serve until interrupted. Raises SystemExit(1) where workers die again and again.

    Worker processes read the settings from the environment, so they are put there. ``application`` names the factory
    of what is served; benchmarks name others. ``announce`` is called once the address is taken.
    """
    address = _address(settings.host, settings.port)
    for name, value in settings.model_dump().items():
        os.environ[f"NORMATA_{name.upper()}"] = str(value)
    with ExitStack() as ending:
        if settings.workers > 1:
            folder = ending.enter_context(tempfile.TemporaryDirectory(prefix="normata-metrics-"))
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        server = _Server(
            settings,
            application,
            address=address,
            port=settings.port,
            interface=Interfaces.ASGI,
            http=HTTPModes.http1,
            http1_settings=HTTP1,
            backpressure=connection_limit(),
            workers=settings.workers,
            loop=Loops.uvloop,
            websockets=False,
            log_enabled=False,  # it is no JSON; what it would report of workers is logged below
            workers_kill_timeout=_GRACE,
        )
        if settings.workers > 1:
            _import_once(application)
        server.on_startup(announce)
        server.serve(target_loader=_load)
        if server.has_failed:
            raise SystemExit(1)


def _import_once(application: str) -> None:
    """Import what several workers are going to serve. They are forked, so they share it."""
    with suppress(Exception):  # the workers fail the same way, and log it
        importlib.import_module(application.partition(":")[0])
    gc.collect()
    gc.freeze()  # or the collector would write to what is shared


def base_url(settings: Settings) -> str:
    """Where this machine reaches what the settings have listen."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)  # noqa: S104 - compared, not bound
    return f"http://[{host}]:{settings.port}" if ":" in host else f"http://{host}:{settings.port}"


def require_free_address(host: str, port: int) -> None:
    """Raise AddressInUse, in one sentence, where each worker would fail to listen."""
    address = _address(host, port)
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((address, port))
    except OSError as error:
        raise _unusable(host, port, error) from None


def _address(host: str, port: int) -> str:
    """The IP address that ``host`` is or names; of several the first of IPv4. Granian takes no names."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:  # a name may be one that nobody can look up
        raise _unusable(host, port, error) from None
    addresses = [str(address[0]) for *_, address in sorted(found, key=lambda entry: entry[0] != socket.AF_INET)]
    if "%" in addresses[0]:  # the address of a single link, which Granian does not take either
        raise _unusable(host, port, OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL)))
    return addresses[0]


def _unusable(host: str, port: int, error: Exception) -> AddressInUse:
    number, reason = (error.errno, error.strerror) if isinstance(error, OSError) else (0, str(error))
    return AddressInUse(number, f"cannot listen there: {reason}", f"{host}:{port}")


def connection_limit() -> int:
    """The number of connections that one worker takes. Where it is allowed, the limit of open files is raised for them.

    A worker with no file left for the next connection would try again without a pause, and use a whole core for it.
    """
    needed = CONNECTIONS + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return CONNECTIONS if soft == resource.RLIM_INFINITY else max(1, min(CONNECTIONS, soft - _OTHER_FILES))


class _Server(Server):  # type: ignore[misc,valid-type] # Granian chooses the class when it is imported
    """Granian's server, with workers that are replaced when they die, each time with a line in the log.

    Granian's own loop ends the service when a worker dies for the second time in five seconds.
    """

    def __init__(self, settings: Settings, application: str, **options: Any) -> None:
        super().__init__(application, **options)
        self.has_failed = False
        self._settings = settings

    def _spawn_workers(self, *arguments: Any) -> None:
        with _signals_blocked():
            super()._spawn_workers(*arguments)

    def _respawn_workers(self, *arguments: Any) -> None:
        with _signals_blocked():
            super()._respawn_workers(*arguments)

    def _serve_loop(self, spawn_target: Any, target_loader: Any) -> None:
        failures: dict[int, int] = {}
        while not self.interrupt_signal and not self.has_failed:
            # Granian wakes this loop; the time-out is for two that die within the same moment.
            self.main_loop_interrupt.wait(1)
            self.main_loop_interrupt.clear()
            if self.reload_signal:
                self._reload(spawn_target, target_loader)
            for worker in [worker for worker in self.wrks if not worker.is_alive()]:
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
        self.interrupt_children.clear()  # they have been replaced, so their deaths are no failure of the whole

    def _log_worker_exit(self, worker: Any) -> None:
        code = worker.inner.exitcode
        ended_by = {one.value: one.name for one in signal.Signals}.get(-(code or 0))
        self._log("error", "worker_died", worker=worker.idx + 1, pid=worker.inner.pid, exit_code=code, signal=ended_by)

    def _log(self, level: str, event: str, **values: object) -> None:
        import structlog  # noqa: PLC0415 - mostly no worker dies, and this process needs no log

        log.configure(self._settings)
        with suppress(OSError, ValueError):  # a log that cannot be written is no reason to leave the workers alone
            getattr(structlog.get_logger("normata"), level)(event, **values)


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Hold back what ends processes while a block starts some: they get it once `_load` has made them ready."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _remove_metrics(pid: int) -> None:
    """Take a process that has died out of the metrics: what it was doing then it does no more."""
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        from prometheus_client.multiprocess import mark_process_dead  # noqa: PLC0415 - mostly no worker dies

        with suppress(OSError):
            mark_process_dead(pid)  # type: ignore[no-untyped-call]


def _load(target: str) -> Any:
    """The application, in a worker process, which ends when the main process does."""
    # Until Granian handles signals here, a forked copy of the main process's handler would swallow them, and the main
    # process would wait for the worker in vain. Ctrl-C goes to all processes; the main process then ends the workers.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
    main = multiprocessing.parent_process()
    if main is not None:
        threading.Thread(target=_end_with, args=(main.pid,), name="normata-main-process", daemon=True).start()
    module, _, factory = target.partition(":")
    try:
        application = getattr(importlib.import_module(module), factory)()
    except Exception as error:
        import structlog  # noqa: PLC0415 - the application imports and configures it, but has not come so far

        log.configure(Settings())
        structlog.get_logger("normata").error("worker_cannot_start", pid=os.getpid(), exc_info=error)
        raise SystemExit(1) from None
    _spare_what_stays()
    return application


def _spare_what_stays() -> None:
    """Have the collector of reference cycles leave what has been imported and made so far alone, and come less often.

    It would walk all of that again and again, since requests leave next to no cycles behind: that took a tenth of the
    time of a change.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


def _end_with(main: int | None) -> None:
    """End this process, in order, once its parent is no longer the process ``main``.

    A worker whose main process was killed would serve on, hold the port, and be stopped by nobody.
    """
    while os.getppid() == main:
        time.sleep(1)
    import structlog  # noqa: PLC0415 - the application has imported and configured it

    with suppress(OSError, ValueError):
        structlog.get_logger("normata").error("main_process_gone", pid=os.getpid(), main=main)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE)
    os._exit(1)
