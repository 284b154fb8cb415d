"""Running commands, and looking at how they ended."""

from __future__ import annotations

import json
import os
import pty
import select
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

from normata.identity.model import Organization
from tests import prepared, stored
from tests.databases import open_url
from tests.world import ALPHA

NORMATA = Path(sys.executable).with_name("normata")
SERVER = "http://127.0.0.1:8000"  # of the application of a test, in this process
PATIENCE = 120.0  # seconds until a command that hangs fails the test


class Done(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


Run = Callable[..., Done]


def complaints(done: Done) -> list[str]:
    """What `check` wrote to standard error, without the warning where the server of the tests lacks an extension."""
    return [line for line in done.err.splitlines() if "the extension pg_trgm" not in line]


def failed(done: Done, code: int = 1) -> str:
    """The sentence that a failed command told: one line on standard error, and nothing else anywhere."""
    assert (done.code, done.out) == (code, "")
    assert "Traceback" not in done.err
    [line] = done.err.splitlines()
    assert line.startswith("normata: ")
    return line.removeprefix("normata: ")


def program(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the program as a process."""
    return prepared.run([NORMATA, *map(str, arguments)], PATIENCE, stdin=subprocess.DEVNULL, **options)


def installed(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the installed program, as users do."""
    return subprocess.run(
        [str(NORMATA), *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENCE,
        check=False,
        **options,
    )


def on_terminal(*arguments: object, typed: str = "") -> tuple[int, str]:
    """Run the program on a terminal, where somebody types: its exit code and all that the terminal got."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "160"}
    process = prepared.Normata(
        [NORMATA, *map(str, arguments)], stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    os.write(ours, typed.encode())
    shown = b""
    end = time.monotonic() + PATIENCE
    try:
        while time.monotonic() < end:
            if not select.select([ours], [], [], 0.1)[0]:
                continue
            with suppress(OSError):  # the other end is closed
                if piece := os.read(ours, 65_536):
                    shown += piece
                    continue
            break
        return process.wait(PATIENCE), shown.decode()
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def bundle_file(folder: Path, document: Any, name: str = "bundle.json") -> Path:
    """A bundle in a file."""
    path = folder / name
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def mode(path: Path) -> int:
    """Who may do what with a file."""
    return path.stat().st_mode & 0o777


LABEL = {"id": "new", "organizationId": ALPHA, "name": "New"}
GAMMA = {"organizations": [{"id": "org-gamma", "name": "Gamma"}]}


def organizations(url: str) -> list[str]:
    """The ids of the organizations in a database."""
    with closing(open_url(url)) as opened:
        return [row["id"] for row in stored.rows(opened, Organization)]


def break_last_array(url: str) -> None:
    """Damage the table that a dump comes to last, so that it fails when most is written."""
    path = Path(url.removeprefix("sqlite:///"))
    with closing(sqlite3.connect(path)) as connection:
        [root] = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'variable'").fetchone()
        [size] = connection.execute("PRAGMA page_size").fetchone()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with path.open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\xff" * size)
