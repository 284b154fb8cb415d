"""The command line: exit codes, sentences instead of tracebacks, and commands that do what their help says."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sqlalchemy import text
from starlette.testclient import TestClient

from normata import cli, migrations
from normata.app import create_app
from normata.database import Database
from normata.settings import Settings
from tests import world
from tests.databases import on_sqlite, open_url
from tests.server import free_port
from tests.world import ALPHA, BETA

NORMATA = Path(sys.executable).with_name("normata")


class Done(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


Run = Callable[..., Done]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: empty, with nothing in the environment that Normata would read."""
    for name in list(os.environ):
        if name.startswith("NORMATA_"):
            monkeypatch.delenv(name)
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


def failed(done: Done, code: int = 1) -> str:
    """The sentence that a failed command told: one line on standard error, and nothing else anywhere."""
    assert (done.code, done.out) == (code, "")
    assert "Traceback" not in done.err
    [line] = done.err.splitlines()
    assert line.startswith("normata: ")
    return line.removeprefix("normata: ")


def bundle_file(folder: Path, document: Any, name: str = "bundle.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


LABEL = {"id": "new", "organizationId": ALPHA, "name": "New"}
GAMMA = {"organizations": [{"id": "org-gamma", "name": "Gamma"}]}


def organizations(url: str) -> list[str]:
    with closing(open_url(url)) as opened:
        return [
            row.id
            for row in opened.read_now(lambda c: c.execute(text("SELECT id FROM organization ORDER BY id")).all())
        ]


# --- Help and usage

COMMANDS = [
    ("serve",), ("demo",), ("load",), ("dump",), ("import",), ("adopt",), ("migrate",), ("check",),
    ("token",), ("token", "create"), ("token", "list"), ("token", "revoke"),
]  # fmt: skip


def test_help_names_every_command(normata: Run) -> None:
    done = normata("--help")
    assert (done.code, done.err) == (0, "")
    for name, *_ in COMMANDS:
        assert re.search(rf"^\W+{name}\b", done.out, re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_help_stands_alone(normata: Run, command: tuple[str, ...]) -> None:
    done = normata(*command, "--help")
    assert (done.code, done.err) == (0, "")
    assert f"Usage: normata {' '.join(command)}" in done.out
    assert len(done.out.split()) > 20
    if command != ("token",):
        assert "--database" in done.out
        assert "NORMATA_DATABASE_URL" in done.out


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
        (("token", "create", "--user", "x", "--scope", "all"), "--scope must be read or write"),
        (("token", "create", "--user", "x", "--expires-in", "soon"), "--expires-in must be a number with m, h, d or w"),
        (("token", "create", "--user", "x", "--expires-in", "0d"), "--expires-in must be a number"),
        (("token", "create", "--user", "x", "--expires-in", "-1d"), "--expires-in must be a number"),
        (("token", "create", "--user", "x", "--expires-in", "99999w"), "--expires-in must be at most 100 years"),
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
    assert failed(normata("migrate"), code=2).startswith("the setting NORMATA_DATABASE_TIMEOUT is wrong: ")


# --- Which database


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
    "arguments", [("check",), ("dump",), ("token", "list"), ("token", "revoke", "x")], ids=" ".join
)
def test_what_only_reads_makes_no_database(normata: Run, folder: Path, arguments: tuple[str, ...]) -> None:
    told = failed(normata(*arguments))
    assert told == "the database cannot be used: there is no file normata.db"
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    "arguments", [("token", "create", "--user", "a@b.example"), ("adopt", "org-alpha", "fw-sun")], ids=" ".join
)
def test_nothing_can_be_adopted_or_let_in_where_there_is_no_database(
    normata: Run, folder: Path, arguments: tuple[str, ...]
) -> None:
    """A mistyped --database must not leave an empty one behind."""
    failed(normata(*arguments))
    assert list(folder.iterdir()) == []


def test_a_database_that_is_none_is_told_in_a_sentence(normata: Run, folder: Path) -> None:
    (folder / "normata.db").write_text("Dear diary, " * 100)
    for command in ("migrate", "dump", "check"):
        done = normata(command)
        assert done.code == 1
        assert done.err.startswith("normata: the database cannot be used: ")
        assert done.err.count("\n") == 1


# --- load


def test_load_tells_what_it_did(normata: Run, database_url: str, folder: Path) -> None:
    live = {"id": "labels-live-org-alpha"}
    path = bundle_file(folder, {"labels": [LABEL, live | {"color": "red"}, {"id": "labels-taken-org-alpha"}]})
    other = bundle_file(folder, {"variables": [LABEL]}, "other.json")
    done = normata("load", path, other, "--database", database_url)
    assert done == Done(0, "labels: 1 new, 1 changed, 1 unchanged\nvariables: 1 new, 0 changed, 0 unchanged\n", "")
    again = normata("load", path, other, "--database", database_url)
    assert again.out == "labels: 0 new, 0 changed, 3 unchanged\nvariables: 0 new, 0 changed, 1 unchanged\n"


def test_load_of_nothing_says_so(normata: Run, folder: Path) -> None:
    done = normata("load", bundle_file(folder, {}))
    assert (done.code, done.out) == (0, "the files hold no rows; nothing was changed\n")


def test_faults_are_told_with_file_and_place_and_nothing_stays(
    normata: Run, database: Database, database_url: str, folder: Path
) -> None:
    before = world.contents(database)
    good = bundle_file(folder, GAMMA, "good.json")
    bad = bundle_file(folder, {"labels": [LABEL, LABEL | {"id": "b", "colour": 1}, LABEL | {"id": "c", "name": 3}]})
    done = normata("load", good, bad, "--database", database_url)
    assert (done.code, done.out) == (1, "")
    assert done.err.splitlines() == [
        f"{bad}: /labels/1/colour: is not a field that is known here",
        f"{bad}: /labels/2/name: must be a string",
        "normata: 2 faults found, nothing was changed",
    ]
    assert world.contents(database) == before


@pytest.mark.parametrize(("count", "shown"), [(1, 1), (50, 50), (51, 50), (75, 50)])
def test_the_first_fifty_faults_are_shown(normata: Run, folder: Path, count: int, shown: int) -> None:
    path = bundle_file(folder, {"labels": [{"id": f"l{number}", "name": 3} for number in range(count)]})
    *faults, last = normata("load", path).err.splitlines()
    assert len(faults) == shown
    assert faults[-1] == f"{path}: /labels/{shown - 1}/name: must be a string"
    assert last.startswith(f"normata: {count} fault{'s' if count > 1 else ''} found, nothing was changed")
    assert last.endswith("; the first 50 are shown") == (count > 50)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(b"{", "is not JSON: "), (b"[]", "must be a JSON object"), (b"\xff", "is not JSON: "), (None, "cannot be read: ")],
)
def test_files_that_are_no_bundles(normata: Run, folder: Path, content: bytes | None, sentence: str) -> None:
    path = folder / "bundle.json"
    if content is not None:
        path.write_bytes(content)
    done = normata("load", path)
    assert (done.code, done.out) == (1, "")
    first, last = done.err.splitlines()
    assert first.startswith(f"{path}: {sentence}")
    assert last == "normata: 1 fault found, nothing was changed"


# --- dump


def test_dump_names_the_organization_by_id_or_slug(normata: Run, database_url: str) -> None:
    by_id = normata("dump", ALPHA, "--database", database_url)
    assert by_id == normata("dump", "alpha", "--database", database_url)
    assert (by_id.code, by_id.err) == (0, "")
    assert [row["id"] for row in json.loads(by_id.out)["organizations"]] == [ALPHA]


def test_dump_of_one_of_several_must_say_which(normata: Run, database_url: str, folder: Path) -> None:
    assert failed(normata("dump", "--database", database_url)) == f"name an organization: there is {ALPHA}, {BETA}"
    told = failed(normata("dump", "gamma", "--database", database_url))
    assert told == f"no organization 'gamma'; there is {ALPHA}, {BETA}"
    normata("load", bundle_file(folder, GAMMA))
    assert json.loads(normata("dump").out)["organizations"][0]["id"] == "org-gamma"


def test_dump_of_an_empty_database_says_what_to_do(normata: Run) -> None:
    normata("migrate")
    assert "there is none yet; load a bundle that has one" in failed(normata("dump"))


def test_dump_to_a_file_and_load_of_it(normata: Run, database_url: str, folder: Path) -> None:
    out = normata("dump", ALPHA, "--database", database_url).out
    done = normata("dump", ALPHA, "--output", "dump.json", "--database", database_url)
    assert done == Done(0, "", "")
    assert (folder / "dump.json").read_text(encoding="utf-8") == out
    assert normata("load", "dump.json").code == 0
    assert normata("dump").out == out
    assert {path.name for path in folder.iterdir()} == {"dump.json", "normata.db"}


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


@on_sqlite
def test_a_dump_that_fails_leaves_the_old_file_whole(normata: Run, database_url: str, folder: Path) -> None:
    output = folder / "dump.json"
    output.write_text("yesterday's")
    break_last_array(database_url)
    told = failed(normata("dump", ALPHA, "--output", output, "--database", database_url))
    assert told.startswith("the database cannot be used: ")
    assert output.read_text() == "yesterday's"
    assert list(folder.iterdir()) == [output]


def test_a_dump_that_cannot_be_written_is_told(normata: Run, database_url: str) -> None:
    told = failed(normata("dump", ALPHA, "--output", "missing/dump.json", "--database", database_url))
    assert "missing/dump.json" in told
    assert "No such file or directory" in told


# --- The real program


def program(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(NORMATA), *arguments], stderr=subprocess.PIPE, text=True, timeout=120, check=False, **options
    )


def test_the_installed_program(folder: Path) -> None:
    done = program("load", str(bundle_file(folder, GAMMA)), stdout=subprocess.PIPE)
    assert (done.returncode, done.stdout, done.stderr) == (0, "organizations: 1 new, 0 changed, 0 unchanged\n", "")
    done = program("load", "absent.json", stdout=subprocess.PIPE)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "absent.json: cannot be read: No such file or directory\nnormata: 1 fault found, nothing was changed\n"
    )


LATE = {
    "help": ("sqlalchemy", "pydantic", "rich", "alembic", "fastapi"),
    "serve": ("rich", "alembic", "fastapi", "structlog", "normata.models"),
    "token": ("rich", "alembic", "fastapi", "structlog", "normata.models", "normata.paging"),
}
IMPORTING = """
import json, sys
from normata import cli, serving
serving.run = lambda settings: None
loaded = {}
for command in json.loads(sys.argv[1]):
    cli.app(command, standalone_mode=False)
    loaded[command[0]] = sorted(sys.modules)
print(json.dumps(loaded), file=sys.stderr)
"""


@on_sqlite
def test_what_is_quick_to_start_imports_little(database_url: str) -> None:
    """What the workers need, the process that starts them does not; nor does a command what only others need."""
    commands = [["serve", "--port", str(free_port())], ["token", "list"]]
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
        [sys.executable, "-c", "import sys; from normata import cli; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(LATE["help"]).isdisjoint(listed.stdout.split())


@pytest.mark.parametrize("arguments", [("dump", ALPHA), ("check",)], ids=" ".join)
def test_a_reader_that_has_gone_is_no_reason_for_noise(database_url: str, arguments: tuple[str, ...]) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    try:
        done = program(*arguments, "--database", database_url, stdout=theirs)
    finally:
        os.close(theirs)
    assert done.stderr == ""
    assert done.returncode == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full to write to")
def test_a_full_disk_is_a_failure_told_in_a_sentence(database_url: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = program("dump", ALPHA, "--database", database_url, stdout=full)
    assert done.returncode == 1
    assert [line[:9] for line in done.stderr.splitlines()] == ["normata: "]


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


# --- Tokens


def tokens(normata: Run, url: str) -> list[dict[str, str]]:
    done = normata("token", "list", "--database", url)
    assert (done.code, done.err) == (0, "")
    head, *rows = (line.split("\t") for line in done.out.splitlines())
    return [dict(zip(head, row, strict=True)) for row in rows]


def test_a_token_is_printed_alone_and_works_until_it_is_revoked(
    normata: Run, database_url: str, client: TestClient
) -> None:
    done = normata("token", "create", "--user", "EDITOR@alpha.example", "--scope", "write", "--database", database_url)
    assert (done.code, done.err) == (0, "")
    assert re.fullmatch(r"nrm_[0-9A-Za-z]{49}\n", done.out)
    token = done.out.strip()
    [row] = tokens(normata, database_url)
    assert (row["email"], row["scope"], row["revoked_at"]) == ("editor@alpha.example", "write", "-")
    assert token not in str(row)

    def status() -> int:
        path = "/labels/labels-archived-org-alpha/restore/"
        return client.post(path, headers={"Authorization": f"Bearer {token}"}).status_code

    assert status() == 200
    done = normata("token", "revoke", row["id"], "--database", database_url)
    assert done == Done(0, f"{row['id']}: revoked\n", "")
    assert status() == 401
    revoked_at = tokens(normata, database_url)[0]["revoked_at"]
    assert normata("token", "revoke", row["id"], "--database", database_url).code == 0
    assert tokens(normata, database_url)[0]["revoked_at"] == revoked_at != "-"


def test_a_token_reads_for_ninety_days_unless_told_otherwise(normata: Run, database_url: str) -> None:
    def lifetime(row: dict[str, str]) -> timedelta:
        created, expires = (datetime.fromisoformat(row[name]) for name in ("created_at", "expires_at"))
        return expires - created

    for arguments in ((), ("--expires-in", "12h"), ("--expires-in", "2w"), ("--expires-in", "never")):
        assert (
            normata("token", "create", "--user", "viewer@alpha.example", *arguments, "--database", database_url).code
            == 0
        )
    rows = tokens(normata, database_url)
    assert {row["scope"] for row in rows} == {"read"}
    [forever] = [row for row in rows if row["expires_at"] == "-"]
    rows.remove(forever)
    found = sorted(lifetime(row) for row in rows)
    wanted = [timedelta(hours=12), timedelta(weeks=2), timedelta(days=90)]
    assert all(abs(have - want) < timedelta(seconds=5) for have, want in zip(found, wanted, strict=True))


def test_tokens_are_listed_by_user(normata: Run, database_url: str) -> None:
    for user in ("viewer", "editor"):
        normata("token", "create", "--user", f"{user}@alpha.example", "--database", database_url)
    shown = normata("token", "list", "--user", "VIEWER@alpha.example", "--database", database_url).out
    assert [line.split("\t")[1] for line in shown.splitlines()] == ["email", "viewer@alpha.example"]


def test_tokens_of_nobody(normata: Run, database_url: str) -> None:
    told = failed(normata("token", "create", "--user", "who@x.example", "--database", database_url))
    assert told == "there is no user with the email address who@x.example"
    assert failed(normata("token", "revoke", "x", "--database", database_url)) == "there is no token with the id x"


# --- migrate


def test_migrate_makes_a_database_and_leaves_a_current_one_alone(normata: Run, folder: Path) -> None:
    first = normata("migrate")
    assert first == Done(0, f"the schema is at {migrations.head()}\n", "")
    before = (folder / "normata.db").read_bytes()
    assert normata("migrate") == first
    assert (folder / "normata.db").read_bytes() == before


def a_database_of_something_else(folder: Path) -> Path:
    path = folder / "normata.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE recipe (id INTEGER PRIMARY KEY)")
        other.commit()
    return path


@pytest.mark.parametrize("arguments", [("migrate",), ("load", "bundle.json"), ("check",), ("dump",)], ids=" ".join)
def test_a_database_of_something_else_is_not_touched(normata: Run, folder: Path, arguments: tuple[str, ...]) -> None:
    bundle_file(folder, GAMMA)
    path = a_database_of_something_else(folder)
    before = path.read_bytes()
    done = normata(*arguments)
    assert done.code == 1
    assert "Traceback" not in done.err
    assert path.read_bytes() == before
    assert {file.name for file in folder.iterdir()} == {"normata.db", "bundle.json"}


def test_migrate_says_that_the_database_is_of_something_else(normata: Run, folder: Path) -> None:
    a_database_of_something_else(folder)
    assert failed(normata("migrate")) == (
        "the database holds tables of something else; name another one with --database"
    )


@pytest.mark.parametrize("arguments", [("migrate",), ("dump", ALPHA), ("token", "list")], ids=" ".join)
def test_a_newer_schema_is_not_touched(
    normata: Run, database: Database, database_url: str, arguments: tuple[str, ...]
) -> None:
    database.write_now(lambda connection: connection.execute(text("UPDATE alembic_version SET version_num = '9999'")))
    before = world.contents(database)
    told = failed(normata(*arguments, "--database", database_url))
    assert told == "the database was made by a newer version of Normata; upgrade the program"
    assert world.contents(database) == before


# --- check


def test_check_of_a_good_database(normata: Run, database_url: str) -> None:
    done = normata("check", "--database", database_url)
    assert (done.code, done.err) == (0, "")
    settings, schema, integrity, *contents = done.out.splitlines()
    assert (settings, integrity) == ("settings: good", "integrity: good")
    assert schema == f"schema: current ({migrations.head()})"
    assert contents[0] == "organization org-alpha: Alpha"


@on_sqlite
@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        (
            "UPDATE effective_coverage SET status = 2 WHERE control_id = 'moon.A.9'",
            "the stored coverage of organization org-alpha is not what follows from its statements",
        ),
        (
            "UPDATE task SET assignee_member_id = 'nobody' WHERE id = 'tasks-live-org-alpha'",
            "of task refers to a row of membership that is not there",
        ),
    ],
)
def test_check_finds_what_does_not_hold(normata: Run, database_url: str, statement: str, sentence: str) -> None:
    with closing(sqlite3.connect(database_url.removeprefix("sqlite:///"))) as other:
        other.execute("PRAGMA foreign_keys = OFF")
        other.execute(statement)
        other.commit()
    done = normata("check", "--database", database_url)
    assert done.code == 1
    assert "integrity: good" not in done.out
    fault, last = done.err.splitlines()
    assert sentence in fault
    assert last == "normata: the database is not whole"


@on_sqlite
@pytest.mark.parametrize("damage", ["a page", "half of it", "its head"])
def test_check_of_a_damaged_database(normata: Run, database_url: str, damage: str) -> None:
    path = Path(database_url.removeprefix("sqlite:///"))
    if damage == "a page":
        break_last_array(database_url)
    else:
        with path.open("r+b") as file:
            file.write(b"\xff" * 100) if damage == "its head" else file.truncate(path.stat().st_size // 2)
    done = normata("check", "--database", database_url)
    assert done.code == 1
    assert "integrity: good" not in done.out
    assert done.err.splitlines()[-1].startswith("normata: the database ")
    assert "Traceback" not in done.err


def test_check_of_a_schema_that_is_not_current(normata: Run, folder: Path) -> None:
    (folder / "normata.db").touch()
    done = normata("check")
    assert done.code == 1
    assert done.err == "normata: the schema of the database is not current; run `normata migrate`\n"


# --- adopt


def test_adopt_tells_what_is_new(normata: Run, database_url: str) -> None:
    done = normata("adopt", "alpha", "STAR", "fw-sun", "--database", database_url)
    assert done == Done(0, "fw-star: adopted\nfw-sun: was adopted already\n", "")
    assert normata("check", "--database", database_url).code == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("nobody", "STAR"), "no organization 'nobody'; there is org-alpha, org-beta"),
        (("alpha", "STAR", "fw-foreign"), "the organization can see no framework 'fw-foreign'; "),
    ],
)
def test_adopt_refuses_what_is_not_there_as_a_whole(
    normata: Run, database: Database, database_url: str, arguments: tuple[str, ...], sentence: str
) -> None:
    before = world.contents(database)
    assert failed(normata("adopt", *arguments, "--database", database_url)).startswith(sentence)
    assert world.contents(database) == before


# --- import


def test_import_tells_faults_like_load(normata: Run, folder: Path) -> None:
    (folder / "library.yaml").write_text("urn: x\nobjects: }")
    done = normata("import", "library.yaml", "absent.yaml")
    assert (done.code, done.out) == (1, "")
    first, second, last = done.err.splitlines()
    assert first.startswith("library.yaml: is neither JSON nor YAML: line 2, column 10")
    assert second == "absent.yaml: cannot be read: No such file or directory"
    assert last == "normata: 2 faults found, nothing was changed"


CSF_1, CSF_2 = "urn:intuitem:risk:framework:nist-csf-1.1", "urn:intuitem:risk:framework:nist-csf-2.0"
SP_800_53 = "urn:intuitem:risk:framework:nist-sp-800-53-rev5"
SOURCE, TARGET = "urn:intuitem:risk:req_node:nist-csf-1.1:id.be-2", "urn:intuitem:risk:req_node:nist-csf-2.0:gv.oc-01"


@pytest.fixture(scope="module")
def imported(catalogs: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[str]]:
    """A database with all that is published, imported twice by the program; what it printed the second time."""
    url = f"sqlite:///{tmp_path_factory.mktemp('imported') / 'normata.db'}"
    files = sorted(str(path) for kind in ("ciso-assistant", "oscal") for path in (catalogs / kind).iterdir())
    for _ in range(2):
        done = program("import", *files, "--database", url, stdout=subprocess.PIPE)
        assert (done.returncode, done.stderr) == (0, "")
    return url, done.stdout.splitlines()


def test_importing_everything_again_changes_nothing(imported: tuple[str, list[str]]) -> None:
    _, second = imported
    assert [re.sub(r"[0-9]+ unchanged", "N unchanged", line) for line in second] == [
        f"{array}: 0 new, 0 changed, N unchanged" for array in ("frameworks", "controls", "controlMatches")
    ]


def test_imported_catalogs_are_listed_whole_and_in_order_and_coverage_flows(
    normata: Run, imported: tuple[str, list[str]], catalogs: Path, folder: Path
) -> None:
    shutil.copy(imported[0].removeprefix("sqlite:///"), folder / "normata.db")
    document = {
        "organizations": [{"id": "o", "name": "O"}],
        "users": [{"id": "u", "email": "u@o.example"}],
        "memberships": [{"id": "m", "organizationId": "o", "userId": "u"}],
        "controlCoverages": [{"id": "s", "organizationId": "o", "controlId": SOURCE, "coverageStatus": "FULL"}],
    }
    assert normata("load", bundle_file(folder, document)).code == 0
    assert normata("adopt", "o", "NIST-CSF-1.1", CSF_2, "NIST-SP-800-53-rev5").code == 0
    token = normata("token", "create", "--user", "u@o.example").out.strip()
    application = create_app(Settings(database_url="sqlite:///normata.db", log_level="error"))
    with TestClient(application, headers={"Authorization": f"Bearer {token}"}) as client:

        def listed(framework_id: str) -> list[dict[str, Any]]:
            items: list[dict[str, Any]] = []
            for page in range(1, 21):
                query: dict[str, str | int] = {"organizationId": "o", "frameworks": framework_id, "page": page}
                answer = client.get("/controls/", params=query).json()
                items += answer["items"]
                if page * 100 >= answer["total"]:
                    break
            assert len(items) == answer["total"]
            return items

        published = (catalogs / "ciso-assistant" / "nist-sp-800-53-rev5.yaml").read_text(encoding="utf-8")
        nodes = re.findall(r"^    - urn: (\S+)", published, re.MULTILINE)
        assert [item["id"] for item in listed(SP_800_53)] == nodes
        assert len(nodes) == 1_209

        source = {item["id"]: item for item in listed(CSF_1)}[SOURCE]
        assert (source["effectiveCoverageStatus"], source["isIndirectlyCovered"]) == ("FULL", False)
        target = {item["id"]: item for item in listed(CSF_2)}[TARGET]
        assert target["coverage"] == {"coverageStatus": "NONE", "coverageGap": None}
        assert (target["effectiveCoverageStatus"], target["isIndirectlyCovered"]) == ("PARTIAL", True)
        assert SOURCE in {match["matchedControl"]["id"] for match in target["sourceMatches"]}
    assert normata("check").code == 0
