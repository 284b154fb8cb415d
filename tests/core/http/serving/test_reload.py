"""SIGHUP replaces the workers, and no request notices."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
import sys
import threading
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.conftest import MakeToken
from tests.core.http.serving.processes import PATIENCE, Processes, Serve, environment, wait_for
from tests.databases import on_both
from tests.server import PLAIN, reserved_port
from tests.world import ALPHA

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="workers are found in /proc")

BODY = b'{"organizationId": "%s", "name": "Reloaded"}' % ALPHA.encode()
HEAD = f"""\
POST /labels/ HTTP/1.1
Host: normata
Authorization: Bearer %s
Content-Type: application/json
Content-Length: {len(BODY)}

""".replace("\n", "\r\n")


class Load:
    """Requests without a pause until it is stopped, each on a connection of its own or all on one."""

    def __init__(self, address: str, *, persistent: bool) -> None:
        self._address = address
        self._persistent = persistent
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.answers: list[int] = []
        self.failures: list[str] = []
        self._thread.start()

    def _run(self) -> None:
        with httpx2.Client(base_url=self._address, timeout=PATIENCE, verify=PLAIN) as client:
            headers = {} if self._persistent else {"Connection": "close"}
            while not self._stop.wait(0.002):
                try:
                    self.answers.append(client.get("/livez", headers=headers).status_code)
                except httpx2.TransportError as error:
                    self.failures.append(repr(error))

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()


def events(server: Processes, name: str) -> list[dict[str, Any]]:
    """The events of this name in the log, in which a command may also warn of the database in plain text."""
    found = [json.loads(line) for line in server.log.splitlines() if line.startswith("{")]
    return [event for event in found if event["event"] == name]


def listens(worker: int, port: int) -> bool:
    """Whether a process has a socket that listens on the port."""
    own = {str(one.readlink()) for one in Path(f"/proc/{worker}/fd").iterdir() if one.is_symlink()}
    for line in Path(f"/proc/{worker}/net/tcp").read_text().splitlines()[1:]:
        _, local, _, state, *others = line.split()
        if state == "0A" and int(local.partition(":")[2], 16) == port and f"socket:[{others[5]}]" in own:
            return True
    return False


def test_a_worker_that_is_replaced_takes_no_further_connection(serve: Serve) -> None:
    """It would close one whose request it has not read when it ends."""
    server = serve(2)
    before = server.workers()
    wait_for(lambda: all(listens(worker, server.port) for worker in before))
    server.process.send_signal(signal.SIGHUP)
    wait_for(lambda: len(events(server, "worker_reloaded")) == 2)
    after = set(server.workers()) - set(before)
    assert len(after) == 2
    wait_for(lambda: not any(listens(worker, server.port) for worker in before))
    assert set(before) <= set(server.workers()), "they are still there"
    wait_for(lambda: all(listens(worker, server.port) for worker in after))
    assert server.answers()


@pytest.mark.long
@on_both
def test_sighup_replaces_the_workers_without_a_failed_request(serve: Serve, make_token: MakeToken) -> None:
    token = make_token("editor")
    server = serve(2)
    before = set(server.workers())
    loads = [Load(server.address, persistent=number % 2 == 0) for number in range(2)]
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as in_flight:
        in_flight.sendall((HEAD % token).encode() + BODY[:5])
        server.process.send_signal(signal.SIGHUP)
        wait_for(lambda: len(events(server, "worker_reloaded")) == 2)
        in_flight.sendall(BODY[5:])
        answer = in_flight.recv(65_536)
        assert answer.startswith(b"HTTP/1.1 201"), answer
        assert b"\r\nconnection: close\r\n" in answer.lower()
    wait_for(lambda: not before & set(server.workers()))
    for load in loads:
        load.stop()
        assert not load.failures
        assert set(load.answers) == {200}
        assert len(load.answers) > 100
    assert len(server.workers()) == 2
    assert {event["replaced"] for event in events(server, "worker_reloaded")} == before
    assert {event["pid"] for event in events(server, "worker_reloaded")} == set(server.workers())
    assert not events(server, "worker_died")

    victim = server.workers()[0]
    os.kill(victim, signal.SIGKILL)
    wait_for(lambda: bool(events(server, "worker_replaced")))
    wait_for(server.answers)
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(PATIENCE) == 0, server.log
    wait_for(lambda: not server.alive())
    assert "Traceback" not in server.log


def test_sigterm_ends_also_the_workers_that_are_being_replaced(serve: Serve) -> None:
    server = serve(2)
    server.process.send_signal(signal.SIGHUP)
    wait_for(lambda: bool(server.events("worker_reloaded")))
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(PATIENCE) == 0, server.log
    wait_for(lambda: not server.alive())


FAILING = """
import os
from normata.app import create_app as create

def create_app():
    if os.path.exists("broken"):
        raise ValueError("broken")
    return create()
"""
RUNNING = """
from normata.core.http.server import run
from normata.settings import Settings

run(Settings(), application="failing:create_app")
"""


@pytest.mark.long
def test_workers_serve_on_where_new_ones_do_not_start(sqlite_url: str, tmp_path: Path) -> None:
    (tmp_path / "failing.py").write_text(FAILING)
    log = tmp_path / "log"
    with reserved_port() as port, log.open("wb") as output:
        address = f"http://127.0.0.1:{port}"
        process = subprocess.Popen(
            [sys.executable, "-c", RUNNING],
            env=environment(sqlite_url, NORMATA_PORT=str(port), PYTHONPATH=os.pathsep.join(["", *sys.path])),
            cwd=tmp_path,
            stderr=output,
        )
        try:
            wait_for(lambda: alive(address))
            (tmp_path / "broken").touch()
            process.send_signal(signal.SIGHUP)
            wait_for(lambda: '"reload_failed"' in log.read_text())
            assert "ValueError: broken" in log.read_text()
            assert alive(address)
            (tmp_path / "broken").unlink()
            process.send_signal(signal.SIGHUP)
            wait_for(lambda: '"worker_reloaded"' in log.read_text())
            assert alive(address)
            process.terminate()
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()
            process.wait()


def alive(address: str) -> bool:
    with suppress(httpx2.TransportError):
        return httpx2.get(f"{address}/livez", verify=PLAIN).status_code == 200
    return False


HUNG_UP = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, "-m", "normata", *sys.argv[1:]])
"""


def test_closing_its_terminal_ends_the_server(sqlite_url: str, tmp_path: Path) -> None:
    """It would serve on, without anybody to stop it."""
    main, terminal = pty.openpty()
    with closing(os.fdopen(main, "rb", buffering=0)) as window, reserved_port() as port:
        with (tmp_path / "log").open("wb") as log, os.fdopen(terminal, "rb", buffering=0) as stdin:
            process = subprocess.Popen(
                [sys.executable, "-c", HUNG_UP, "serve", "--port", str(port)],
                env=environment(sqlite_url),
                stdin=stdin,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            wait_for(lambda: "serving" in (tmp_path / "log").read_text())
            window.close()
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()
            process.wait()
