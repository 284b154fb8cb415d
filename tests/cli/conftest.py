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
from normata.cli.remote import transport
from tests.cli.commands import SERVER, Done, Run
from tests.client import TestClient
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


@pytest.fixture(params=["database", "server"])
def where(request: pytest.FixtureRequest, database_url: str, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """The option that names the test world: its database, or a server on it, with a token of an owner."""
    if request.param == "database":
        return "--database", database_url
    client: TestClient = request.getfixturevalue("client")
    monkeypatch.setattr(transport, "TRANSPORT", client._transport)
    monkeypatch.setenv("NORMATA_TOKEN", request.getfixturevalue("make_token")("owner"))
    return "--server", SERVER


@pytest.fixture
def run(normata: Run, where: tuple[str, str]) -> Run:
    """Runs a command on the test world, of which it must print the same from its database and from a server."""
    return lambda *arguments: normata(*arguments, *where)
