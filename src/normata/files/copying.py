"""Copies of the bytes of files, for backups and dumps.

In a dump a file has its SHA-256 as its name, so that everybody can find and check it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from hashlib import file_digest
from pathlib import Path
from typing import Any

from sqlalchemy import bindparam, select

from normata.core.db.transaction import Transaction, batches
from normata.core.schema.table import sql_table
from normata.errors import CommandError
from normata.files.model import File
from normata.files.store import FileStore, Place, place_of


def write_to(folder: Path, transaction: Transaction, store: FileStore, organization_id: str | None) -> int:
    """Write the files of an organization, or of all, to a folder, and return their number. Raises CommandError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    written: set[str] = set()
    for row in _rows(transaction, organization_id):
        if row.sha256 not in written:
            _copy(store, place_of(row.organization_id, row.id, row.sha256), folder / row.sha256)
            written.add(row.sha256)
    return len(written)


def read_from(folder: Path | None, transaction: Transaction, ids: Sequence[str] | None, store: FileStore) -> int:
    """Store the bytes of files that the store does not have, and return the number of those that are nowhere.

    ``ids`` are those of the files, null for all. Only without a folder may one be missing. Raises CommandError.
    """
    missing = 0
    for row in transaction.stream(_ALL) if ids is None else _with_ids(transaction, ids):
        place = place_of(row.organization_id, row.id, row.sha256)
        if store.has(place):
            continue
        if folder is None:
            missing += 1
            continue
        path = folder / row.sha256
        try:
            with path.open("rb") as source:
                if file_digest(source, "sha256").hexdigest() != row.sha256:
                    raise CommandError(f"{path} is not the file that it is named after: it has another SHA-256")
                source.seek(0)
                store.put(place, source)
        except OSError as error:
            raise CommandError(f"{path} cannot be stored: {error.strerror or error}") from error
    return missing


def back_up(places: Iterable[Place], store: FileStore, folder: Path, earlier: Path | None) -> list[Place]:
    """Copy files to a folder of the same form as the store, and return those that are missing.

    What an earlier backup has is linked instead, since no file ever changes. Raises CommandError.
    """
    missing = []
    for place in places:
        target = folder / place.folder / place.name
        known = None if earlier is None else earlier / place.folder / place.name
        is_known = known is not None and known.is_file()
        if target.exists():
            continue
        if not (is_known or store.has(place)):
            missing.append(place)
            continue
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if is_known and known is not None:
            os.link(known, target)
        else:
            _copy(store, place, target)
    return missing


def put_back(places: Iterable[Place], backup: FileStore, store: FileStore) -> list[Place]:
    """Store the files of a backup that the store does not have, and return those that are missing in both.

    Raises CommandError.
    """
    missing = []
    for place in places:
        try:
            if store.has(place):
                continue
            if not backup.has(place):
                missing.append(place)
                continue
            with backup.open(place) as source:
                store.put(place, source)
        except OSError as error:
            reason = error.strerror or error
            raise CommandError(f"{place.folder}/{place.name} of {backup.address} cannot be stored: {reason}") from error
    return missing


def _copy(store: FileStore, place: Place, target: Path) -> None:
    part = target.with_name(f"{target.name}.part")
    try:
        with store.open(place) as source, part.open("wb") as file:
            shutil.copyfileobj(source, file, 2**20)
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    except OSError as error:
        raise CommandError(
            f"{place.folder}/{place.name} of {store.address} cannot be copied: {error.strerror or error}"
        ) from error


def _with_ids(transaction: Transaction, ids: Sequence[str]) -> Iterator[Any]:
    for batch in batches(ids):
        yield from transaction.rows(_WITH_IDS, {"ids": batch})


def _rows(transaction: Transaction, organization_id: str | None) -> Iterator[Any]:
    if organization_id is None:
        return transaction.stream(_ALL)
    return transaction.stream(_OWN, {"organization": organization_id})


_TABLE = sql_table(File)
_ALL = (
    select(_TABLE.c.organization_id, _TABLE.c.id, _TABLE.c.sha256)
    .where(_TABLE.c.erased_at.is_(None))
    .order_by(_TABLE.c.id)
)
_WITH_IDS = _ALL.where(_TABLE.c.id.in_(bindparam("ids", expanding=True)))
_OWN = _ALL.where(_TABLE.c.organization_id == bindparam("organization"))
