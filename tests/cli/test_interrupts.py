"""Interrupts: whenever Ctrl-C comes, a command ends with the exit code 130, and without a traceback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from normata.records.kinds import Label
from tests import stored
from tests.cli.commands import PATIENCE, bundle_file
from tests.databases import open_url
from tests.server import reserved_port
from tests.world import ALPHA

# Runs commands, each in a process of its own, and interrupts each after its delay. What takes long to import is
# imported before, unless that is to be interrupted as well. Forking has a part in Python that loses interrupts.
INTERRUPTING = """
import json, os, signal, sys, time
from normata.__main__ import main
prepared, runs = json.loads(sys.argv[1])
if prepared:
    from normata.cli import events, main as _
    import normata.events.stream, normata.operations, normata.core.schema.migrations, normata.wiring
    import normata.bundle.loading, normata.bundle.reading
    import normata.core.db.postgresql.database, normata.core.db.sqlite.database
    events._PAUSE = 0  # so that it is nearly always in the middle of a question to the database
codes = []
for delay, command in runs:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    child = os.fork()
    if child == 0:
        sys.argv = ["normata", *command]
        code = 0
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
            main()
        except SystemExit as end:
            code = end.code
        except KeyboardInterrupt:
            code = 130  # before it began
        os._exit(code)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    time.sleep(delay)
    os.kill(child, signal.SIGINT)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print()
print(json.dumps(codes))
"""


def interrupted(runs: list[tuple[float, list[object]]], *, prepared: bool = True) -> list[int]:
    """The exit codes of commands that are interrupted after these delays, without a word."""
    given = json.dumps([prepared, [(delay, [str(word) for word in command]) for delay, command in runs]])
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTING, given], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    codes: list[int] = json.loads(done.stdout.splitlines()[-1])
    return codes


@pytest.mark.long
def test_whatever_the_moment(database_url: str) -> None:
    """While it connects, in the middle of a statement, and between two."""
    command: list[object] = ["events", ALPHA, "--follow", "--database", database_url]
    assert interrupted([(0.005 * number, command) for number in range(30)]) == [130] * 30


def test_while_it_is_still_imported(sqlite_url: str) -> None:
    command: list[object] = ["events", ALPHA, "--follow", "--database", sqlite_url]
    delays = [0.02, 0.06, 0.1, 0.15, 0.2, 0.3]
    assert interrupted([(delay, command) for delay in delays], prepared=False) == [130] * len(delays)


IN_A_FINALIZER = """
import signal, time
from normata.__main__ import main
from normata.cli import main as commands
class Finalized:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
def work():
    Finalized()
    time.sleep(60)
commands.main = work
main()
"""


def test_in_the_middle_of_a_finalizer() -> None:
    """Python only reports what is raised there."""
    done = subprocess.run(
        [sys.executable, "-c", IN_A_FINALIZER], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.long
def test_an_interrupted_load_changes_all_or_nothing(database_url: str, folder: Path) -> None:
    """It is done, or interrupted; and what it has not done is not there."""
    runs: list[tuple[float, list[object]]] = []
    for number in range(8):
        names = [f"of-{number}-{one}" for one in range(400)]
        labels = [{"id": name, "organizationId": ALPHA, "name": name} for name in names]
        file = bundle_file(folder, {"labels": labels}, f"{number}.json")
        runs.append((0.02 + 0.04 * number, ["load", file, "--database", database_url]))
    codes = interrupted(runs)
    with closing(open_url(database_url)) as database:
        found = Counter(row["id"].partition("-")[2].partition("-")[0] for row in stored.rows(database, Label))
    for number, code in enumerate(codes):
        assert (code, found[str(number)]) in ((130, 0), (130, 400), (0, 400))
    assert 130 in codes


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, 2])
def test_a_server_that_only_just_starts_ends_in_order(sqlite_url: str, workers: int) -> None:
    """Ctrl-C goes to all processes, also to workers that do not handle it yet."""
    with (
        reserved_port() as port,
        subprocess.Popen(
            [sys.executable, "-m", "normata", "serve", "--port", str(port), "--workers", str(workers)],
            env=os.environ | {"NORMATA_DATABASE_URL": sqlite_url},
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as server,
    ):
        try:
            assert server.stderr is not None
            assert "serving" in server.stderr.readline()
            began = time.monotonic()
            os.killpg(server.pid, signal.SIGINT)
            _, rest = server.communicate(timeout=PATIENCE)
            assert (server.returncode, rest) == (0, "")
            assert time.monotonic() - began < 9, "no worker had to be killed, which takes ten seconds"
        finally:
            server.kill()
