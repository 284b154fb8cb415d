"""The file of settings that the service and the commands share, and secrets in files."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import httpx2
import pytest

from normata.cli import env_file
from normata.errors import BadSetting
from tests.cli.commands import program
from tests.databases import on_both
from tests.prepared import Normata
from tests.server import PLAIN, SCRIPT, reserved_port, wait_until_ready

pytestmark = pytest.mark.long

LINK = ("user", "link", "editor@alpha.example")
PUBLIC = "NORMATA_PUBLIC_URL=https://normata.example.org\n"


def written(folder: Path, text: str, name: str = "normata.env") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def run(*arguments: object, variables: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command as a process: it changes its environment."""
    return program(*arguments, env=os.environ | (variables or {}))


@on_both
@pytest.mark.parametrize("place", ["before", "after", "variable"])
def test_a_link_is_for_the_address_of_the_file(database_url: str, folder: Path, place: str) -> None:
    file = str(written(folder, f"# shared\n\n{PUBLIC}NORMATA_DATABASE_URL={database_url}\n"))
    arguments = {"before": ("--env-file", file, *LINK), "after": (*LINK, "--env-file", file), "variable": LINK}[place]
    done = run(*arguments, variables={"NORMATA_ENV_FILE": file} if place == "variable" else {})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("https://normata.example.org/sign-in/link/?secret=")


@pytest.mark.parametrize("command", ["member", "user"])
def test_an_invitation_is_for_the_address_of_the_file(sqlite_url: str, folder: Path, command: str) -> None:
    invite = (command, "invite", "new@alpha.example", "--organization", "org-alpha", "--database", sqlite_url)
    done = run(*invite, "--env-file", written(folder, PUBLIC))
    assert done.stdout.startswith("https://normata.example.org/"), done.stderr


def test_the_environment_and_options_come_before_the_file(sqlite_url: str, folder: Path) -> None:
    file = written(folder, f"{PUBLIC}NORMATA_DATABASE_URL=sqlite:///absent.db\n")
    variables = {"NORMATA_PUBLIC_URL": "https://other.example.org"}
    done = run(*LINK, "--env-file", file, "--database", sqlite_url, variables=variables)
    assert done.stdout.startswith("https://other.example.org/"), done.stderr


def test_an_empty_variable_stands_for_no_file(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(env_file, "DEFAULT", written(folder, "no settings"))
    monkeypatch.setenv("NORMATA_ENV_FILE", "")
    env_file.load()
    monkeypatch.delenv("NORMATA_ENV_FILE")
    with pytest.raises(BadSetting):
        env_file.load()


def test_the_default_file_is_read_where_it_is(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(env_file, "DEFAULT", folder / "normata.env")
    monkeypatch.delenv("NORMATA_ENV_FILE")
    env_file.load()
    assert "NORMATA_PUBLIC_URL" not in os.environ
    written(folder, PUBLIC)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "environ", dict(os.environ))
        env_file.load()
        assert os.environ["NORMATA_PUBLIC_URL"] == "https://normata.example.org"


VALUES = {
    "A": "plain",
    "B": "with blanks and # and = and ' and \"",
    "C": "${HOME} $A",
    "D": "",
    "E": " in quotes ",
    "F": "it's",
    "PGPASSFILE": "/etc/normata/pgpass",
}
TEXT = f"""\
; systemd takes this for a comment
  # and this
A={VALUES["A"]}
B = never
B={VALUES["B"]}\t
C={VALUES["C"]}
D=
E='{VALUES["E"]}'
F="{VALUES["F"]}"
PGPASSFILE=/etc/normata/pgpass
"""


def test_values_are_taken_as_they_are(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    environment: dict[str, str] = {}
    monkeypatch.setattr(os, "environ", environment)
    env_file.load(written(folder, TEXT.replace("B = never\n", "").replace("\n", "\r\n")))
    assert environment == VALUES


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("export A=1", "it must be NAME=value"),
        ("A", "it must be NAME=value"),
        ("A = 1", "it must be NAME=value"),
        ("A-B=1", "it must be NAME=value"),
        ("=1", "it must be NAME=value"),
        ("A=secret\\", "must not have a backslash"),
        ("A='secret", "in one pair of quotes as a whole"),
        ('A="secret" <a@b>', "in one pair of quotes as a whole"),
        ("A='", "in one pair of quotes as a whole"),
    ],
)
def test_what_others_read_otherwise_is_refused(folder: Path, line: str, reason: str) -> None:
    file = written(folder, f"# first\n{line}\n")
    with pytest.raises(BadSetting, match=r"normata\.env, line 2: ") as caught:
        env_file.load(file)
    assert reason in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_file_that_cannot_be_read_ends_the_command(folder: Path) -> None:
    for file, reason in ((folder / "absent", "No such file"), (folder, "Is a directory")):
        done = run("user", "list", "--env-file", file)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"normata: the settings in {file} cannot be read: {reason}")


@on_both
def test_the_address_of_the_database_may_be_in_a_file(database_url: str, folder: Path) -> None:
    secret = written(folder, f"{database_url}\n", "url")
    done = run("user", "list", variables={"NORMATA_DATABASE_URL_FILE": str(secret)})
    assert "editor@alpha.example" in done.stdout, done.stderr
    file = written(folder, f"NORMATA_DATABASE_URL=sqlite:///absent.db\n{PUBLIC}")
    done = run(*LINK, "--env-file", file, variables={"NORMATA_DATABASE_URL_FILE": str(secret)})
    assert done.stdout.startswith("https://normata.example.org/"), done.stderr


@pytest.mark.parametrize("workers", [1, 2])
def test_the_service_reads_both(sqlite_url: str, folder: Path, workers: int) -> None:
    """The workers, too, which get their settings from the environment of the process that starts them."""
    secret = written(folder, sqlite_url, "url")
    log = folder / "log"
    with reserved_port() as port:
        settings = f"NORMATA_DATABASE_URL_FILE={secret}\nNORMATA_PORT={port}\nNORMATA_WORKERS={workers}\n"
        file = written(folder, f"{settings}NORMATA_LOG_FORMAT=json\n")
        with log.open("wb") as output:
            start = Normata if workers == 1 else subprocess.Popen
            process = start([SCRIPT, "serve", "--env-file", str(file)], stdout=output, stderr=output)
            try:
                wait_until_ready(f"http://127.0.0.1:{port}", process)
                answer = httpx2.get(f"http://127.0.0.1:{port}/readyz", verify=PLAIN)
            finally:
                process.terminate()
                process.wait(30)
    assert answer.status_code == 200
    assert any(json.loads(line)["event"] == "serving" for line in log.read_text().splitlines() if line.startswith("{"))
