"""Reading a bundle ends, and takes a bounded share of the memory, whatever the file is."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from pydantic_core import from_json, to_json

from normata.bundle import reading
from normata.bundle.reading import read
from normata.core.documents import files
from tests.bundle.test_reading import LABEL, faults_of, file_of


def nested(levels: int) -> Any:
    value: Any = 1
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


def test_as_deep_as_everything_reads_it_again(tmp_path: Path) -> None:
    """Deeper values were stored once, and then no reader took the dump."""
    for levels in (1, 198, 199):
        row = {"id": "p", "content": nested(levels)}
        [found] = read([file_of(tmp_path, json.dumps({"policies": [row]}))])
        assert dict(found.values) == row
        assert from_json(to_json(row)) == row


@pytest.mark.parametrize("levels", [200, 201, 254, 255, 600, 100_000])
def test_what_is_too_deep_is_refused_with_its_place(tmp_path: Path, levels: int) -> None:
    deep = "[" * levels + "]" * levels
    content = f'{{"policies": [{{"id": "o", "content": {{}}}}, {{"id": "p", "title": [], "content": {deep}}}]}}'
    [(_, place, reason)] = faults_of(file_of(tmp_path, content))
    # What is so deep that Python does not decode it is blamed on its row.
    assert place == ("/policies/1" if levels == 100_000 else "/policies/1/content")
    assert reason == "is nested deeper than 199 levels"


def test_a_device_is_refused(tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to("/dev/zero")
    for path in (Path("/dev/zero"), link):
        assert faults_of(path) == [(path.name, "", "is neither a regular file nor a pipe")]


def write_into(pipe: Path, start: bytes, again: bytes) -> None:
    """Write into a pipe without an end, on another thread, until the reader has gone."""

    def work() -> None:
        with contextlib.suppress(BrokenPipeError), pipe.open("wb", buffering=0) as file:
            file.write(start)
            while True:
                file.write(again)

    threading.Thread(target=work, daemon=True).start()


@pytest.mark.parametrize(
    ("content", "place", "reason"),
    [
        ((b"", b"\0" * 10_000), "", "is not JSON: expecting value at line 1 column 1"),
        ((b"", b" " * 10_000), "", "is a pipe that holds more than 300,000 bytes: put them into a file"),
        ((b'{"labels": [{}', b",{}" * 3_000), "", "is a pipe that holds more than 300,000 bytes: put them into a file"),
        ((b'{"labels": [{},{"name": "', b"x" * 10_000), "/labels/1", "is longer than 100,000 characters"),
        ((b'{"labels": [{},{"name": ', b"[1]," * 3_000), "", "is not JSON: expecting"),
        ((b'{"labels": [{},{"name": [', b"[1]," * 3_000), "/labels/1", "is longer than 100,000 characters"),
        ((b'{"labels": [{},{"name": ', b"[" * 3_000), "/labels/1", "is nested deeper than 199 levels"),
        ((b'{"tags": [{}', b",{}" * 3_000), "", "is a pipe that holds more than 300,000 bytes: put them into a file"),
        ((b'{"', b"x" * 10_000), "", "is longer than 100,000 characters"),
    ],
)
def test_a_pipe_without_an_end_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: tuple[bytes, bytes], place: str, reason: str
) -> None:
    monkeypatch.setattr(files, "_MAX_FROM_A_PIPE", 300_000)
    monkeypatch.setattr(reading, "_LONGEST_VALUE", 100_000)
    monkeypatch.setattr(reading, "_PIECE", 20_000)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    write_into(pipe, *content)
    found = faults_of(pipe)
    assert found[-1][1] == place
    assert found[-1][2].startswith(reason)


def test_a_pipe_is_read_as_a_file_is(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    content = json.dumps({"labels": [LABEL | {"id": str(number)} for number in range(5_000)]}).encode()
    threading.Thread(target=lambda: pipe.write_bytes(content), daemon=True).start()
    assert [row.values["id"] for row in read([pipe])] == [str(number) for number in range(5_000)]


def test_a_fault_at_the_beginning_of_a_large_file_is_found_without_reading_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_LONGEST_VALUE", 1_000)
    monkeypatch.setattr(reading, "_PIECE", 100)
    [(_, _, reason)] = faults_of(file_of(tmp_path, '{"labels": [nonsense' + " " * 1_000_000))
    assert reason == "is not JSON: expecting value at line 1 column 13"


def test_a_load_has_a_largest_number_of_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_MAX_ROWS", 10)
    one = file_of(tmp_path, '{"labels": [{},{},{},{},{}]}', "one.json")
    two = file_of(tmp_path, '{"tasks": [{},{},{}], "labels": [{},{}]}', "two.json")
    assert len(read([one, two])) == 10
    two.write_text('{"tasks": [{},{},{}], "labels": [{},1,{}]}')
    assert [(name, place) for name, place, _ in faults_of(one, two)] == [
        ("two.json", "/labels/1"),
        ("two.json", "/labels/2"),
    ]
