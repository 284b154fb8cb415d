"""Counts that all processes of one machine share, without a server: a small table in memory, one for each database.

It is a file that the processes map into their memory: in ``/dev/shm``, which is memory on Linux, else in the folder for
temporary files. Each process has a column of the table and writes no other; who wants to know a count adds the columns
up. So to count takes no lock and no call of the system, and no process keeps another one waiting, however it stops or
dies. Only to give a key its row takes a lock, which the kernel ends with the process that holds it.

Where there can be no such file, each process counts for itself, and the log says why.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import secrets
import stat
import tempfile
from contextlib import suppress
from fcntl import LOCK_EX, LOCK_NB, LOCK_UN, lockf
from pathlib import Path
from time import monotonic_ns
from typing import NamedTuple
from urllib.parse import urlsplit

import structlog

TICKS = 100  # a second, in which time is counted
LONGEST_WINDOW = 3_600  # seconds; what ends later was counted before the machine was started anew
_TICK = 10**9 // TICKS  # nanoseconds

# The table, in words of 64 bits. A row is the mark of its key, and a word of each column: when its window ends, in
# ticks, and in the lower bits how many it has counted, which no process can fill in the longest window. A key has its
# row in one of the sets. A keyed hash chooses it, so that nobody can fill another one's set.
_VERSION = 1  # of this layout, in the file's name
_WORD = 8  # bytes
_HEAD = 32  # words; two are the key of the hash, one is the number of columns that were ever taken
_TAKEN = 2
_ROW = 32
_ROWS = 8  # of a set
_SETS = 1_024
_SIZE = _WORD * (_HEAD + _SETS * _ROWS * _ROW)  # 2 MiB
_COMMON = _ROW - 1  # the column of all processes for which no other is left: they may lose a count now and then
_COUNT_BITS = 26
_MOST = 2**_COUNT_BITS - 1

_TABLE_LOCK = 0  # the byte that is locked to give a key its row; those of the columns follow
_TRIES = 1_000  # to have a lock, some microseconds each: the holder may have been stopped
_LOOK_AGAIN = 5 * TICKS  # ticks until it is looked whether the file is still there


class Window(NamedTuple):
    """A window of a key: its end, in ticks; the key's row, and the mark that it has; the process's own word in it.

    Of this window are the words from ``none``, where nothing has been counted, to ``most``.
    """

    end: int
    row: int
    mark: int
    own: int
    none: int
    most: int


class Counters:
    """The table of one database, opened when something is first counted.

    There is one in a process, for one thread: the event loop's. ``folder`` is where the file is to be, for tests.
    """

    def __init__(self, database_url: str, folder: Path | None = None) -> None:
        self.path = path_of(database_url, folder)
        self._remembered: list[dict[str, Window]] = []
        self._look_again_at = 0
        self._fd: int | None = None
        self._map: mmap.mmap | None = None
        self._view = memoryview(b"")
        self._column = 1
        self._has_warned = False

    def windows(self) -> dict[str, Window]:
        """Where to remember the windows of some keys: it is emptied when the table is another one."""
        windows: dict[str, Window] = {}
        self._remembered.append(windows)
        return windows

    def count(self, windows: dict[str, Window], name: str, key: str, length: int) -> tuple[int, int]:
        """Count one of ``key`` for ``name``: how many there are now in this window, and how many ticks of it are left.

        ``length`` is in ticks. ``windows`` are those of this name.
        """
        now = monotonic_ns() // _TICK  # of a clock that nobody sets, the same for all processes
        if now >= self._look_again_at:
            self._look_again_at = now + _LOOK_AGAIN
            self._look_after_file()
        view, window = self._view, windows.get(key)
        if window is None or now >= window[0] or view[window[1]] != window[2]:  # the row may be another key's by now
            window = windows[key] = self._begin(f"{name} {key}", length, now)
        end, row, _, own, none, most = window
        count = view[own] = view[own] + 1
        taken = view[_TAKEN]
        if taken == 1:
            return count - none, end - now
        total = 0
        for word in view[row + 1 : row + 1 + taken].tolist():
            if none < word <= most:  # another process may be in the next window already
                total += word - none
        return total, end - now

    def close(self) -> None:
        """Let go of the table. What was counted stays for the other processes."""
        self._view.release()
        self._view = memoryview(b"")
        if self._map is not None:
            self._map.close()
        if self._fd is not None:
            os.close(self._fd)  # this ends the locks, too
        self._map = self._fd = None
        self._look_again_at = 0
        for windows in self._remembered:
            windows.clear()

    def _begin(self, key: str, length: int, now: int) -> Window:
        """The window of a key that another process has begun already, else a new one."""
        view = self._view
        digest = hashlib.blake2b(key.encode(errors="surrogatepass"), digest_size=16, key=view[:2].tobytes()).digest()
        mark = int.from_bytes(digest[:8], "big") or 1
        first = _HEAD + _ROW * _ROWS * (int.from_bytes(digest[8:], "big") % _SETS)
        is_locked = self._fd is not None and _lock(self._fd, _TABLE_LOCK)
        try:
            row = self._row(mark, first, now)
            ends = (word >> _COUNT_BITS for word in view[row + 1 : row + _ROW].tolist())
            end = max((end for end in ends if now < end <= now + length), default=now + length)
            own, none = row + self._column, end << _COUNT_BITS
            if not none <= view[own] <= none + _MOST:
                view[own] = none
        finally:
            if self._fd is not None and is_locked:
                _unlock(self._fd, _TABLE_LOCK)
        return Window(end, row, mark, own, none, none + _MOST)

    def _row(self, mark: int, first: int, now: int) -> int:
        """The row of a key, in its set: the one that it has, else one where nothing is counted, else the smallest."""
        view, latest = self._view, now + LONGEST_WINDOW * TICKS
        rows = range(first, first + _ROW * _ROWS, _ROW)
        for row in rows:
            if view[row] == mark:
                return row
        sizes = [
            sum(word & _MOST for word in view[row + 1 : row + _ROW].tolist() if now < word >> _COUNT_BITS <= latest)
            for row in rows
        ]
        chosen = rows[sizes.index(min(sizes))]
        for word in range(chosen + 1, chosen + _ROW):
            view[word] = 0
        view[chosen] = mark  # last: if this process ends before, nobody has another one's count
        return chosen

    def _look_after_file(self) -> None:
        """Open the file; again where somebody has removed it, because processes that start later have another one."""
        if self._map is not None and (self._fd is None or _is_at(self._fd, self.path)):
            return
        look_again_at = self._look_again_at
        self.close()
        try:
            self._fd = _open_own(self.path)
            self._map = mmap.mmap(self._fd, _SIZE)
        except OSError as error:
            self.close()
            self._map = mmap.mmap(-1, _SIZE)
            self._map[: 2 * _WORD] = secrets.token_bytes(2 * _WORD)
            if not self._has_warned:
                self._has_warned = True
                structlog.get_logger("normata").warning("limits_not_shared", path=str(self.path), reason=str(error))
        self._look_again_at = look_again_at
        self._view = memoryview(self._map).cast("Q")
        self._take_column()

    def _take_column(self) -> None:
        """Have the first column that no living process has."""
        self._column = 1
        if self._fd is not None:
            free = (column for column in range(1, _COMMON) if _lock(self._fd, column, tries=1))
            self._column = next(free, _COMMON)
        self._view[_TAKEN] = max(self._view[_TAKEN], self._column)


def path_of(database_url: str, folder: Path | None = None) -> Path:
    """The file of a database's table. Its name tells nothing of who uses the database, nor of the password."""
    parts = urlsplit(database_url)
    where = str(Path(parts.path[1:]).resolve()) if parts.scheme.startswith("sqlite") else parts.path
    database = "\n".join((parts.scheme.partition("+")[0], parts.netloc.rpartition("@")[2], where))
    name = hashlib.sha256(database.encode()).hexdigest()[:32]
    if folder is None:
        shared = Path("/dev/shm")  # noqa: S108 - what others put there is refused
        folder = shared if os.access(shared, os.W_OK | os.X_OK) else Path(tempfile.gettempdir())
    return folder / f"normata-limits-{_VERSION}-{os.geteuid()}-{name}"


def _open_own(path: Path) -> int:
    """A descriptor of a file of this size that is this user's alone. Raises OSError.

    Anybody may put a link or a file of their own there first: that is refused, and never written.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    try:
        _prepare(fd)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _prepare(fd: int) -> None:
    """Write an empty table where there is none yet. Raises OSError where the file is not one to use."""
    found = os.fstat(fd)
    is_own = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077
    if not is_own or found.st_nlink != 1:
        raise PermissionError("the file there is not this user's alone")
    if not _lock(fd, _TABLE_LOCK):
        raise TimeoutError("another process does not let go of the file")
    size = os.fstat(fd).st_size
    if size > _SIZE:
        raise FileExistsError("the file there is another one")
    if size < _SIZE:  # it is new, or who made it was killed meanwhile
        # Every page is written now: to use one for which no room is left would end the process.
        blank = secrets.token_bytes(2 * _WORD) + bytes(_SIZE - 2 * _WORD)
        if os.pwrite(fd, blank, 0) != _SIZE:
            raise OSError("there is no room for the file")
    _unlock(fd, _TABLE_LOCK)


def _is_at(fd: int, path: Path) -> bool:
    with suppress(OSError):
        return os.path.samestat(os.fstat(fd), path.stat(follow_symlinks=False))
    return False


def _lock(fd: int, byte: int, tries: int = _TRIES) -> bool:
    """Lock a byte of a file, and say whether this was possible in time."""
    for attempt in range(tries):
        with suppress(OSError):
            lockf(fd, LOCK_EX | LOCK_NB, 1, byte)
            return True
        if attempt + 1 < tries:
            os.sched_yield()
    return False


def _unlock(fd: int, byte: int) -> None:
    lockf(fd, LOCK_UN, 1, byte)
