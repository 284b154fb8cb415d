"""The table that processes count in: what each counts is known to all, and nobody can spoil it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import structlog
from structlog.testing import capture_logs
from structlog.typing import EventDict

from normata.core.http import counters as module
from normata.core.http.counters import TICKS, Counters, path_of
from normata.core.http.rate_limit import Limit

URL = "postgresql://user:hunter2-secret@db.example:5432/normata"

# Counts as often as it is told, and prints how many it was allowed; `forever` until it is killed.
COUNTING = """
import sys
from pathlib import Path
from normata.core.http.counters import Counters
from normata.core.http.rate_limit import Limit

folder, quota, times = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
limit = Limit(Counters(sys.argv[4], folder), "guesses", quota, window=3600)
limit.seconds_to_wait("somebody else")
print("ready", flush=True)
sys.stdin.readline()
if times == "forever":
    while True:
        limit.seconds_to_wait("key")
        limit.seconds_to_wait("other")
print(sum(limit.seconds_to_wait("key") == 0 for _ in range(int(times))), flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def counters(tmp_path: Path) -> Iterator[Counters]:
    made = Counters(URL, tmp_path)
    yield made
    made.close()


@pytest.fixture
def logs() -> Iterator[list[EventDict]]:
    """What is logged, whatever another test has configured."""
    before = structlog.get_config()
    structlog.reset_defaults()
    with capture_logs() as entries:
        yield entries
    structlog.configure(**before)


@contextmanager
def counting(folder: Path, quota: int, times: int | str, count: int = 1) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that have opened the table, and wait for a line to count."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", COUNTING, str(folder), str(quota), str(times), URL],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(count)
    ]
    try:
        for process in processes:
            assert line(process) == "ready"
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def go_on(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def window_left(limit: Limit, key: str) -> int:
    """Use up what is left for a key, and say how many seconds it is refused."""
    for _ in range(10_000):
        if wait := limit.seconds_to_wait(key):
            return wait
    raise AssertionError("it is never refused")


# --- Many processes


def test_processes_that_count_at_once_stay_within_one_limit(tmp_path: Path) -> None:
    """None is allowed more. Two that reach the limit in the same moment may both be refused."""
    with counting(tmp_path, 1_000, 900, count=4) as processes:
        for process in processes:
            go_on(process)
        allowed = sum(int(line(process)) for process in processes)
    assert 997 <= allowed <= 1_000


def test_what_one_process_has_used_up_is_used_up_for_others(tmp_path: Path, counters: Counters) -> None:
    with counting(tmp_path, 5, 3, count=2) as processes:
        for process, allowed in zip(processes, (3, 2), strict=True):
            go_on(process)
            assert int(line(process)) == allowed
        assert 1 <= Limit(counters, "guesses", 5, window=3_600).seconds_to_wait("key") <= 3_600
        assert Limit(counters, "guesses", 5, window=3_600).seconds_to_wait("another") == 0
        assert Limit(counters, "other guesses", 5, window=3_600).seconds_to_wait("key") == 0


def test_processes_that_are_killed_leave_their_counts_and_their_columns(tmp_path: Path, counters: Counters) -> None:
    """Whatever they were doing, and however many come after each other."""
    limit = Limit(counters, "guesses", 10, window=3_600)
    assert limit.seconds_to_wait("key") == 0
    for _ in range(3):
        with counting(tmp_path, 10, "forever") as (process,):
            go_on(process)
            time.sleep(0.2)
            process.kill()
        assert limit.seconds_to_wait("key") > 0
        assert limit.seconds_to_wait("other") > 0
    assert counters._view[module._TAKEN] == 2, "one of this process, and one that the others had after each other"


def test_a_process_that_is_stopped_stops_no_other(tmp_path: Path, counters: Counters) -> None:
    """Wherever it is, even with the lock."""
    limit = Limit(counters, "guesses", 10, window=3_600)
    with counting(tmp_path, 10, "forever") as (process,):
        go_on(process)
        process.send_signal(signal.SIGSTOP)
        started = time.monotonic()
        assert [limit.seconds_to_wait(f"key {number}") for number in range(20)] == [0] * 20
        assert time.monotonic() - started < 2
        process.send_signal(signal.SIGCONT)


HOLDING = """
import fcntl, sys
file = open(sys.argv[1], "r+b")
fcntl.lockf(file, fcntl.LOCK_EX, 1, 0)
print("ready", flush=True)
sys.stdin.readline()
"""


def test_who_holds_the_lock_for_ever_keeps_nobody_from_counting(counters: Counters) -> None:
    limit = Limit(counters, "guesses", 2)
    limit.seconds_to_wait("opens the table")
    with subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(counters.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert line(process) == "ready"
        started = time.monotonic()
        assert [limit.seconds_to_wait("key") for _ in range(2)] == [0, 0]
        assert limit.seconds_to_wait("key") > 0
        assert time.monotonic() - started < 1
        process.kill()


# --- The file


def test_the_file_is_one_of_its_owner_alone(counters: Counters) -> None:
    Limit(counters, "guesses", 5).seconds_to_wait("key")
    found = counters.path.stat()
    assert (found.st_mode & 0o777, found.st_uid, found.st_size) == (0o600, os.geteuid(), module._SIZE)
    assert b"key" not in counters.path.read_bytes()


def test_nothing_is_opened_for_no_limit(counters: Counters) -> None:
    limit = Limit(counters, "guesses", 0)
    marks: list[tuple[bytes, bytes]] = []
    assert {limit.seconds_to_wait("key", marks) for _ in range(100)} == {0}
    assert not marks
    assert not counters.path.exists()


def test_the_name_is_the_databases() -> None:
    same = "postgresql+asyncpg://other:password@db.example:5432/normata"
    assert path_of(URL) == path_of(same)
    assert "hunter2" not in str(path_of(URL))
    others = (URL.replace("5432", "5433"), f"{URL}2", "sqlite:///normata.db", "sqlite:////normata.db")
    assert len({path_of(url) for url in (URL, *others)}) == 5
    assert path_of("sqlite:///normata.db") == path_of(f"sqlite:///{Path.cwd()}/normata.db")


def link(path: Path) -> None:
    path.symlink_to(path.parent / "target")


def hard_link(path: Path) -> None:
    (path.parent / "target").touch(mode=0o600)
    path.hardlink_to(path.parent / "target")


def readable(path: Path) -> None:
    path.touch()
    path.chmod(0o644)


def larger(path: Path) -> None:
    path.touch(mode=0o600)
    path.write_bytes(bytes(module._SIZE + 8))


def another_users(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only the superuser can give a file away")
    path.touch(mode=0o600)
    os.chown(path, 65_534, 65_534)


@pytest.mark.parametrize("put", [link, hard_link, readable, larger, another_users, Path.mkdir, os.mkfifo])
def test_what_a_stranger_has_put_there_is_not_touched(
    put: Callable[[Path], object], counters: Counters, logs: list[EventDict]
) -> None:
    """Nor waited for: this process then counts for itself, and says so once."""
    put(counters.path)
    before = sorted((path.name, path.lstat().st_size, path.lstat().st_mtime) for path in counters.path.parent.iterdir())
    limit = Limit(counters, "guesses", 2)
    assert [limit.seconds_to_wait("key") > 0 for _ in range(3)] == [False, False, True]
    after = sorted((path.name, path.lstat().st_size, path.lstat().st_mtime) for path in counters.path.parent.iterdir())
    assert after == before
    assert [(entry["event"], entry["path"]) for entry in logs] == [("limits_not_shared", str(counters.path))]


def test_a_file_that_was_half_made_is_made_anew(counters: Counters) -> None:
    counters.path.touch(mode=0o600)
    counters.path.write_bytes(b"half")
    limit = Limit(counters, "guesses", 1)
    assert [limit.seconds_to_wait("key") > 0 for _ in range(2)] == [False, True]
    assert counters.path.stat().st_size == module._SIZE


def test_where_there_is_no_room_each_process_counts_for_itself(
    counters: Counters, logs: list[EventDict], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "pwrite", lambda _fd, content, _offset: len(content) // 2)
    limit = Limit(counters, "guesses", 1)
    assert [limit.seconds_to_wait("key") > 0 for _ in range(2)] == [False, True]
    assert [entry["event"] for entry in logs] == ["limits_not_shared"]


def test_a_file_that_was_removed_is_followed_by_another_for_all(
    counters: Counters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is started later makes it; those that run find it some seconds later."""
    clock = time.monotonic_ns()
    monkeypatch.setattr(module, "monotonic_ns", lambda: clock)
    limit = Limit(counters, "guesses", 1, window=3_600)
    limit.seconds_to_wait("key")
    counters.path.unlink()
    later = Counters(URL, tmp_path)
    try:
        assert Limit(later, "guesses", 1, window=3_600).seconds_to_wait("another") == 0
        assert limit.seconds_to_wait("another") == 0, "not yet"
        clock += module._LOOK_AGAIN * module._TICK
        assert limit.seconds_to_wait("another") > 0
    finally:
        later.close()


# --- Windows and rows


def test_a_window_ends_when_it_was_said_to(counters: Counters, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = time.monotonic_ns()
    monkeypatch.setattr(module, "monotonic_ns", lambda: clock)
    limit = Limit(counters, "guesses", 3)
    wait = window_left(limit, "key")
    clock += (wait - 1) * 10**9 - 1
    assert limit.seconds_to_wait("key") > 0
    clock += 10**9 + 1
    assert [limit.seconds_to_wait("key") > 0 for _ in range(4)] == [False, False, False, True]
    assert window_left(limit, "key") == 60, "the next window is a whole one"


def test_a_window_is_the_same_for_all_processes(
    counters: Counters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It begins with the first that any of them counts."""
    clock = time.monotonic_ns()
    monkeypatch.setattr(module, "monotonic_ns", lambda: clock)
    later = Counters(URL, tmp_path)
    first, second = Limit(counters, "guesses", 2), Limit(later, "guesses", 2)
    try:
        assert first.seconds_to_wait("key") == 0
        monkeypatch.setattr(module, "_lock", lambda _fd, byte, **_: byte != counters._column)
        clock += 30 * 10**9
        assert second.seconds_to_wait("key") == 0
        assert (first.seconds_to_wait("key"), second.seconds_to_wait("key")) == (30, 30)
        clock += 30 * 10**9
        assert second.seconds_to_wait("key") == 0
        clock += 10 * 10**9
        assert first.seconds_to_wait("key") == 0
        assert first.seconds_to_wait("key") == 50
    finally:
        later.close()


def test_what_was_counted_before_the_machine_was_started_anew_is_forgotten(
    counters: Counters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock begins at nothing then, and a file in a folder on a disk is still there."""
    clock = 10**17
    monkeypatch.setattr(module, "monotonic_ns", lambda: clock)
    limit = Limit(counters, "guesses", 1)
    window_left(limit, "key")
    counters.close()
    clock = 10**10
    assert [limit.seconds_to_wait("key") > 0 for _ in range(2)] == [False, True]


def test_more_keys_than_rows_lock_nobody_out(counters: Counters) -> None:
    """Those that count most keep their rows."""
    limit = Limit(counters, "guesses", 3, window=3_600)
    assert window_left(limit, "guesser") > 0
    assert not any(limit.seconds_to_wait(f"key {number}") for number in range(2 * module._SETS * module._ROWS))
    assert limit.seconds_to_wait("guesser") > 0
    assert len(limit._windows) <= 10_001


def test_a_long_key_is_not_remembered_as_it_is(counters: Counters) -> None:
    limit = Limit(counters, "guesses", 1)
    keys = ["x" * 100_000, "x" * 99_999 + "y", "\ud800" * 300, "\ud800"]
    assert [limit.seconds_to_wait(key) > 0 for key in keys * 2] == [False] * 4 + [True] * 4
    assert max(map(len, limit._windows)) <= 255


@pytest.mark.parametrize(("quota", "window"), [(-1, 60), (10_000_001, 60), (1, 0), (1, 3_601)])
def test_what_cannot_be_counted_is_refused(quota: int, window: int, counters: Counters) -> None:
    with pytest.raises(ValueError, match="cannot be counted"):
        Limit(counters, "guesses", quota, window)


def test_later_processes_share_the_last_column(
    tmp_path: Path, counters: Counters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_lock", lambda _fd, byte, **_: byte == module._TABLE_LOCK)
    others = [Counters(URL, tmp_path) for _ in range(2)]
    limits = [Limit(one, "guesses", 4, window=3_600) for one in (counters, *others)]
    try:
        assert [limit.seconds_to_wait("key") > 0 for limit in limits * 2] == [False] * 4 + [True] * 2
        assert {one._column for one in (counters, *others)} == {module._COMMON}
    finally:
        for one in others:
            one.close()


def test_ticks_are_fine_enough() -> None:
    assert TICKS >= 10
