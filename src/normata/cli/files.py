"""Files that commands write: private to their owner, complete or not at all, and never overwriting by accident."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import typer

from normata.core.log import visible
from normata.errors import CommandError


@contextmanager
def replacing(path: Path, *, force: bool) -> Iterator[Path]:
    """A new, empty file that replaces ``path`` once the block has succeeded.

    Until then, whatever is at ``path`` stays. Raises CommandError if it must not be replaced.
    """
    require_replaceable(path, force=force)
    existed = path.exists()
    with part_beside(path) as part:
        yield part
        require_replaceable(path, force=force or existed)  # it may have been replaced meanwhile
        put_in_place(part, path)


def write_table(path: Path, head: Sequence[str], rows: Iterable[Sequence[str]], *, force: bool) -> None:
    """Write a table (CSV) in which no spreadsheet interprets a cell as a formula. Raises as :func:`replacing`."""
    import csv

    from normata.core.schema.text import harmless

    with replacing(path, force=force) as part, part.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(head)
        table.writerows(map(harmless, cells) for cells in rows)


def require_replaceable(path: Path, *, force: bool) -> None:
    """Raise CommandError unless ``path`` is free, or a regular file that may be replaced.

    Without ``force``, the user at the terminal is asked; without a terminal the answer is no.
    """
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISREG(found.st_mode):
        raise CommandError(f"{path} is not a regular file, so it is not replaced")
    if force:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise CommandError(f"{path} exists already; --force replaces it")
    if not typer.confirm(visible(f"{path} exists already. Replace it?"), err=True):
        raise CommandError(f"{path} was not replaced")


@contextmanager
def part_beside(path: Path) -> Iterator[Path]:
    """A new, empty file in the folder of ``path``, private to its owner; removed after the block unless moved."""
    import tempfile

    try:
        handle, name = tempfile.mkstemp(prefix=".normata-", suffix=".part", dir=path.absolute().parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None  # without the name of the temporary file
    os.close(handle)
    part = Path(name)
    try:
        yield part
    finally:
        part.unlink(missing_ok=True)


def put_in_place(part: Path, path: Path) -> None:
    """Give a complete file its name, so that after a power cut either this or the previous file exists."""
    _flush(part)
    part.replace(path)
    with suppress(OSError):  # some file systems cannot flush a folder; the file is in place already
        _flush(path.absolute().parent)


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def readable_by_others(paths: Iterator[Path] | list[Path]) -> Iterator[str]:
    """A sentence for each of these files that exists and that others than its owner may read or write."""
    for path in paths:
        try:
            mode = stat.S_IMODE(path.stat().st_mode)
        except OSError:
            continue
        if mode & 0o077:
            yield f"{path} is not for its owner alone (its mode is {mode:04o}); run chmod 600 {path}"


def database_files(path: Path) -> list[Path]:
    """The files of a SQLite database: itself, and those that SQLite keeps beside it."""
    return [path, *(Path(f"{path}{suffix}") for suffix in ("-wal", "-shm", "-journal"))]
