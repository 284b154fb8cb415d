"""Whether every file has its bytes, as they were when it was uploaded, and the store has nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import file_digest

from sqlalchemy import select

from normata.core.db.transaction import Transaction
from normata.core.schema.table import sql_table
from normata.files.model import File
from normata.files.store import FileStore, Place, place_of

_SETTLED = 3_600  # seconds after which bytes without a row are no upload that is in progress


def file_faults(transaction: Transaction, store: FileStore, moment: float) -> Iterator[str]:
    """What is wrong with files, a sentence each: missing, changed, or without a row. ``moment`` is now, in seconds.

    All bytes are read. Where the store cannot be, that is one fault, and not one for each file.
    """
    try:
        everything = list(store.stored())
    except OSError as error:
        yield f"{store.address} cannot be read, so no file was checked ({error.strerror or error})"
        return
    known: set[Place] = set()
    for row in transaction.stream(_FILES):
        place = place_of(row.organization_id, row.id, row.sha256)
        known.add(place)
        try:
            with store.open(place) as file:
                found = file_digest(file, "sha256").hexdigest()
        except OSError as error:
            yield (
                f"the file {row.id} of organization {row.organization_id} is missing: {place.folder}/{place.name} of"
                f" {store.address} cannot be read ({error.strerror or error})"
            )
            continue
        if found != row.sha256:
            yield (
                f"the file {row.id} of organization {row.organization_id} was changed: {place.folder}/{place.name} of"
                f" {store.address} has the SHA-256 {found}"
            )
    for one in everything:
        if one.place not in known and one.changed < moment - _SETTLED:
            where = f"{one.place.folder}/{one.place.name}"
            yield f"{store.address} has {where}, which belongs to no file that has its bytes; it goes after a day"


_TABLE = sql_table(File)
_FILES = (
    select(_TABLE.c.organization_id, _TABLE.c.id, _TABLE.c.sha256)
    .where(_TABLE.c.erased_at.is_(None))
    .order_by(_TABLE.c.organization_id, _TABLE.c.id)
)
