"""A folder in memory, for what ends with the tests."""

from __future__ import annotations

import shutil
from contextlib import suppress


def folder() -> str | None:
    """A folder in memory with room for databases; null where there is none.

    Each test has a database of its own, waits for the disk at each commit, and removes it. On a disk, that takes a
    quarter of what a small test takes. To make the thousand files of one of PostgreSQL's, where many have just been
    removed, takes some file systems half a second.
    """
    memory = "/dev/shm"  # noqa: S108 - whoever uses it makes a folder of their own in it
    with suppress(OSError):
        if shutil.disk_usage(memory).free > 2 * 2**30:
            return memory
    return None
