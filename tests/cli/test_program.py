"""The installed program, as a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.commands import GAMMA, NORMATA, bundle_file, installed
from tests.databases import on_sqlite
from tests.server import reserved_port
from tests.world import ALPHA


@pytest.mark.long
def test_the_installed_program(folder: Path) -> None:
    done = installed("load", bundle_file(folder, GAMMA), stdout=subprocess.PIPE)
    assert (done.returncode, done.stdout, done.stderr) == (0, "organizations: 1 new, 0 changed, 0 unchanged\n", "")
    done = installed("load", "absent.json", stdout=subprocess.PIPE)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "absent.json: cannot be read: No such file or directory\nnormata: 1 fault found, nothing was changed\n"
    )


LATE = {
    "help": (
        "sqlalchemy",
        "pydantic",
        "rich",
        "alembic",
        "starlette",
        "structlog",
        "normata.settings",
        "importlib.metadata",
    ),
    # With several workers, the metrics find out at their first import that they are to be kept in files.
    "serve": ("rich", "alembic", "starlette", "structlog", "normata.tables", "prometheus_client"),
    "token": ("rich", "alembic", "starlette", "structlog", "normata.tables", "normata.core.schema.paging"),
}
IMPORTING = """
import json, sys
from normata.cli import main
from normata.core.http import server
server.run = lambda settings, **_: None
loaded = {}
for command in json.loads(sys.argv[1]):
    main.app(command, standalone_mode=False)
    loaded[command[0]] = sorted(sys.modules)
print(json.dumps(loaded), file=sys.stderr)
"""


@on_sqlite
@pytest.mark.parametrize("command", ["export-records", "import-records"])
def test_a_register_in_a_process_of_its_own(folder: Path, database_url: str, command: str) -> None:
    """It knows the tables that columns refer to: within a test, other modules have imported them."""
    (folder / "in.csv").write_text("id,nope\n,New\n", "utf-8")
    file = "-" if command == "export-records" else "in.csv"
    done = subprocess.run(
        [sys.executable, "-m", "normata", command, ALPHA, "vendor-assessments", file],
        env=os.environ | {"NORMATA_DATABASE_URL": database_url},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "unexpected error" not in done.stderr
    if file == "-":
        assert (done.returncode, done.stdout.startswith("\ufeffid,")) == (0, True)
    else:
        assert "row 1, nope: is no column" in done.stderr


@on_sqlite
def test_what_is_quick_to_start_imports_little(database_url: str) -> None:
    """A command imports what it needs. What only the workers need, the process that starts them does not import."""
    with reserved_port() as port:
        commands = [["serve", "--port", str(port)], ["token", "list"]]
        done = subprocess.run(
            [sys.executable, "-c", IMPORTING, json.dumps(commands)],
            env=os.environ | {"NORMATA_DATABASE_URL": database_url},
            capture_output=True,
            text=True,
            check=True,
        )
    for command, modules in json.loads(done.stderr.splitlines()[-1]).items():
        assert set(LATE[command]).isdisjoint(modules)
    listed = subprocess.run(
        [sys.executable, "-c", "import sys; from normata.cli import main; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(LATE["help"]).isdisjoint(listed.stdout.split())


@pytest.mark.long
@pytest.mark.parametrize("arguments", [("dump", ALPHA), ("check",)], ids=" ".join)
@on_sqlite
def test_a_reader_that_has_gone_is_no_reason_for_noise(database_url: str, arguments: tuple[str, ...]) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    try:
        done = installed(*arguments, "--database", database_url, stdout=theirs)
    finally:
        os.close(theirs)
    assert done.stderr == ""
    assert done.returncode == 1


@pytest.mark.long
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full to write to")
@on_sqlite
def test_a_full_disk_is_a_failure_told_in_a_sentence(database_url: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = installed("dump", ALPHA, "--database", database_url, stdout=full)
    assert done.returncode == 1
    assert [line[:9] for line in done.stderr.splitlines()] == ["normata: "]


@pytest.mark.long
@on_sqlite
def test_a_dump_is_utf_8_whatever_the_locale(database_url: str) -> None:
    environment = os.environ | {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    done = subprocess.run(
        [str(NORMATA), "dump", ALPHA, "--database", database_url],
        env=environment,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert "Größe ÉTÉ" in done.stdout.decode("utf-8")
