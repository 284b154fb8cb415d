"""Files that commands write: for their owner alone, whole or not at all, and never over something by accident."""

from __future__ import annotations

import json
import os
import shutil
import threading
from contextlib import closing
from pathlib import Path

import pytest

from normata.cli import files
from normata.errors import CommandError
from tests import world
from tests.cli.commands import GAMMA, Done, Run, failed, mode, on_terminal
from tests.databases import open_url


@pytest.fixture(scope="module")
def template(empty_sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with an organization in it, to be copied."""
    path = Path(shutil.copy(empty_sqlite_template, tmp_path_factory.mktemp("gamma") / "gamma.db"))
    with closing(open_url(f"sqlite:///{path}")) as database:
        world.load(database, GAMMA)
    return path


@pytest.fixture(autouse=True)
def loaded(template: Path, folder: Path) -> None:
    """A database with an organization, and a umask that would let others read."""
    os.umask(0o022)
    shutil.copy(template, folder / "normata.db")


def test_a_dump_is_for_its_owner_alone(normata: Run, folder: Path) -> None:
    assert normata("dump", "--output", "dump.json") == Done(0, "", "")
    assert mode(folder / "dump.json") == 0o600


def test_no_moment_lets_others_read(folder: Path) -> None:
    """The part that becomes the file is private before anything is in it, and gone where the block fails."""
    path = folder / "dump.json"

    def fail() -> None:
        with files.replacing(path, force=False) as part:
            assert (mode(part), part.stat().st_size, part.parent) == (0o600, 0, folder)
            assert not path.exists()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert [file.name for file in folder.glob("*.part")] == []
    assert not path.exists()


@pytest.mark.parametrize("command", [("dump", "--output"), ("backup", "make")], ids=" ".join)
def test_a_file_that_exists_is_replaced_only_where_that_is_said(
    normata: Run, folder: Path, command: tuple[str, ...]
) -> None:
    path = folder / "file"
    path.write_text("yesterday's")
    path.chmod(0o644)
    assert failed(normata(*command, "file")) == "file exists already; --force replaces it"
    assert path.read_text() == "yesterday's"
    assert normata(*command, "file", "--force").code == 0
    assert mode(path) == 0o600
    assert path.read_bytes() != b"yesterday's"


@pytest.mark.parametrize("command", [("dump", "--output"), ("backup", "make")], ids=" ".join)
@pytest.mark.parametrize("kind", ["device", "folder", "link", "link to nothing", "pipe"])
def test_what_is_no_regular_file_is_never_replaced(
    normata: Run, folder: Path, command: tuple[str, ...], kind: str
) -> None:
    path, target = folder / "other", folder / "target"
    match kind:
        case "device":
            path = Path("/dev/null")
        case "folder":
            path.mkdir()
        case "link":
            target.write_text("mine")
            path.symlink_to(target)
        case "link to nothing":
            path.symlink_to(target)
        case "pipe":
            os.mkfifo(path)
    before = path.lstat()
    told = failed(normata(*command, path, "--force"))
    assert told == f"{path} is not a regular file, so it is not replaced"
    after = path.lstat()
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
    assert target.exists() == (kind == "link")


def test_a_file_that_appears_meanwhile_is_kept(folder: Path) -> None:
    path = folder / "dump.json"
    with pytest.raises(CommandError, match="exists already"), files.replacing(path, force=False):
        path.write_text("somebody else's")
    assert path.read_text() == "somebody else's"


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 1), ("", 1)])
def test_whoever_sits_at_the_terminal_is_asked(folder: Path, answer: str, code: int) -> None:
    path = folder / "dump.json"
    path.write_text("yesterday's")
    ended, shown = on_terminal("dump", "--output", "dump.json", typed=f"{answer}\n")
    assert ended == code, shown
    assert "dump.json exists already. Replace it? [y/N]" in shown
    assert (path.read_text() == "yesterday's") == bool(code)


def test_two_dumps_at_once_leave_one_of_them_whole(folder: Path) -> None:
    path = folder / "dump.json"
    barrier = threading.Barrier(2)

    def write(text: str) -> None:
        with files.replacing(path, force=True) as part:
            barrier.wait(30)
            part.write_text(text)

    threads = [threading.Thread(target=write, args=(json.dumps([letter] * 1_000),)) for letter in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert json.loads(path.read_text()) in (["a"] * 1_000, ["b"] * 1_000)
    assert list(folder.glob(".normata*")) == []
