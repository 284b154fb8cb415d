"""The programs that operators run beside PostgreSQL, and each as a process of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.failover.cluster import children

PATRONI = "NORMATA_TEST_PATRONI"  # names the folder of Patroni's programs
_NEWEST = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
_NO_VARIABLES: Mapping[str, str] = {}


@dataclass(frozen=True)
class Programs:
    """Where each program is."""

    postgres: Path  # the folder of all of the server's programs
    patroni: Path
    etcd: Path
    haproxy: Path
    pgbouncer: Path

    def versions(self) -> dict[str, str]:
        """What each program says of itself."""
        asked: dict[str, list[str | Path]] = {
            "PostgreSQL": [self.postgres / "postgres", "--version"],
            "Patroni": [self.patroni, "--version"],
            "etcd": [self.etcd, "--version"],
            "HAProxy": [self.haproxy, "-v"],
            "PgBouncer": [self.pgbouncer, "--version"],
        }
        return {name: _first_number(command) for name, command in asked.items()}


def missing() -> list[str]:
    """The programs that are not here, and how to get them: a sentence each."""
    found = _found()
    how = {
        "postgres": "PostgreSQL is not in /usr/lib/postgresql: install the package postgresql",
        "patroni": f"{PATRONI} does not name a folder with patroni in it: run `make test-patroni`",
        "etcd": "there is no etcd: install the package etcd-server",
        "haproxy": "there is no haproxy: install the package haproxy",
        "pgbouncer": "there is no pgbouncer: install the package pgbouncer",
    }
    return [sentence for name, sentence in how.items() if found[name] is None]


def programs() -> Programs:
    """All programs; none may be missing."""
    return Programs(**{name: path for name, path in _found().items() if path is not None})


def _found() -> dict[str, Path | None]:
    # Debian's folder for servers is in the path of root only.
    path = f"{os.environ.get('PATH', '')}:/usr/sbin"
    patroni = shutil.which("patroni", path=os.environ.get(PATRONI, ""))
    found: dict[str, Path | None] = {"postgres": _NEWEST[-1] if _NEWEST else None}
    found["patroni"] = Path(patroni).absolute() if patroni else None
    for name in ("etcd", "haproxy", "pgbouncer"):
        program = shutil.which(name, path=path)
        found[name] = Path(program) if program else None
    return found


def _first_number(command: Sequence[str | Path]) -> str:
    said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=30).stdout
    return next(word for word in said.split() if word[0].isdigit())


class Part:
    """A process, which says what it has to say in a file."""

    def __init__(
        self, name: str, command: Sequence[str | Path], folder: Path, variables: Mapping[str, str] = _NO_VARIABLES
    ) -> None:
        self.name = name
        self._command = list(command)
        self._folder = folder
        self._variables = dict(variables)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def runs(self) -> bool:
        """Whether it is there; it may hang."""
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> Path:
        """What it has said."""
        return self._folder / f"{self.name}.log"

    def start(self) -> None:
        """Start it. It may take a while until it is of use."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "PATRONI"))}
        who: dict[str, Any] = {"env": environment | self._variables, "cwd": self._folder}
        if os.geteuid() == 0:  # most of the programs refuse to run as root
            who |= {"user": "postgres", "group": "postgres", "extra_groups": ()}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **who)

    def stop(self) -> None:
        """Have it end in good order."""
        if self._process is not None and self.runs:
            self._process.terminate()
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        """Kill it, and not what it has started."""
        self.signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait(10)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to it, and not to what it has started."""
        if self._process is not None and self.runs:
            self._process.send_signal(number)


class RestartedPart(Part):
    """A process that is started again a second after it has ended by itself: ``Restart=on-failure`` of systemd."""

    _minder: threading.Thread | None = None
    _is_wanted = False

    def start(self) -> None:
        """Start it, and mind it from now on."""
        super().start()
        self._is_wanted = True
        if self._minder is None:
            self._minder = threading.Thread(target=self._mind, name=self.name, daemon=True)
            self._minder.start()

    def stop(self) -> None:
        """Have it end in good order, and stay so."""
        self._is_wanted = False
        super().stop()

    def kill(self) -> None:
        """Kill it, and let it be."""
        self._is_wanted = False
        super().kill()

    def _mind(self) -> None:
        while True:
            time.sleep(1)
            if self._is_wanted and not self.runs:
                super().start()


def signal_all(pids: Sequence[int], number: signal.Signals) -> list[int]:
    """Send a signal to processes and to their children, and return which those are."""
    family = list(pids)
    for pid in pids:
        with suppress(ProcessLookupError):
            if number in (signal.SIGSTOP, signal.SIGKILL):
                os.kill(pid, signal.SIGSTOP)  # so that it starts no others meanwhile
        family += children(pid)
    for pid in family:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
    return family
