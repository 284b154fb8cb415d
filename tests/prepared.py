"""The program, forked from a process that has imported it already.

To start a Normata process takes a second of a processor, nearly all of it for imports. So each process that runs tests
has a prepared process (:mod:`tests.forking`), which imports once, and forks for every start. What is forked runs the
installed script, with the arguments, environment, folder and standard streams that it is given, and ends as it does.
Servers with several workers have a prepared process of their own: by the first import of the metrics it is settled
whether they are kept in files.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from tests.forking import RUNNING, STATE

_ROOT = Path(__file__).parents[1]
_SETTINGS = ("NORMATA_", "OTEL_", "PROMETHEUS_")  # what imports must not read: each start has its own


class Normata(subprocess.Popen[Any]):
    """``subprocess.Popen`` for the program: the script comes first, as always. Not for tests of the start itself."""

    _keeps_metrics_in_files = False

    def _execute_child(self, *options: Any) -> None:
        """Have the prepared process fork. Python's own forks and executes here."""
        arguments, executable, preexec_fn, close_fds, pass_fds, cwd, environment, _, _, shell, *rest = options
        *ends, _, gid, gids, uid, umask, session, group = rest
        p2cread, _, _, c2pwrite, _, errwrite = ends
        if any((executable, preexec_fn, pass_fds, shell, gid, gids, uid)) or not close_fds or umask >= 0 or group != -1:
            raise NotImplementedError("the prepared process does not do this")
        given = [ours if theirs == -1 else theirs for ours, theirs in enumerate((p2cread, c2pwrite, errwrite))]
        request = json.dumps(
            {
                "arguments": [os.fspath(argument) for argument in arguments],
                "environment": _texts(os.environ if environment is None else environment),
                "folder": os.fspath(cwd or Path.cwd()),
                "umask": _umask(),
                "session": session,
            }
        )
        self._lock = threading.Lock()
        self._own, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(_prepared[self._keeps_metrics_in_files].socket(), [b"."], [theirs.fileno(), *given])
        self._own.sendall(request.encode())
        self._own.shutdown(socket.SHUT_WR)
        self._close_pipe_fds(*ends)  # type: ignore[attr-defined] # it has no types
        self.pid, status = self._state()
        if status != RUNNING:
            raise RuntimeError(f"the program was not started: {self.args!r}")
        self._child_created = True

    def _state(self) -> tuple[int, int]:
        """The next that is told of the process."""
        told = self._own.recv(STATE.size, socket.MSG_WAITALL)
        if len(told) < STATE.size:
            raise RuntimeError("the prepared process has ended")
        return STATE.unpack(told)

    def _internal_poll(self, *_: object, **__: object) -> int | None:
        """The exit code, if it has ended. Python's own asks the system, which answers a process's parent alone."""
        with self._lock:
            if self.returncode is None and wait([self._own], 0):
                with self._own:
                    self.returncode = os.waitstatus_to_exitcode(self._state()[1])
            return self.returncode

    def _wait(self, timeout: float | None) -> int:
        """The exit code, once it has ended."""
        if self._internal_poll() is None and not wait([self._own], timeout):
            assert timeout is not None
            raise subprocess.TimeoutExpired(self.args, timeout)
        code = self._internal_poll()
        assert code is not None
        return code


class SeveralWorkers(Normata):
    """As :class:`Normata`, for a server with several workers."""

    _keeps_metrics_in_files = True


def run(
    arguments: Sequence[str | os.PathLike[str]], timeout: float, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run the program to its end. What it prints is kept, unless ``options``, which are Popen's, say otherwise."""
    kept: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with Normata(arguments, **kept | options) as process:
        try:
            output, errors = process.communicate(timeout=timeout)
        finally:
            process.kill()  # where it has not ended by itself
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def starting(workers: int, environment: Mapping[str, str]) -> type[subprocess.Popen[Any]]:
    """What starts a server: a process of its own, where settings decide about what is imported."""
    if any(name == "NORMATA_TRACING" or name.startswith("OTEL_") for name in environment):
        return subprocess.Popen
    return Normata if workers == 1 else SeveralWorkers


def end() -> None:
    """End the prepared processes, if there are any."""
    for prepared in _prepared.values():
        prepared.end()


class _Prepared:
    """A prepared process of this process, made when it is first needed."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._lock = threading.Lock()
        self._started: tuple[socket.socket, subprocess.Popen[bytes]] | None = None

    def socket(self) -> socket.socket:
        """Where requests go. They wait until everything has been imported."""
        with self._lock:
            if self._started is None or self._started[1].poll() is not None:
                ours, theirs = socket.socketpair()
                with theirs:
                    process = subprocess.Popen(
                        [sys.executable, "-m", "tests.forking", str(theirs.fileno())],
                        cwd=_ROOT,
                        env=self._given(),
                        pass_fds=[theirs.fileno()],
                        stdin=subprocess.DEVNULL,
                    )
                self._started = ours, process
            return self._started[0]

    def _given(self) -> dict[str, str]:
        others = {name: value for name, value in os.environ.items() if not name.startswith(_SETTINGS)}
        return {**others, **self._environment}

    def end(self) -> None:
        """End it by closing its socket."""
        with self._lock:
            if self._started is None:
                return
            ours, process = self._started
            self._started = None
        ours.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


# By whether metrics are kept in files. Each start names a folder for them; here it matters only that there is one.
_prepared = {False: _Prepared({}), True: _Prepared({"PROMETHEUS_MULTIPROC_DIR": "."})}


def _texts(environment: Mapping[str, Any]) -> dict[str, str]:
    """An environment as the system takes it. Raises TypeError."""
    return {name: os.fsdecode(value) for name, value in environment.items()}


def _umask() -> int:
    """The umask of this process, which only tells it to who sets another."""
    umask = os.umask(0o077)
    os.umask(umask)
    return umask
