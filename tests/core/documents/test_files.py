"""Input files, whatever they are: reading them ends."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from normata.core.documents import files
from normata.core.documents.files import Unreadable, open_input, read_input


def write_into(pipe: Path, content: bytes, times: int = 1) -> None:
    """Write into a pipe, on another thread, until all is written or the reader has gone."""

    def work() -> None:
        with pipe.open("wb", buffering=0) as file:
            try:
                for _ in range(times):
                    file.write(content)
            except BrokenPipeError:
                pass

    threading.Thread(target=work, daemon=True).start()


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


@pytest.mark.parametrize("read", [open_input, lambda path: read_input(path, 100)])
def test_a_device_is_refused(read: Callable[[Path], object]) -> None:
    with pytest.raises(Unreadable, match="is neither a regular file nor a pipe"):
        read(Path("/dev/zero"))


def test_a_link_is_what_it_leads_to(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("/dev/zero")
    with pytest.raises(Unreadable, match="is neither a regular file nor a pipe"):
        open_input(link)


@pytest.mark.parametrize(
    ("name", "reason"),
    [("absent", "No such file or directory"), (".", "Is a directory"), ("\x00", "null byte")],
)
def test_what_cannot_be_opened(tmp_path: Path, name: str, reason: str) -> None:
    with pytest.raises(Unreadable, match=f"cannot be read: .*{reason}"):
        read_input(tmp_path / name, 100)


def test_a_file_has_a_largest_size(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 100)
    assert read_input(path, 100) == "x" * 100
    with pytest.raises(Unreadable, match="is larger than 99 bytes"):
        read_input(path, 99)


def test_text_is_utf_8_with_or_without_a_mark(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\xef\xbb\xbfGr\xc3\xb6\xc3\x9fe")
    assert read_input(path, 100) == "Größe"
    path.write_bytes(b"\xff")
    with pytest.raises(Unreadable, match="is not UTF-8 text"):
        read_input(path, 100)


def test_a_pipe_is_read_to_its_end(pipe: Path) -> None:
    write_into(pipe, b"x" * 100_000, times=30)
    assert len(read_input(pipe, 10_000_000)) == 3_000_000


def test_a_pipe_without_an_end_is_given_up(pipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_MAX_FROM_A_PIPE", 2_000_000)
    write_into(pipe, b"x" * 100_000, times=10**9)
    file = open_input(pipe)
    with pytest.raises(Unreadable, match="is a pipe that holds more than 2,000,000 bytes"):
        file.read()
    file.close()
