"""When processes of the service die: it heals or ends as a whole, and says so."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.core.http.serving.processes import PATIENCE, Serve, environment, wait_for
from tests.server import reserved_port

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="workers are found in /proc")


def test_a_worker_that_dies_is_replaced_however_often(serve: Serve) -> None:
    """Also the second within seconds, at which Granian itself would end the service."""
    server = serve(2)
    seen = set(server.workers())
    assert len(seen) == 2
    for number in (1, 2):
        victim = server.workers()[0]
        os.kill(victim, signal.SIGKILL)
        wait_for(lambda victim=victim: victim not in server.workers() and len(server.workers()) == 2)  # type: ignore[misc]
        # A worker is there before the line about it is.
        wait_for(lambda number=number: len(server.events("worker_replaced")) == number)  # type: ignore[misc]
        wait_for(server.answers)
        died = server.events("worker_died")
        assert (len(died), died[-1]["pid"], died[-1]["signal"]) == (number, victim, "SIGKILL")
        assert server.events("worker_replaced")[-1]["pid"] in server.workers()
        seen.update(server.workers())
    assert len(seen) == 4
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(PATIENCE) == 0, "what has healed is no failure in the end"
    wait_for(lambda: not server.alive())


def test_workers_that_die_together_are_all_replaced(serve: Serve) -> None:
    server = serve(3)
    victims = set(server.workers())
    for victim in victims:
        os.kill(victim, signal.SIGKILL)
    wait_for(lambda: len(server.workers()) == 3 and not victims & set(server.workers()))
    wait_for(server.answers)
    assert {event["pid"] for event in server.events("worker_died")} == victims


FORKED = """
import os, sys
from normata.core.schema.table import new_id
new_id()
for _ in range(8):
    if os.fork() == 0:
        os.write(1, f"{new_id()}\\n".encode())
        os._exit(0)
    os.wait()
"""


def test_workers_that_share_what_is_imported_make_ids_of_their_own() -> None:
    """What a library would draw by chance must not be the same in each of them."""
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=PATIENCE, check=True)
    by_chance = {line.rpartition("-")[2] for line in done.stdout.split()}
    assert len(by_chance) == 8


@pytest.mark.long
def test_a_worker_that_has_died_is_in_no_gauge(serve: Serve, tmp_path: Path) -> None:
    """The requests that it was answering are answered by nobody."""
    server = serve(2, installed=True, TMPDIR=str(tmp_path))

    def gauges(pid: int) -> list[Path]:
        return list(tmp_path.glob(f"normata-metrics-*/gauge_live*_{pid}.db"))

    wait_for(lambda: all(map(gauges, server.workers())))
    victim = server.workers()[0]
    os.kill(victim, signal.SIGKILL)
    wait_for(lambda: bool(server.events("worker_replaced")))
    assert not gauges(victim)
    (other,) = set(server.workers()) - {server.events("worker_replaced")[0]["pid"]}
    assert gauges(other), "those who live stay"
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(PATIENCE) == 0
    assert not list(tmp_path.glob("normata-metrics-*")), "a server that is stopped leaves nothing behind"


def test_without_the_main_process_workers_end_in_order(serve: Serve) -> None:
    """They would serve on, hold the port, and be stopped by nobody."""
    server = serve(2)
    workers = set(server.workers())
    server.process.kill()
    server.process.wait(PATIENCE)
    wait_for(lambda: not server.alive())
    assert not server.answers()
    gone = server.events("main_process_gone")
    assert {event["pid"] for event in gone} == workers
    assert {event["main"] for event in gone} == {server.process.pid}


BROKEN = """
def create_app():
    raise ValueError("broken")
"""
RUNNING = """
from normata.settings import Settings
from normata.core.http.server import run

run(Settings(), application="broken:create_app")
"""


def test_workers_that_never_start_end_the_service_with_their_reason(sqlite_url: str, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(BROKEN)
    with reserved_port() as port:
        done = subprocess.run(
            [sys.executable, "-c", RUNNING],
            env=environment(sqlite_url, NORMATA_PORT=str(port), NORMATA_WORKERS="2", PYTHONPATH=str(tmp_path)),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    assert (done.returncode, done.stdout) == (1, "")
    events = [json.loads(line) for line in done.stderr.splitlines()]
    reasons = [event["exception"] for event in events if event["event"] == "worker_cannot_start"]
    assert len(reasons) >= 3
    assert all("ValueError: broken" in reason for reason in reasons)
    assert {event["exit_code"] for event in events if event["event"] == "worker_died"} == {1}
    assert "workers_keep_dying" in {event["event"] for event in events}
