"""Backups, dumps and loads have the bytes of files, and say what is missing."""

from __future__ import annotations

import json
import shutil
from hashlib import sha256
from pathlib import Path

import pytest

from tests.cli.commands import Run, bundle_file, failed
from tests.files.rows import FILE_CONTENT, everything, file_row, fill, store_at
from tests.world import ALPHA, BETA

HASH = sha256(FILE_CONTENT).hexdigest()


@pytest.fixture
def path(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a database with the test world, which is the one that commands take, with its files beside it."""
    monkeypatch.setenv("NORMATA_DATABASE_URL", sqlite_url)
    monkeypatch.delenv("NORMATA_FILES_URL")
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    fill(store_at(f"file://{path}.files"), ALPHA, BETA)
    return path


def contents(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()]


def test_a_backup_and_its_restore_have_them(normata: Run, path: Path, folder: Path) -> None:
    assert normata("backup", "make", "backup.db").code == 0
    assert contents(folder / "backup.db.files") == [FILE_CONTENT] * 2
    shutil.rmtree(f"{path}.files")
    checked = normata("check")
    assert checked.code == 1
    assert f"the file file-of-{ALPHA} of organization {ALPHA} is missing" in checked.out + checked.err
    assert normata("backup", "restore", "backup.db", "--force").code == 0
    assert contents(Path(f"{path}.files")) == [FILE_CONTENT] * 2
    assert normata("check").code == 0
    shutil.rmtree(f"{path}.files")
    assert "so it is not in the backup" in normata("backup", "make", "other.db").err


def test_kept_backups_share_what_is_the_same(normata: Run, path: Path, folder: Path) -> None:
    del path
    (folder / "kept").mkdir()
    old = folder / "kept" / "normata-20260101T000000Z.db"
    assert normata("backup", "make", old).code == 0
    assert normata("backup", "make", "kept", "--keep", "2").code == 0
    (first, *_), (second, *_) = (
        [one for one in sorted(kept.rglob("*-*")) if one.is_file()]
        for kept in sorted((folder / "kept").glob("*.files"))
    )
    assert first.samefile(second)
    assert normata("backup", "make", "kept", "--keep", "1").code in (0, 1)  # the same second is refused
    newest = max((folder / "kept").glob("*.files"))
    assert contents(newest) == [FILE_CONTENT] * 2


def test_a_dump_and_its_load_have_them(normata: Run, path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del path
    assert normata("dump", "alpha", "--output", "alpha.json", "--files", "bytes").code == 0
    assert [one.name for one in (folder / "bytes").iterdir()] == [HASH]
    assert json.loads((folder / "alpha.json").read_text("utf-8"))["files"] == [file_row(ALPHA)]
    monkeypatch.setenv("NORMATA_DATABASE_URL", "sqlite:///other.db")
    without = normata("load", "alpha.json")
    assert without.code == 0
    assert "the bytes of 1 uploaded file is not here" in without.err
    assert normata("load", "alpha.json", "--files", "bytes").code == 0
    assert contents(folder / "other.db.files") == [FILE_CONTENT]
    shutil.rmtree(folder / "other.db.files")
    (folder / "bytes" / HASH).write_bytes(b"other")
    assert "has another SHA-256" in failed(normata("load", "alpha.json", "--files", "bytes"))
    assert not (folder / "other.db.files").exists() or contents(folder / "other.db.files") == []


def test_everything_is_dumped_and_loaded(
    normata: Run, path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del path
    assert normata("dump", "--all", "--output", "all.json", "--files", "bytes").code == 0
    monkeypatch.setenv("NORMATA_DATABASE_URL", "sqlite:///other.db")
    assert normata("load", "all.json", "--files", "bytes").code == 0
    assert contents(folder / "other.db.files") == [FILE_CONTENT] * 2


def test_all_of_that_with_a_bucket(
    normata: Run, path: Path, folder: Path, bucket_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    del path
    monkeypatch.setenv("NORMATA_FILES_URL", bucket_url)
    store = store_at(bucket_url)
    fill(store, ALPHA, BETA)
    (folder / "large").write_bytes(bytes(12_000_000))
    assert normata("evidence", "add", "large", "--organization", "beta").code == 0
    whole = everything(store)
    assert len(whole) == 3
    assert normata("check").code == 0
    assert normata("backup", "make", "backup.db").code == 0
    assert sum(map(len, contents(folder / "backup.db.files"))) == 12_000_000 + 2 * len(FILE_CONTENT)
    assert normata("dump", "beta", "--output", "beta.json", "--files", "bytes").code == 0
    for one in list(store.stored()):
        store.remove(one.place)
    assert f"of {store.address} cannot be read (Object at location" in normata("check").err
    assert normata("load", "beta.json", "--files", "bytes").code == 0
    assert normata("backup", "restore", "backup.db", "--force").code == 0
    assert everything(store) == whole
    assert normata("check").code == 0


def test_a_row_without_its_organization_is_refused(normata: Run, path: Path, folder: Path) -> None:
    del path
    bundle = bundle_file(folder, {"files": [file_row("nowhere")]})
    assert normata("load", bundle, "--files", "bytes").code == 1


def test_evidence_is_linked_to_the_controls_that_it_supports(normata: Run, path: Path, folder: Path) -> None:
    """All in one transaction: where a control is not there, nothing is made."""
    (folder / "report.txt").write_bytes(b"done")
    before = contents(Path(f"{path}.files"))
    add = ("evidence", "add", "report.txt", "--organization", "alpha")
    assert "has a control 'X.9'" in failed(normata(*add, "--control", "sun.A.1", "--control", "X.9"))
    assert contents(Path(f"{path}.files")) == before
    done = normata(*add, "--control", "sun.A.1", "--control", "A.2", "--control", "sun.A.1", "--framework", "SUN-2")
    assert done.code == 0, done.err
    made = done.out.partition(":")[0]
    links = [row for row in json.loads(normata("dump", "alpha").out)["links"] if row["fromId"] == made]
    assert {(row["fromKind"], row["relation"], row["toKind"], row["toId"]) for row in links} == {
        ("evidence", "SUPPORTS", "controls", one) for one in ("sun.A.1", "sun.A.2")
    }
    assert len({row["createdAt"] for row in links}) == 1


def test_evidence_is_added_from_files(normata: Run, path: Path, folder: Path) -> None:
    (folder / "report.pdf").write_bytes(b"%PDF")
    (folder / "data").write_bytes(b"")
    done = normata("evidence", "add", "report.pdf", "data", "--organization", "alpha", "--until", "2027-06-30")
    assert done.code == 0, done.err
    first, *hashes = done.out.splitlines()
    assert first.endswith(": report.pdf")
    assert hashes == [
        f"{sha256(content).hexdigest()}  {name}" for content, name in ((b"%PDF", "report.pdf"), (b"", "data"))
    ]
    bundle = json.loads(normata("dump", "alpha").out)
    (made,) = (row for row in bundle["evidence"] if row["id"] == first.partition(":")[0])
    files = {row["id"]: row for row in bundle["files"]}
    assert [files[one]["mediaType"] for one in made["fileIds"]] == ["application/pdf", "application/octet-stream"]
    assert (made["validUntil"], made["type"]) == ("2027-06-30T00:00:00.000Z", "FILE")
    assert all(files[one]["attachedAt"] for one in made["fileIds"])
    before = contents(Path(f"{path}.files"))
    assert normata("evidence", "add", "report.pdf", "--organization", "alpha", "--until", "someday").code == 1
    assert "cannot be read" in failed(normata("evidence", "add", "nowhere", "--organization", "alpha"))
    assert contents(Path(f"{path}.files")) == before
    assert normata("check").code == 0
