"""What is forked from the prepared process is as what is started: how it ends, what it is given, and what it prints."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.prepared import Normata, run
from tests.server import SCRIPT

PATIENCE = 60.0
TELLING = """
import json, os, signal, sys, threading

def is_open(number):
    try:
        os.fstat(number)
    except OSError:
        return False
    return True

told = {
    "arguments": sys.argv[1:],
    "environment": dict(os.environ),
    "folder": os.getcwd(),
    "descriptors": [one for one in range(1_000) if is_open(one)],
    "passed on": os.popen("printf %s \\"$GIVEN\\"").read(),
    "terminal": [stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)],
    "buffers lines": [stream.line_buffering for stream in (sys.stdin, sys.stdout, sys.stderr)],
    "encodings": [(stream.encoding, stream.errors) for stream in (sys.stdin, sys.stdout, sys.stderr)],
    "signals": {one.name: str(signal.getsignal(one)).partition(" at ")[0] for one in signal.Signals},
    "blocked": len(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
    "leads a session": os.getsid(0) == os.getpid(),
    "threads": threading.active_count(),
    "typed": sys.stdin.read(),
    "first place of imports": sys.path[0] in (os.path.dirname(sys.argv[0]), os.path.dirname(sys.executable)),
}
print("on standard error", file=sys.stderr)
print(json.dumps(told))
"""


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], Path]:
    """Writes a script that is run in place of the program."""

    def write(text: str) -> Path:
        path = tmp_path / "script.py"
        path.write_text(text)
        return path

    return write


@pytest.mark.parametrize("session", [False, True])
def test_it_is_given_what_a_started_process_is_given(
    script: Callable[[str], Path], tmp_path: Path, session: bool
) -> None:
    path = script(f"#!{sys.executable}\n{TELLING}")
    path.chmod(0o700)
    options: dict[str, Any] = {
        "env": {"GIVEN": "ä b", "ODD": "\udc80", "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
        "cwd": tmp_path,
        "stdin": subprocess.PIPE,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "start_new_session": session,
    }
    told = []
    for start in (Normata, subprocess.Popen):
        with start([str(path), "one", "Größe"], **options) as process:
            output, errors = process.communicate(b"typed\n", PATIENCE)
        assert (process.returncode, errors) == (0, b"on standard error\n")
        told.append(json.loads(output))
    assert told[0] == told[1]
    assert told[0]["leads a session"] is session
    assert told[0]["typed"] == "typed\n"


@pytest.mark.parametrize(
    ("text", "code", "errors"),
    [
        ("", 0, ""),
        ("raise SystemExit(3)", 3, ""),
        ("raise SystemExit('a sentence')", 1, "a sentence\n"),
        ("import atexit; atexit.register(print, 'at the end')", 0, ""),
        ("import os; os._exit(7)", 7, ""),
        ("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL, ""),
        ("import os; os.kill(os.getpid(), 15)", -signal.SIGTERM, ""),
    ],
)
def test_it_ends_as_it_likes(script: Callable[[str], Path], text: str, code: int, errors: str) -> None:
    done = run([script(text)], PATIENCE)
    assert (done.returncode, done.stderr) == (code, errors)
    assert done.stdout == ("at the end\n" if "atexit" in text else "")


def test_what_nobody_catches_is_told_by_a_traceback(script: Callable[[str], Path]) -> None:
    done = run([script("print('so far')\nraise ValueError('broken')")], PATIENCE)
    assert (done.returncode, done.stdout) == (1, "so far\n")
    assert done.stderr.startswith("Traceback (most recent call last):\n")
    assert done.stderr.endswith("ValueError: broken\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_it_can_be_ended_and_waited_for(script: Callable[[str], Path], number: signal.Signals) -> None:
    process = Normata([script("import time; print('ready', flush=True); time.sleep(60)")], stdout=subprocess.PIPE)
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
        process.send_signal(number)
        assert process.wait(PATIENCE) == process.poll() == -number
        with pytest.raises(ProcessLookupError):
            os.kill(process.pid, 0)


def test_an_interrupt_is_one(script: Callable[[str], Path]) -> None:
    text = "import time\ntry: print('ready', flush=True); time.sleep(60)\nexcept KeyboardInterrupt: raise SystemExit(5)"
    with Normata([script(text)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 5


def test_many_run_at_once_and_none_keeps_what_is_anothers(script: Callable[[str], Path]) -> None:
    """A pipe whose other end another process held would never come to its end."""
    path = script("import sys; print(sys.argv[1]); sys.stdout.close(); sys.stdin.read()")
    opened = [
        Normata([path, str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for number in range(8)
    ]
    for number, process in reversed(list(enumerate(opened))):
        with process:
            assert process.stdout is not None
            assert process.stdout.readline() == f"{number}\n"
            assert process.communicate(timeout=PATIENCE)[0] == ""
        assert process.returncode == 0


def test_a_terminal_is_one(script: Callable[[str], Path]) -> None:
    ours, theirs = pty.openpty()
    path = script("import sys; print(*(one.isatty() for one in (sys.stdin, sys.stdout, sys.stderr)), input())")
    os.write(ours, b"typed\n")
    with Normata([path], stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        assert process.wait(PATIENCE) == 0
    shown = b""
    with suppress(OSError):  # the other end is closed
        while piece := os.read(ours, 4_096):
            shown += piece
    os.close(ours)
    assert shown.endswith(b"True True True typed\r\n")


def test_what_is_random_differs(script: Callable[[str], Path]) -> None:
    path = script(
        "import random, uuid_utils, uuid; print(random.random(), str(uuid_utils.uuid7())[-12:], uuid.uuid4())"
    )
    one, other = run([path], PATIENCE).stdout.split(), run([path], PATIENCE).stdout.split()
    assert set(one).isdisjoint(other)


def test_what_cannot_be_started_leaves_the_others_alone(script: Callable[[str], Path]) -> None:
    path = script("print('here')")
    with pytest.raises(TypeError):
        run([path], PATIENCE, env={"TWELVE": 12})
    assert run([path], PATIENCE).stdout == "here\n"


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "code"), [(["--version"], 0), (["--help"], 0), (["check"], 1), (["assess", "nothing"], 2)], ids=str
)
def test_the_program_says_the_same(tmp_path: Path, arguments: list[str], code: int) -> None:
    forked = run([SCRIPT, *arguments], PATIENCE, cwd=tmp_path)
    started = subprocess.run([SCRIPT, *arguments], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (forked.returncode, forked.stdout, forked.stderr) == (code, started.stdout, started.stderr)
    assert started.returncode == code
    assert forked.stdout or forked.stderr
