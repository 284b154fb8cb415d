"""The prepared process: it has imported Normata, and forks for each start of the program. See :mod:`tests.prepared`.

Its only argument is the descriptor of a socket. Each byte from there comes with four descriptors: a socket of the new
process's own, and its standard input, output and error. On its own socket is the request, as JSON, up to the end. The
new process answers with its id once nothing but the program is left to run, and the prepared process with the status
once it has ended.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import struct
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

STATE = struct.Struct("!ii")  # the id of a process, and its status as waitpid has it
RUNNING = -1  # in place of a status
# Tracing is configured by the environment while it is imported. Migrations are read as files, by Alembic.
_LATE = ("normata.__main__", "normata.core.http.tracing", "normata.core.schema.migrations.")


def main() -> None:
    """Serve until the other end of the socket is closed; in a forked process, run the program."""
    control = socket.socket(fileno=int(sys.argv[1]))
    sys.path[0] = str(Path(sys.executable).parent)  # where Python looks first when it runs the script
    _import_all()
    # What is here stays. A collection in a forked process would copy all of it.
    gc.collect()
    gc.freeze()
    request = _serve(control)
    sys.argv = request["arguments"]
    runpy.run_path(sys.argv[0], run_name="__main__")


def _import_all() -> None:
    import normata.__main__
    import normata.core.schema.migrations.upgrading

    for module in pkgutil.walk_packages(normata.__path__, "normata."):
        if not module.name.startswith(_LATE):
            importlib.import_module(module.name)
    # What is imported late by what they use.
    for name in ("asyncpg", "rich.console", "sqlalchemy.dialects.postgresql.asyncpg", "sqlalchemy.dialects.sqlite"):
        importlib.import_module(name)


def _serve(control: socket.socket) -> dict[str, Any]:
    """Fork for every request. Returns in the forked processes alone, with the request."""
    children: dict[int, socket.socket] = {}
    woken, waking = socket.socketpair()
    for end in (woken, waking):
        end.setblocking(False)
    signal.set_wakeup_fd(waking.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)  # it wakes, which is all
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for who runs the tests, who then closes the socket
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup it is ignored, and servers would ignore it, too
    while True:
        ready, _, _ = select.select([control, woken], [], [])
        if woken in ready:
            woken.recv(4_096)
            _tell_who_ended(children)
        if control not in ready:
            continue
        byte, descriptors, _, _ = socket.recv_fds(control, 1, 4)
        if not byte:
            _leave()
        own = socket.socket(fileno=descriptors[0])
        request: dict[str, Any] = json.loads(_read(own))
        process = os.fork()
        if process == 0:
            # Their descriptors are closed below. What cleans up a socket later would close another that has its number.
            for opened in (control, woken, waking, *children.values()):
                opened.detach()
            _become(request, own, descriptors[1:])
            return request
        children[process] = own
        for descriptor in descriptors[1:]:
            os.close(descriptor)


def _leave() -> NoReturn:
    """End at once: the processes that were forked go on, as those of a shell do."""
    os._exit(0)


def _read(own: socket.socket) -> bytes:
    """All that comes from a socket."""
    pieces = []
    while piece := own.recv(65_536):
        pieces.append(piece)
    return b"".join(pieces)


def _tell_who_ended(children: dict[int, socket.socket]) -> None:
    while children:
        process, status = os.waitpid(-1, os.WNOHANG)
        if process == 0:
            return
        with children.pop(process) as own:
            try:
                own.sendall(STATE.pack(process, status))
            except OSError:
                continue  # nobody waits for it any more


def _become(request: dict[str, Any], own: socket.socket, standard: list[int]) -> None:
    """Be as a process that has only just been started, and say so."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    if request["session"]:
        os.setsid()
    for number, descriptor in enumerate(standard):
        os.dup2(descriptor, number)
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    os.umask(request["umask"])
    os.chdir(request["folder"])
    _open_streams()
    answering = own.detach()
    os.write(answering, STATE.pack(os.getpid(), RUNNING))
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))


def _open_streams() -> None:
    """The standard streams anew, as Python opens them: with lines for a buffer on a terminal, and on standard error."""
    streams: list[Any] = [
        open(number, mode, buffering, was.encoding, was.errors, "\n", closefd=False)  # noqa: SIM115 - open to the end
        for number, mode, buffering, was in ((0, "r", -1, sys.stdin), (1, "w", -1, sys.stdout), (2, "w", 1, sys.stderr))
    ]
    sys.stdin, sys.stdout, sys.stderr = streams


if __name__ == "__main__":
    main()
