"""The commands ``backup make`` and ``backup restore``: a whole SQLite database in a file, and back.

PostgreSQL has tools of its own for this. This is not about archived records, which requests restore.
"""

from __future__ import annotations

import re
import shutil
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from normata.cli import files as output_files
from normata.cli.shared import DatabaseOption, ForceOption, Group, echo, progress, settings_with
from normata.errors import CommandError, Unavailable

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

    from normata.bundle.loading import Progress
    from normata.files.store import Place

app = typer.Typer(cls=Group, help="Make a backup of the whole database, or restore one.", no_args_is_help=True)

_PAGES_AT_ONCE = 1_000
_NUMBERED = re.compile(r"normata-[0-9]{8}T[0-9]{6}Z\.db")
_PATIENCE = 5.0  # seconds to wait for the lock on a SQLite file


@app.command()
def make(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="The file to write, readable only by its owner; with --keep a folder."),
    ],
    keep: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Write normata-TIME.db into the folder, and remove all but the newest N of such backups from it.",
            show_default=False,
        ),
    ] = None,
    force: ForceOption = False,
    database: DatabaseOption = None,
) -> None:
    """Write a backup of the whole database to a file, and check it. The service can keep running.

    The verifier keys of checkpoints are written to FILE.event-keys. The private key is not part of a backup. Uploaded
    files are copied to the folder FILE.files; with --keep, those that the newest backup has are linked instead.

    This is for SQLite. On PostgreSQL, use pg_dump or pg_basebackup.
    """
    folder = file
    if keep is not None:
        if not folder.is_dir():
            raise CommandError(f"there is no folder {folder}")
        file = folder / f"normata-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.db"
    from normata.core.db.sqlite.database import last_backup

    source = _path(database, "use pg_dump (with --format=custom), or pg_basebackup for the whole server")
    if not source.is_file():
        raise Unavailable(f"there is no file {source}")
    _require_other(file, source)
    with progress() as report_progress, output_files.replacing(file, force=force) as part:
        version = _copy(source, "rw", part, report_progress)
    echo(f"{file}: a backup of {source}, schema {version}, checked")
    _add_keys(file, database)
    _add_files(file, database, folder if keep is not None else None)
    with suppress(OSError):  # /metrics reads it; without the right to write there it stays as it is
        last_backup(source).touch()
    if keep is not None:
        for old in sorted(one for one in folder.iterdir() if _NUMBERED.fullmatch(one.name))[:-keep]:
            _keys_beside(old).unlink(missing_ok=True)
            shutil.rmtree(_files_beside(old), ignore_errors=True)
            old.unlink()
            echo(f"{old}: removed")


def _add_keys(backup: Path, url: str | None) -> None:
    """Write the verifier keys of each log next to a backup. A key that cannot be read is a warning."""
    from normata.events.keys import KeyUnusable, Signer

    signer = Signer(settings_with(database_url=url).event_key_file)
    with closing(_connect(backup, "ro&immutable=1")) as copied:
        owners = ["", *(owner for (owner,) in copied.execute("SELECT id FROM organization ORDER BY id"))]
    try:
        lines = [line for owner in owners if (line := signer.existing_verifier(owner)) is not None]
    except KeyUnusable as error:
        echo(f"warning: {error}; so there is no FILE.event-keys next to the backup", err=True)
        return
    if not lines:
        return  # nothing has been signed
    with output_files.replacing(_keys_beside(backup), force=True) as part:
        part.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _add_files(backup: Path, url: str | None, folder: Path | None) -> None:
    """Copy the uploaded files of a backup next to it. One that is missing is a warning."""
    from normata.files.copying import back_up
    from normata.files.opening import open_store

    store = open_store(settings_with(database_url=url))
    others = [] if folder is None else sorted(one for one in folder.glob("normata-*.db") if one != backup)
    earlier = _files_beside(others[-1]) if others else None
    for place in back_up(_places(backup), store, _files_beside(backup), earlier):
        echo(f"warning: {store.address} has no {place.folder}/{place.name}, so it is not in the backup", err=True)


def _restore_files(backup: Path, url: str | None) -> None:
    """Copy the uploaded files of a backup to where the store is."""
    from normata.files.copying import put_back
    from normata.files.folder_store import FolderStore
    from normata.files.opening import open_store

    store = open_store(settings_with(database_url=url))
    for place in put_back(_places(backup), FolderStore(_files_beside(backup)), store):
        echo(f"warning: the backup has no {place.folder}/{place.name}", err=True)


def _places(backup: Path) -> list[Place]:
    """Where the store has the files of a backup; none in one of an earlier version."""
    from normata.files.store import place_of

    with closing(_connect(backup, _mode(backup))) as copied:
        ours = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'file'"
        if not copied.execute(ours).fetchone()[0]:
            return []
        known = {name for _, name, *_ in copied.execute("PRAGMA table_info(file)")}
        there = "WHERE erased_at IS NULL" if "erased_at" in known else ""
        found = copied.execute(f"SELECT organization_id, id, sha256 FROM file {there} ORDER BY organization_id, id")  # noqa: S608 - of constants
        return [place_of(*row) for row in found]


def _files_beside(backup: Path) -> Path:
    return Path(f"{backup}.files")


def _keys_beside(backup: Path) -> Path:
    return Path(f"{backup}.event-keys")


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The backup to restore.")],
    force: ForceOption = False,
    database: DatabaseOption = None,
) -> None:
    """Replace the database with a backup: completely, or not at all. Stop the service first.

    Events that were not sealed yet when the backup was made are sealed.

    This is for SQLite. On PostgreSQL, use pg_restore.
    """
    from normata.core.schema import migrations

    target = _path(database, "use pg_restore")
    _require_other(file, target)
    if not file.is_file():  # SQLite would wait for a pipe, and reports nothing useful for a folder
        raise CommandError(f"there is no file {file}")
    output_files.require_replaceable(target, force=force)
    with progress() as report_progress, output_files.part_beside(target) as part:
        version = _copy(file, _mode(file), part, report_progress)
        if version not in migrations.known_versions():
            raise CommandError(f"{file} was made by a newer version of Normata; upgrade the program")
        with _unused(target):
            output_files.put_in_place(part, target)
    _restore_files(file, database)
    if version == migrations.head():  # else `normata upgrade` seals them
        _seal(target)
    echo(f"{target}: restored from {file}, schema {version}")
    echo("tokens that were revoked since the backup are valid again; `normata token revoke` revokes them")


def _seal(path: Path) -> None:
    """Seal what a busy service had not sealed yet when the backup was made."""
    from normata.core.db.opening import open_database
    from normata.events.sealing import seal_all_now

    with closing(open_database(settings_with(database_url=f"sqlite:///{path}"))) as restored:
        for reason in seal_all_now(restored):
            echo(f"warning: {reason}", err=True)


def _path(url: str | None, tool: str) -> Path:
    """The file of the SQLite database. Raises CommandError, which names the ``tool`` to use, where it is another."""
    from normata.core.db.opening import open_database
    from normata.core.db.sqlite.database import SQLite

    with closing(open_database(settings_with(database_url=url))) as database:
        if not isinstance(database, SQLite):
            raise CommandError(f"the database is PostgreSQL: {tool}; see docs/postgresql.md")
        return database.path


def _require_other(file: Path, database: Path) -> None:
    """Raise CommandError if a backup has the path of the database, or of one of its files."""
    if file.resolve() in output_files.database_files(database.resolve()):
        raise CommandError(f"{file} belongs to the database itself; name another file")


def _mode(backup: Path) -> str:
    """How to open a backup: without writing to its folder, if that is safe."""
    return "rw" if Path(f"{backup}-wal").exists() else "ro&immutable=1"


def _copy(source: Path, mode: str, part: Path, report_progress: Progress) -> str:
    """Copy a consistent snapshot of a database, during writes too, and check the copy. Returns its schema."""
    import sqlite3

    def show(_status: int, remaining: int, total: int) -> None:
        report_progress("Copying pages", total - remaining, total)

    try:
        with closing(_connect(source, mode)) as reading, closing(_connect(part, "rw")) as writing:
            writing.execute("PRAGMA synchronous = OFF")  # the whole file is flushed before it is renamed
            reading.execute("BEGIN")  # one snapshot; else each change by others would restart the copy
            reading.execute("SELECT count(*) FROM sqlite_master").fetchone()
            reading.backup(writing, pages=_PAGES_AT_ONCE, progress=show)
            reading.execute("ROLLBACK")
            writing.execute("PRAGMA journal_mode = DELETE")  # so that the copy is a single file
        report_progress("Checking the copy", 0, 0)
        with closing(_connect(part, "ro")) as copied:
            return _checked(copied, source)
    except sqlite3.Error as error:
        raise CommandError(f"{source} cannot be copied: {error}") from error


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    """A connection to a file that exists."""
    import sqlite3

    return sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True, timeout=_PATIENCE, isolation_level=None)


def _checked(copied: sqlite3.Connection, source: Path) -> str:
    """The schema of a copy. Raises CommandError if it is not a complete database of Normata."""
    for (finding,) in copied.execute("PRAGMA integrity_check(1)"):
        if finding != "ok":
            raise CommandError(f"{source} is damaged: {finding}")
    for table, *_ in copied.execute("PRAGMA foreign_key_check"):
        raise CommandError(f"{source} is damaged: a row of {table} refers to a row that is not there")
    ours = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'alembic_version'"
    found = copied.execute("SELECT version_num FROM alembic_version") if copied.execute(ours).fetchone()[0] else ()
    for (version,) in found:
        return str(version)
    raise CommandError(f"{source} is not a database of Normata's")


@contextmanager
def _unused(path: Path) -> Iterator[None]:
    """Lock a database exclusively for the block. Raises CommandError if it is in use."""
    import sqlite3

    if not path.exists():
        _require_no_log(path)
        yield
        return
    with closing(_connect(path, "rw")) as connection:
        try:
            connection.execute("PRAGMA busy_timeout = 0")
            # A sole user can leave WAL mode. The log is deleted then.
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise CommandError(f"{path} is in use, so nothing was restored; stop the service first") from error
            # Else the file is damaged beyond use, which may be why it is being replaced.
        _require_no_log(path)
        yield


def _require_no_log(path: Path) -> None:
    """Raise CommandError if a log exists next to the path, because SQLite would apply it to the restored database."""
    for log in output_files.database_files(path)[1:]:
        if log.suffix != "-shm" and log.exists() and log.stat().st_size:
            raise CommandError(f"{log} holds changes of another database; move it away, then restore")
