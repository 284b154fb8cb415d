"""The command ``evidence add``: files on this machine become evidence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from normata.cli.shared import DatabaseOption, FilesArgument, Group, change, echo, fail, opened, progress, settings_with

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

    from normata.bundle.loading import Progress
    from normata.core.changes.unit_of_work import UnitOfWork
    from normata.core.db.transaction import Transaction
    from normata.files.files import Upload
    from normata.files.store import FileStore
    from normata.settings import Settings

_PIECE = 2**20  # bytes that are hashed at a time

app = typer.Typer(cls=Group, help="Add evidence.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """A group, although it has one command."""


@app.command()
def add(
    files: FilesArgument,
    *,
    organization: Annotated[
        str | None,
        typer.Option(metavar="ORG", help="The organization, by id or slug. Not needed if there is only one."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="What it is. Default: the name of the first file.")] = None,
    description: Annotated[str | None, typer.Option(help="More about it.")] = None,
    collected: Annotated[str | None, typer.Option(metavar="DATE", help="When it was collected.")] = None,
    until: Annotated[str | None, typer.Option(metavar="DATE", help="Until when it is valid.")] = None,
    control: Annotated[
        list[str] | None,
        typer.Option(help="A control that it supports, by id or identifier. May be repeated.", show_default=False),
    ] = None,
    framework: Annotated[
        str | None, typer.Option(help="The framework of the controls, if several have the identifier.")
    ] = None,
    database: DatabaseOption = None,
) -> None:
    """Upload files and make one piece of evidence of them, and print its id and each SHA-256.

    With --control it is linked to each of these controls of adopted frameworks. All is made, or nothing.
    """
    from normata.files import files as uploads
    from normata.files.opening import open_store
    from normata.files.store import place_of
    from normata.frameworks.control_names import find_control
    from normata.frameworks.model import Control
    from normata.identity.organization_lookup import find
    from normata.links.commands import Wanted, make_links
    from normata.links.model import End
    from normata.records.assurance import Evidence
    from normata.records.writing import create

    settings = settings_with(database_url=database)
    store = open_store(settings)
    sent = {"description": description, "collectedAt": collected, "validUntil": until}
    body: dict[str, Any] = {field: value for field, value in sent.items() if value is not None}
    with opened(database, create=False) as target:
        organization_id = target.read_now(lambda transaction: find(transaction, organization))

        def controls(transaction: Transaction) -> list[str]:
            return [find_control(transaction, organization_id, one, framework) for one in control or ()]

        target.read_now(controls)  # what is mistyped is said before large files are copied
        with progress() as report_progress:
            found = [_stored(path, organization_id, store, settings, report_progress) for path in files]

        def work(unit: UnitOfWork) -> Any:
            for path, one in zip(files, found, strict=True):
                uploads.add(unit, organization_id, path.name, one, settings.files_quota)
            named = {"name": name or files[0].name, "fileIds": [one.id for one in found]}
            row = create(unit, Evidence, organization_id, body | named)
            start = End(Evidence.array, row.id)
            ends = [End(Control.array, one) for one in controls(unit)]
            make_links(unit, organization_id, [Wanted(start, end, "SUPPORTS") for end in ends])
            return row

        try:
            row = change(target, work)
        except Exception:
            for one in found:
                store.remove(place_of(organization_id, one.id, one.sha256))
            raise
    echo(f"{row.id}: {row.name}")
    for path, one in zip(files, found, strict=True):
        echo(f"{one.sha256}  {path}")


def _stored(
    path: Path, organization_id: str, store: FileStore, settings: Settings, report_progress: Progress
) -> Upload:
    """A file, once its bytes are scanned and in the store."""
    import mimetypes
    from hashlib import sha256

    from normata.core.schema.table import new_id
    from normata.errors import MalwareFound
    from normata.files.files import Upload
    from normata.files.scanner import Scanner
    from normata.files.store import place_of

    limit = settings.max_file_bytes
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            if size > limit:
                fail(f"{path} is larger than NORMATA_MAX_FILE_BYTES, {limit:,} bytes")
            digest = sha256()
            reading = _Reading(file, lambda done: report_progress(f"Hashing {path.name}", done, size))

            def hashed() -> Iterator[bytes]:
                while piece := reading.read(_PIECE):
                    digest.update(piece)
                    yield piece

            Scanner(settings.scanner, settings.scanner_timeout).scan_now(hashed())
            media_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
            upload = Upload(new_id(), media_type, file.tell(), digest.hexdigest())
            file.seek(0)
            storing = _Reading(file, lambda done: report_progress(f"Storing {path.name}", done, size))
            store.put(place_of(organization_id, upload.id, upload.sha256), cast("BinaryIO", storing))
    except MalwareFound as error:
        fail(f"{path}: {error}")
    except OSError as error:
        fail(f"{path} cannot be read or stored: {error.strerror or error}")
    return upload


class _Reading:
    """A file that says how far it has been read."""

    def __init__(self, file: BinaryIO, report: Callable[[int], None]) -> None:
        self._file = file
        self._report = report

    def read(self, size: int = -1) -> bytes:
        """The next bytes, at most as many."""
        piece = self._file.read(size)
        self._report(self._file.tell())
        return piece
