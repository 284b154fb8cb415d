"""What the tests of the command line share."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import typer.main

from normata.cli import main as cli
from tests.cli.commands import Done, Run
from tests.files import bucket_server

object_store_server, bucket_url = bucket_server.object_store_server, bucket_server.bucket_url


@pytest.fixture(scope="session", autouse=True)
def commands() -> Iterator[None]:
    """Makes the commands once, as a process does: to make them takes longer than to run most of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", cache(typer.main.get_command))
        yield


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, file_store: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: empty, with nothing in the environment that Normata would read but where files are."""
    for name in list(os.environ):
        if name.startswith("NORMATA_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("NORMATA_ENV_FILE", "")  # not that of an installation on this machine
    monkeypatch.setenv("NORMATA_FILES_URL", f"file://{file_store}")
    monkeypatch.setenv("COLUMNS", "160")
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def normata(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command through the program's own entry point, error handling and all."""

    def run(*arguments: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["normata", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        code = ended.value.code
        return Done(code if isinstance(code, int) else int(code is not None), *capsys.readouterr())

    return run
