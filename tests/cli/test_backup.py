"""Backups: made while others write, checked, put back whole or not at all."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from normata.core.schema import migrations
from normata.events.model import AuditEvent, EventLeaf, UnsealedEvent
from tests import stored
from tests.cli.commands import GAMMA, Done, Run, break_last_array, bundle_file, failed, mode, organizations
from tests.databases import open_url
from tests.world import ALPHA

ADVICE = "tokens that were revoked since the backup are valid again; `normata token revoke` revokes them"


@pytest.fixture
def path(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a database with the test world, which is the one that commands take."""
    monkeypatch.setenv("NORMATA_DATABASE_URL", sqlite_url)
    return Path(sqlite_url.removeprefix("sqlite:///"))


def everything(path: Path) -> dict[str, stored.Rows]:
    with closing(open_url(f"sqlite:///{path}")) as opened:
        return stored.everything(opened)


def beside(path: Path) -> set[str]:
    return {file.name for file in path.parent.iterdir() if file.is_file()}


def test_a_backup_has_everything_and_is_one_private_file(normata: Run, path: Path, folder: Path) -> None:
    done = normata("backup", "make", "backup.db")
    assert done == Done(0, f"backup.db: a backup of {path}, schema {migrations.head()}, checked\n", "")
    assert beside(folder / "backup.db") == {"backup.db"}
    assert mode(folder / "backup.db") == 0o600
    before = everything(path)
    assert everything(folder / "backup.db") == before
    assert normata("check", "--database", "sqlite:///backup.db").code == 0


def test_a_backup_is_made_while_others_write(normata: Run, path: Path, folder: Path) -> None:
    """It is the database of one moment: for each record that was restored, its audit event is there, too."""
    over = threading.Event()

    def write() -> None:
        with closing(open_url(f"sqlite:///{path}")) as opened:
            number = 0
            while not over.is_set():
                number += 1
                row = {"organizationId": ALPHA, "name": "x" * 500}
                stored.load(
                    opened, {kind: [row | {"id": f"{kind}-{number}"}] for kind in ("labels", "variables", "assets")}
                )

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for number in range(5):
            assert normata("backup", "make", f"{number}.db").code == 0
    finally:
        over.set()
        thread.join(60)
    counts = []
    for number in range(5):
        rows = everything(folder / f"{number}.db")
        labels, variables, assets = (
            sum(row["name"] == "x" * 500 for row in rows[name]) for name in ("label", "variable", "asset")
        )
        assert labels == variables == assets
        counts.append(labels)
    assert counts == sorted(counts)
    assert counts[-1] > 0


def test_a_backup_does_not_change_the_schema(normata: Run, path: Path, folder: Path) -> None:
    """It is made before an upgrade, maybe with the new program already."""
    with closing(sqlite3.connect(path)) as other:
        other.execute("UPDATE alembic_version SET version_num = '20261120_01'")
        other.commit()
    assert "schema 20261120_01" in normata("backup", "make", "backup.db").out
    with closing(sqlite3.connect(folder / "backup.db")) as other:
        assert other.execute("SELECT version_num FROM alembic_version").fetchall() == [("20261120_01",)]


def test_a_damaged_database_gives_no_backup(normata: Run, path: Path, folder: Path) -> None:
    break_last_array(f"sqlite:///{path}")
    assert failed(normata("backup", "make", "backup.db")).startswith(f"{path} ")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("name", ["normata.db", "normata.db-wal", "normata.db-shm"])
@pytest.mark.parametrize("command", ["make", "restore"])
def test_a_backup_is_not_the_database_itself(normata: Run, path: Path, command: str, name: str) -> None:
    file = path.with_name(name)
    told = failed(normata("backup", command, file, "--force"))
    assert told == f"{file} belongs to the database itself; name another file"


def test_what_is_no_database_of_ours_is_no_backup(normata: Run, path: Path, folder: Path) -> None:
    before = everything(path)
    with closing(sqlite3.connect(folder / "recipes.db")) as other:
        other.execute("CREATE TABLE recipe (id INTEGER PRIMARY KEY)")
    (folder / "text").write_text("Dear diary, " * 1_000)
    (folder / "empty").touch()
    for name in ("recipes.db", "text", "empty", "absent", "."):
        told = failed(normata("backup", "restore", name, "--force"))
        assert name in told
    assert everything(path) == before
    assert not (folder / "absent").exists()


def test_a_backup_of_a_newer_version_is_refused(normata: Run, path: Path, folder: Path) -> None:
    before = everything(path)
    shutil.copy(path, folder / "newer.db")
    with closing(sqlite3.connect(folder / "newer.db")) as other:
        other.execute("UPDATE alembic_version SET version_num = '99991231_01'")
        other.commit()
    told = failed(normata("backup", "restore", "newer.db", "--force"))
    assert told == "newer.db was made by a newer version of Normata; upgrade the program"
    assert everything(path) == before


def test_a_backup_is_put_back_whole(normata: Run, path: Path, folder: Path) -> None:
    before = everything(path)
    normata("backup", "make", "backup.db")
    normata("load", bundle_file(folder, GAMMA))
    assert everything(path) != before
    assert failed(normata("backup", "restore", "backup.db")) == f"{path} exists already; --force replaces it"
    done = normata("backup", "restore", "backup.db", "--force")
    assert done == Done(0, f"{path}: restored from backup.db, schema {migrations.head()}\n{ADVICE}\n", "")
    assert everything(path) == before
    assert mode(path) == 0o600
    assert beside(folder / "backup.db") == {"backup.db", "bundle.json"}
    assert normata("check").err == ""


def test_what_a_busy_service_had_not_sealed_is_pending_and_sealed_by_the_restore(
    normata: Run, path: Path, folder: Path
) -> None:
    with closing(open_url(f"sqlite:///{path}")) as opened:  # as a request is: sealing follows later
        stored.load(opened, {"labels": [{"id": "late", "organizationId": ALPHA, "name": "Late"}]})
        [event] = stored.rows(opened, AuditEvent, entity_id="late")
    a_day_ago = f"UPDATE audit_event SET at = '2026-01-02T03:04:05.678Z' WHERE id = '{event['id']}'"
    with closing(sqlite3.connect(path)) as other:  # the backup is a day old
        other.execute(a_day_ago)
        other.commit()
    assert normata("backup", "make", "backup.db").code == 0
    done = normata("check", "--database", "sqlite:///backup.db")
    assert (done.code, done.err) == (0, "")
    assert (
        "pending: 1 event is not sealed yet, the oldest of 2026-01-02T03:04:05.678Z; the service seals, and so do"
        " commands that change something\n"
    ) in done.out
    assert normata("backup", "restore", "backup.db", "--force").code == 0
    with closing(open_url(f"sqlite:///{path}")) as opened:
        assert stored.rows(opened, UnsealedEvent) == []
        [leaf] = stored.rows(opened, EventLeaf)
        assert leaf["event_id"] == event["id"]
    assert "pending" not in normata("check").out
    assert {file.name for file in folder.iterdir()} == {"backup.db", "backup.db.files"}


def test_a_backup_is_put_where_there_is_nothing(normata: Run, path: Path) -> None:
    normata("backup", "make", "backup.db")
    assert normata("backup", "restore", "backup.db", "--database", "sqlite:///new.db").code == 0
    assert everything(Path("new.db")) == everything(path)


def test_a_copy_made_by_other_means_can_be_put_back(normata: Run, path: Path, folder: Path) -> None:
    """With its log beside it, as a copy of a stopped service may have."""
    with closing(open_url(f"sqlite:///{path}")) as opened:
        stored.load(opened, {"labels": [{"id": "late", "organizationId": ALPHA, "name": "Late"}]})
        shutil.copy(path, folder / "copy.db")
        shutil.copy(f"{path}-wal", folder / "copy.db-wal")
    before = everything(path)
    assert "late" in {row["id"] for row in before["label"]}
    path.unlink()
    assert normata("backup", "restore", "copy.db").code == 0
    assert everything(path) == before


def test_a_damaged_database_can_be_replaced(normata: Run, path: Path) -> None:
    before = everything(path)
    normata("backup", "make", "backup.db")
    path.write_bytes(b"\xff" * 10_000)
    assert normata("backup", "restore", "backup.db", "--force").code == 0
    assert everything(path) == before


@pytest.mark.parametrize("suffix", ["-wal", "-journal"])
def test_a_log_of_another_database_is_never_applied_to_a_backup(normata: Run, path: Path, suffix: str) -> None:
    normata("backup", "make", "backup.db")
    path.unlink()
    log = path.with_name(path.name + suffix)
    log.write_bytes(b"changes" * 100)
    told = failed(normata("backup", "restore", "backup.db"))
    assert told == f"{log} holds changes of another database; move it away, then restore"
    assert not path.exists()
    log.unlink()
    assert normata("backup", "restore", "backup.db").code == 0


HOLDING = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("SELECT count(*) FROM label").fetchall()
print("ready", flush=True)
sys.stdin.read()
"""


@contextmanager
def in_use(path: Path) -> Iterator[None]:
    """Another process has the database open, as the service has between two requests."""
    command = [sys.executable, "-c", HOLDING, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield
        process.stdin.close()


def test_a_database_in_use_is_not_replaced(normata: Run, path: Path, folder: Path) -> None:
    normata("backup", "make", "backup.db")
    normata("load", bundle_file(folder, GAMMA))
    with in_use(path):
        told = failed(normata("backup", "restore", "backup.db", "--force"))
        assert told == f"{path} is in use, so nothing was restored; stop the service first"
    assert "org-gamma" in organizations(f"sqlite:///{path}")
    assert normata("backup", "restore", "backup.db", "--force").code == 0
    assert "org-gamma" not in organizations(f"sqlite:///{path}")


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
@pytest.mark.parametrize(("command", "tool"), [("make", "pg_dump"), ("restore", "pg_restore")])
def test_on_postgresql_its_own_tools_are_named(normata: Run, database_url: str, command: str, tool: str) -> None:
    told = failed(normata("backup", command, "backup.db", "--force", "--database", database_url))
    assert told.startswith(f"the database is PostgreSQL: use {tool}")
    assert list(Path().iterdir()) == []


def key_of(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the key of the events is."""
    key = folder.parent / "event-key"
    monkeypatch.setenv("NORMATA_EVENT_KEY", str(key))
    return key


@pytest.mark.usefixtures("path")
def test_the_public_half_of_the_key_goes_along(normata: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = key_of(folder, monkeypatch)
    keys = normata("events", "key").out
    assert ALPHA in keys
    assert normata("backup", "make", "backup.db").err == ""
    beside_it = folder / "backup.db.event-keys"
    assert beside_it.read_text() == keys
    assert mode(beside_it) == 0o600
    assert "PRIVATE" in key.read_text()
    assert "PRIVATE" not in "".join(file.read_text("latin-1") for file in folder.iterdir() if file.is_file())
    normata("load", bundle_file(folder, GAMMA))
    normata("backup", "make", "backup.db", "--force")
    assert "org-gamma" in beside_it.read_text()


@pytest.mark.usefixtures("path")
def test_no_key_is_made_for_a_backup(normata: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = key_of(folder, monkeypatch)
    normata("backup", "make", "backup.db")
    assert not key.exists()
    assert beside(folder / "backup.db") == {"backup.db"}


@pytest.mark.usefixtures("path")
def test_a_key_that_cannot_be_read_is_a_warning(normata: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key_of(folder, monkeypatch).write_text("no key")
    done = normata("backup", "make", "backup.db")
    assert done.code == 0
    assert done.err.startswith("warning: ")


def test_so_many_backups_remain(normata: Run, path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key_of(folder, monkeypatch)
    normata("events", "key")
    backups = folder / "backups"
    backups.mkdir()
    others = {"normata.db", "normata-2026-11-20.db", "normata-20200101T000000Z.db.old"}
    old = {f"normata-2020010{day}T000000Z.db" for day in range(1, 5)}
    for name in (*others, *old, *(f"{name}.event-keys" for name in old)):
        (backups / name).touch()
    for name in old:
        (backups / f"{name}.files" / "folder").mkdir(parents=True)
    done = normata("backup", "make", backups, "--keep", "2")
    assert done.code == 0
    found = {file.name for file in backups.iterdir()} - others
    [new] = {name for name in found if name.endswith(".db")} - old
    remaining = {new, "normata-20200104T000000Z.db"}
    assert found == remaining | {f"{name}.{more}" for name in remaining for more in ("event-keys", "files")}
    assert others <= {file.name for file in backups.iterdir()}
    assert everything(backups / new) == everything(path)
    assert path.with_name(f"{path.name}.last-backup").exists()


def test_what_fails_removes_nothing(normata: Run, path: Path, folder: Path) -> None:
    (folder / "normata-20200101T000000Z.db").touch()
    (folder / "normata-20200102T000000Z.db").touch()
    break_last_array(f"sqlite:///{path}")
    assert failed(normata("backup", "make", ".", "--keep", "1")).startswith(f"{path} ")
    assert len(list(folder.iterdir())) == 2
    assert not path.with_name(f"{path.name}.last-backup").exists()
    assert failed(normata("backup", "make", "absent", "--keep", "1")) == "there is no folder absent"
