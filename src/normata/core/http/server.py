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
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from granian.constants import HTTPModes, Interfaces, Loops
from granian.http import HTTP1Settings

from normata.core import log
from normata.core.http.connections import PERSISTENCE, ConnectionLimit, stop_accepting
from normata.core.http.failure import Failure
from normata.core.http.supervisor import GRACE, IDLE, LAST_ANSWERS, Prepared, Supervisor
from normata.settings import Settings

T = TypeVar("T")

# No client may stop a worker, with or without a token. HTTP/2 is off: without TLS nobody needs it, and its compressed
# headers turn a few kilobytes into megabytes. The head of a request is small and must arrive within ten seconds. A
# connection without a request is closed after the same time.
HTTP1 = HTTP1Settings(header_read_timeout=IDLE * 1_000, max_buffer_size=16_384)

# Connections of a worker, including idle ones; further ones wait. An idle one takes 3 kB of memory.
CONNECTIONS = 8_192
_OTHER_FILES = 256  # files of a worker besides connections: database, log, libraries

# Seconds until a computing thread gives Python's lock to a waiting one; Python's default is 5 ms. sqlite3 releases the
# lock for each row, so that a page waits as often for a thread that compares an import with what is stored.
_SWITCH_INTERVAL = 0.00002


# What the module of an application may have: a function to call in each worker before that has threads.
_BEFORE_THREADS = "before_threads"


class AddressInUse(OSError):
    """The address is in use, or it is not one of this machine."""


def run(
    settings: Settings,
    application: str = "normata.app:create_app",
    prepare: Callable[[], T] = lambda: None,  # type: ignore[assignment,return-value] # then T is null
    announce: Callable[[T], None] = lambda _: None,
) -> None:
    """Serve until interrupted. Raises SystemExit(1) if workers die repeatedly, and what ``prepare`` raises.

    Worker processes read the settings from the environment, so they are put there. ``application`` names the factory of
    the application; benchmarks name others. ``prepare`` is called once, before anything is served: by the worker, so
    that the main process, which only watches it, does not need the memory for that. Several workers share what the
    main process has imported, and then it does so itself. ``announce`` gets the result once a worker accepts
    connections.
    """
    address = _address(settings.host, settings.port)
    for name, value in settings.model_dump(exclude_unset=True).items():  # workers see which are defaults
        os.environ[f"NORMATA_{name.upper()}"] = str(value)
        os.environ.pop(f"NORMATA_{name.upper()}_FILE", None)  # the file was read already
    with ExitStack() as ending:
        if settings.workers > 1:
            folder = ending.enter_context(tempfile.TemporaryDirectory(prefix="normata-metrics-"))
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        server = Supervisor(
            settings,
            application,
            prepare,
            announce,
            address=address,
            port=settings.port,
            interface=Interfaces.ASGI,
            http=HTTPModes.http1,
            http1_settings=HTTP1,
            backpressure=connection_limit(),
            workers=settings.workers,
            loop=Loops.uvloop,
            websockets=False,
            log_enabled=False,  # its log is not JSON; what it would report about workers is logged below
        )
        if settings.workers > 1:
            _import_once(application)
            server.prepare_here()
        server.serve(target_loader=_load)
        if server.failure is not None:
            raise server.failure.error()
        if server.has_failed:
            raise SystemExit(1)


def _import_once(application: str) -> None:
    """Import the application before several workers are forked, so that they share it."""
    with suppress(Exception):  # the workers fail in the same way, and log it
        importlib.import_module(application.partition(":")[0])
    gc.collect()
    gc.freeze()  # or the garbage collector would write to shared pages


def base_url(settings: Settings) -> str:
    """The URL at which this machine reaches the service."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)  # noqa: S104 - compared, not bound
    return f"http://[{host}]:{settings.port}" if ":" in host else f"http://{host}:{settings.port}"


def require_free_address(host: str, port: int) -> None:
    """Raise AddressInUse if each worker would fail to listen."""
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
    except (OSError, UnicodeError) as error:  # the name may not be a valid host name
        raise _unusable(host, port, error) from None
    addresses = [str(address[0]) for *_, address in sorted(found, key=lambda entry: entry[0] != socket.AF_INET)]
    if "%" in addresses[0]:  # a link-local address with a zone, which Granian does not accept either
        raise _unusable(host, port, OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL)))
    return addresses[0]


def _unusable(host: str, port: int, error: Exception) -> AddressInUse:
    number, reason = (error.errno, error.strerror) if isinstance(error, OSError) else (0, str(error))
    return AddressInUse(number, f"cannot listen there: {reason}", f"{host}:{port}")


def connection_limit() -> int:
    """The number of connections of one worker. If allowed, the limit of open files is raised for them.

    A worker without a free file for the next connection would retry without a pause, and use a whole core.
    """
    needed = CONNECTIONS + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return CONNECTIONS if soft == resource.RLIM_INFINITY else max(1, min(CONNECTIONS, soft - _OTHER_FILES))


def _load(
    target: str,
    report_ready: Connection,
    close: Sequence[int],
    port: int,
    prepare: Callable[[], object] | None,
) -> Any:
    """The application, in a worker process, which ends when the main process does.

    It reports what ``prepare`` returns or raises, unless that is null, and when it is ready. ``close`` has the sockets
    of other workers to close.
    """
    # Until Granian handles signals here, the forked copy of the main process's handler would ignore them, and the main
    # process would wait in vain. Ctrl-C goes to all processes, and the main process then ends the workers. It stays
    # blocked here: of two signals that come while Granian starts to serve, the second one makes it wait forever.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(LAST_ANSWERS, lambda *_: _give_way(port))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM,))
    for descriptor in close:
        os.close(descriptor)
    main = multiprocessing.parent_process()
    module, _, factory = target.partition(":")
    try:
        imported = importlib.import_module(module)
        getattr(imported, _BEFORE_THREADS, lambda: None)()
        if prepare is not None:
            _report_prepared(prepare, report_ready)
        if main is not None:
            threading.Thread(target=_end_with, args=(main.pid,), name="normata-main-process", daemon=True).start()
        application = getattr(imported, factory)()
    except Exception as error:
        log.configure(Settings())
        log.logger.error("worker_cannot_start", pid=os.getpid(), exc_info=error)
        raise SystemExit(1) from None
    settings = Settings()
    proxies = settings.trusted_proxies.split(",") if settings.trusted_proxies else []
    ConnectionLimit(settings.address_connections, settings.port, exempt=proxies).start()
    _spare_what_stays()
    sys.setswitchinterval(_SWITCH_INTERVAL)
    with report_ready:
        report_ready.send(True)
    return application


def _report_prepared(prepare: Callable[[], object], report: Connection) -> None:
    try:
        prepared: Prepared | Failure = Prepared(prepare())
    except Exception as error:
        prepared = Failure.of(error)
    report.send(prepared)
    if isinstance(prepared, Failure):
        raise SystemExit(1)


def _give_way(port: int) -> None:
    """Accept no further connections, and let each answer close its own, because another worker replaces this one."""
    PERSISTENCE.ends = True
    with suppress(OSError):
        stop_accepting(port)


def _spare_what_stays() -> None:
    """Let the garbage collector ignore existing objects, and run less often.

    It would scan all of them repeatedly, although requests create almost no cycles: that took a tenth of the time of a
    change.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


def _end_with(main: int | None) -> None:
    """End this process normally once its parent is no longer the process ``main``.

    A worker whose main process was killed would continue to serve and hold the port, without a way to stop it.
    """
    while os.getppid() == main:
        time.sleep(1)
    with suppress(OSError, ValueError):
        log.logger.error("main_process_gone", pid=os.getpid(), main=main)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE)
    os._exit(1)
