"""``normata serve`` as processes: started, watched, and ended by their ids."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, redirect_stderr, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from typing import Any
from unittest import mock

import httpx2
import pytest

from normata.cli.main import main
from tests import prepared
from tests.server import PLAIN, SCRIPT, reserved_port

PATIENCE = 60.0  # seconds before a wait is given up


def environment(url: str, **settings: str) -> dict[str, str]:
    """The environment of these tests with no settings but these, and the store of files."""
    others = {name: value for name, value in os.environ.items() if not name.startswith(("NORMATA_", "PROMETHEUS_"))}
    files = {"NORMATA_FILES_URL": os.environ["NORMATA_FILES_URL"]}  # those of the world
    return others | {"NORMATA_DATABASE_URL": url} | files | settings


def wait_for(condition: Callable[[], bool]) -> None:
    """Return once the condition holds."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        threading.Event().wait(0.02)


def run(url: str, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """One command, to its end."""
    return prepared.run([SCRIPT, *arguments], PATIENCE, env=environment(url, **settings), cwd="/")


def run_here(url: str, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """As :func:`run`, but in this process: for a command that refuses to do anything.

    To start one takes half a second of a processor, most of it for imports.
    """
    command = ["normata", *arguments]
    with (
        mock.patch.dict(os.environ, environment(url, **settings), clear=True),
        mock.patch.object(sys, "argv", command),
        redirect_stdout(StringIO()) as output,
        redirect_stderr(StringIO()) as errors,
        pytest.raises(SystemExit) as ended,
    ):
        main()
    assert isinstance(ended.value.code, int)
    return subprocess.CompletedProcess(command, ended.value.code, output.getvalue(), errors.getvalue())


class Processes:
    """A server in a process group of its own, so that all of its processes can be counted and ended by id.

    One that is ``installed`` is started as users start it, and is not forked from a prepared process.
    """

    def __init__(
        self,
        url: str,
        log: Path,
        workers: int,
        host: str = "127.0.0.1",
        *,
        installed: bool = False,
        **settings: str,
    ) -> None:
        self._stack = ExitStack()
        self.port = self._stack.enter_context(reserved_port())
        self.address = f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"
        self._log = log
        command = [str(SCRIPT), "serve", "--host", host, "--port", str(self.port), "--workers", str(workers)]
        given = environment(url, **settings)
        start = subprocess.Popen if installed else prepared.starting(workers, given)
        with log.open("ab") as output:
            self.process = start(
                command,
                env=given,
                cwd=log.parent,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    @property
    def log(self) -> str:
        """All that it has written to its standard output and error."""
        return self._log.read_text()

    def events(self, name: str) -> list[dict[str, Any]]:
        """The events of this name in the log, in which each line must be an event."""
        return [event for event in map(json.loads, self.log.splitlines()) if event["event"] == name]

    def wait_until_ready(self) -> None:
        """Return once it can serve."""

        def ready() -> bool:
            assert self.process.poll() is None, self.log
            return self.answers()

        wait_for(ready)

    def answers(self) -> bool:
        """Whether it serves now."""
        try:
            return httpx2.get(f"{self.address}/readyz", timeout=5, verify=PLAIN).status_code == 200
        except httpx2.TransportError:
            return False

    def workers(self) -> list[int]:
        """The ids of its worker processes."""
        found = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [int(process_id) for process_id in found]

    def alive(self) -> bool:
        """Whether any of its processes, main or worker, is there."""
        self.process.poll()
        try:
            os.killpg(self.process.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def kill(self) -> None:
        """``kill -9`` of all its processes at once."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)
        self._stack.close()


Serve = Callable[..., Processes]
