"""Help, wrong usage, and which database a command takes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from normata import __version__
from normata.cli.main import app
from tests.cli.commands import GAMMA, Done, Run, bundle_file, failed, organizations

# --- Help and usage


def below(group: object, *typed: str) -> Iterator[tuple[str, ...]]:
    """What can be typed to reach every command and every group of commands."""
    if isinstance(group, TyperGroup):
        for name, command in group.commands.items():
            yield (*typed, name)
            yield from below(command, *typed, name)


COMMANDS = list(below(get_command(app)))
GROUPS = {command[:-1] for command in COMMANDS} - {()}


def test_there_are_commands_to_look_at() -> None:
    assert {("serve",), ("token", "create"), ("backup", "restore")} <= set(COMMANDS)
    assert {("token",), ("backup",)} <= GROUPS


def test_help_names_every_command(normata: Run) -> None:
    done = normata("--help")
    assert (done.code, done.err) == (0, "")
    for name in {command[0] for command in COMMANDS}:
        assert re.search(rf"^\W+{name}\b", done.out, re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_help_stands_alone(normata: Run, command: tuple[str, ...]) -> None:
    done = normata(*command, "--help")
    assert (done.code, done.err) == (0, "")
    assert f"Usage: normata {' '.join(command)}" in done.out
    assert len(done.out.split()) > 20
    if command not in GROUPS:
        assert "--database" in done.out
        assert "NORMATA_DATABASE_URL" in done.out


def test_the_version_is_told(normata: Run) -> None:
    assert normata("--version") == Done(0, f"normata {__version__}\n", "")


def test_token_create_says_what_it_takes(normata: Run) -> None:
    shown = normata("token", "create", "--help").out
    assert all(option in shown for option in ("--user", "--scope", "--expires-in", "read", "write", "90d"))


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("conquer",), id="no such command"),
        pytest.param(("load",), id="no file"),
        pytest.param(("load", "--colour", "red", "x.json"), id="no such option"),
        pytest.param(("adopt", "org-alpha"), id="no framework"),
        pytest.param(("dump", "one", "two"), id="too many arguments"),
        pytest.param(("token", "create"), id="no user"),
        pytest.param(("token", "revoke"), id="no token"),
        pytest.param(("serve", "--port", "http"), id="port that is no number"),
        pytest.param(("migrate", "--database"), id="option without its value"),
    ],
)
def test_wrong_usage(normata: Run, folder: Path, arguments: tuple[str, ...]) -> None:
    done = normata(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err
    assert "Traceback" not in done.err
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("migrate", "--database", "normata.db"), "the database URL cannot be read; it looks like sqlite:///normata.db"),
        (("check", "--database", "mysql://root:hunter2@x/y"), "the database URL names mysql; "),
        (("serve", "--port", "0"), "the setting NORMATA_PORT is wrong: "),
        (("token", "create", "--user", "x", "--scope", "all"), "--scope must be read, write, admin or scim"),
        (("token", "create", "--user", "x", "--expires-in", "soon"), "--expires-in must be a number with m, h, d or w"),
        (("token", "create", "--user", "x", "--expires-in", "0d"), "--expires-in must be a number"),
        (("token", "create", "--user", "x", "--expires-in", "-1d"), "--expires-in must be a number"),
        (("token", "create", "--user", "x", "--expires-in", "99999w"), "--expires-in must be at most 100 years"),
        (("organization", "create", "\udcff\udcfe", "--owner", "k@x.example"), "a name must have 1 to 500 "),
        (("organization", "create", "Al\u202epha", "--owner", "k@x.example"), "a name must have 1 to 500 "),
        (
            ("organization", "create", "X", "--owner", "k\u200e@x.example"),
            "k\\u200e@x.example is not a valid email address",
        ),
        (("organization", "create", "X", "--owner", "k@x.example", "--slug", ".."), "a slug has 1 to 200 "),
        (("init", "--organization", "X", "--email", "k@x.example", "--name", "\u2067K"), "a name must have 1 to 500 "),
        (("init", "--organization", "X", "--email", "k@x.example", "--slug", "."), "a slug has 1 to 200 "),
    ],
)  # fmt: skip
def test_wrong_values_are_told_in_a_sentence(
    normata: Run, folder: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    told = failed(normata(*arguments), code=2)
    assert told.startswith(sentence)
    assert "hunter2" not in told
    assert list(folder.iterdir()) == []


def test_a_wrong_setting_is_named(normata: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NORMATA_DATABASE_TIMEOUT", "long")
    assert failed(normata("migrate"), code=2) == "the setting NORMATA_DATABASE_TIMEOUT is wrong: it must be a number"


_MAIL = "it must be an address like smtps://user:password@mail.example.org:465"
_PUBLIC = "it must be an address like https://normata.example.org, without user, query and fragment"


@pytest.mark.parametrize(
    ("setting", "value", "sentence"),
    [
        *(("SMTP_URL", value, _MAIL) for value in ("bogus", "SMTP://[", "smtp://x:99999", "smtp://a b", "ftp://x")),
        *(("PUBLIC_URL", value, _PUBLIC) for value in ("ftp://x", "http://[", "http://x:99999", "https://a@x", "x")),
        ("OIDC_GROUPS_CLAIM", "A B", r"it must match ^[^\s\x00-\x1f\x7f]+$"),
    ],
)
def test_what_is_wrong_with_a_setting_is_told_as_it_is_meant(
    setting: str, value: str, sentence: str, normata: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"NORMATA_{setting}", value)
    assert failed(normata("check"), code=2) == f"the setting NORMATA_{setting} is wrong: {sentence}"


def test_an_argument_that_is_no_text(normata: Run) -> None:
    assert normata("migrate").code == 0
    told = failed(normata("organization", "rename", "\udcff", "X"), code=2)
    assert told == "an argument is not valid UTF-8"


# --- Which database


@pytest.mark.long
def test_the_option_beats_the_environment_beats_the_default(
    normata: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert normata("migrate").code == 0
    assert (folder / "normata.db").exists()
    monkeypatch.setenv("NORMATA_DATABASE_URL", "sqlite:///environment.db")
    assert normata("migrate").code == 0
    assert (folder / "environment.db").exists()
    assert normata("migrate", "--database", f"sqlite:///{folder / 'option.db'}").code == 0
    assert {path.name for path in folder.glob("*.db")} == {"normata.db", "environment.db", "option.db"}
    assert normata("load", bundle_file(folder, GAMMA), "--database", "sqlite:///option.db").code == 0
    found = [organizations(f"sqlite:///{name}.db") for name in ("normata", "environment", "option")]
    assert found == [[], [], ["org-gamma"]]


@pytest.mark.parametrize(
    "arguments",
    [("check",), ("dump",), ("token", "list"), ("token", "revoke", "x"), ("backup", "make", "b.db")],
    ids=" ".join,
)
def test_what_only_reads_makes_no_database(normata: Run, folder: Path, arguments: tuple[str, ...]) -> None:
    told = failed(normata(*arguments))
    assert told == "the database cannot be used: there is no file normata.db"
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    "arguments", [("token", "create", "--user", "a@b.example"), ("adopt", "org-alpha", "fw-sun")], ids=" ".join
)
def test_what_changes_a_database_wants_one_that_exists(normata: Run, folder: Path, arguments: tuple[str, ...]) -> None:
    """A mistyped --database must not leave an empty one behind."""
    failed(normata(*arguments))
    assert list(folder.iterdir()) == []


def test_a_database_that_is_none_is_told_in_a_sentence(normata: Run, folder: Path) -> None:
    path = folder / "normata.db"
    path.write_text("Dear diary, " * 100)
    path.chmod(0o600)
    for command in ("migrate", "dump", "check"):
        done = normata(command)
        assert done.code == 1
        assert done.err.startswith("normata: the database cannot be used: ")
        assert done.err.count("\n") == 1
