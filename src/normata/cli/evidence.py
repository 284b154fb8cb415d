"""The command ``evidence add``: files on this machine become evidence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from normata.cli.shared import DatabaseOption, FilesArgument, Group, change, echo, fail, opened, settings_with

if TYPE_CHECKING:
    from normata.core.changes.unit_of_work import UnitOfWork
    from normata.files.files import Upload
    from normata.files.store import FileStore

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
    database: DatabaseOption = None,
) -> None:
    """Upload files and make one piece of evidence of them, and print its id and each SHA-256."""
    from normata.files import files as uploads
    from normata.files.store import FileStore, place_of
    from normata.identity.organization_lookup import find
    from normata.records.assurance import Evidence
    from normata.records.writing import create

    settings = settings_with(database_url=database)
    store = FileStore(settings.files_folder)
    sent = {"description": description, "collectedAt": collected, "validUntil": until}
    body: dict[str, Any] = {field: value for field, value in sent.items() if value is not None}
    with opened(database, create=False) as target:
        organization_id = target.read_now(lambda transaction: find(transaction, organization))
        found = [_stored(path, organization_id, store, settings.max_file_bytes) for path in files]

        def work(unit: UnitOfWork) -> Any:
            for path, one in zip(files, found, strict=True):
                uploads.add(unit, organization_id, path.name, one, settings.files_quota)
            named = {"name": name or files[0].name, "fileIds": [one.id for one in found]}
            return create(unit, Evidence, organization_id, body | named)

        try:
            row = change(target, work)
        except Exception:
            for one in found:
                store.remove(place_of(organization_id, one.id, one.sha256))
            raise
    echo(f"{row.id}: {row.name}")
    for path, one in zip(files, found, strict=True):
        echo(f"{one.sha256}  {path}")


def _stored(path: Path, organization_id: str, store: FileStore, limit: int) -> Upload:
    """A file, once its bytes are in the store."""
    import mimetypes
    from hashlib import file_digest

    from normata.core.schema.table import new_id
    from normata.files.files import Upload
    from normata.files.store import place_of

    try:
        with path.open("rb") as file:
            digest = file_digest(file, "sha256").hexdigest()
            size = file.tell()
            if size > limit:
                fail(f"{path} is larger than NORMATA_MAX_FILE_BYTES, {limit:,} bytes")
            media_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
            upload = Upload(new_id(), media_type, size, digest)
            file.seek(0)
            store.put(place_of(organization_id, upload.id, digest), file)
    except OSError as error:
        fail(f"{path} cannot be read or stored: {error.strerror or error}")
    return upload
