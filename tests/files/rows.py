"""Stores of files for tests, and the file that each organization of the tests' world has, as a bundle has it."""

from __future__ import annotations

from hashlib import sha256
from io import BytesIO
from typing import Any

import pytest

from normata.files.folder_store import FolderStore
from normata.files.object_store import ObjectStore, endpoint
from normata.files.opening import open_store
from normata.files.searching import FileContents
from normata.files.store import FileStore, place_of
from normata.settings import Settings
from tests.files.bucket_server import uploads

FILE_CONTENT = b'{"tested": true, "by": "the world"}'
_EARLIER = "2026-01-02T03:04:05.678Z"


def file_row(organization_id: str) -> dict[str, Any]:
    """The file of an organization, which a record has had."""
    return {
        "id": f"file-of-{organization_id}",
        "organizationId": organization_id,
        "userId": f"robot-{organization_id}",
        "name": "tested.json",
        "mediaType": "application/json",
        "size": len(FILE_CONTENT),
        "sha256": sha256(FILE_CONTENT).hexdigest(),
        "createdAt": _EARLIER,
        "attachedAt": _EARLIER,
        "detachedAt": None,
        "erasedAt": None,
    }


# For a test that is to use a bucket as well as a folder.
in_both_stores = pytest.mark.parametrize("store_url", ["folder", "bucket"], indirect=True)


def store_at(url: str) -> FileStore:
    """The store at an address."""
    return open_store(Settings(files_url=url))


def everything(store: FileStore) -> list[str]:
    """The names of all that is in a store, of files that were never complete as well."""
    if isinstance(store, FolderStore):
        return sorted(path.name for path in store.root.rglob("*") if path.is_file())
    assert isinstance(store, ObjectStore)
    names = [one["path"].rpartition("/")[2] for page in store.store.list() for one in page]
    return sorted(names) + ["an upload in parts"] * uploads(endpoint(), store.bucket)


def leave_incomplete(store: FileStore) -> None:
    """Leave what a process does that is killed during an upload."""
    if isinstance(store, FolderStore):
        (store.root / ".arriving" / "half").write_bytes(b"ha")
        return
    assert isinstance(store, ObjectStore)
    store.store.put(".arriving/half", b"ha")


def fill(store: FileStore, *organizations: str) -> None:
    """Put the files of organizations into a store."""
    for row in map(file_row, organizations):
        store.put(place_of(row["organizationId"], row["id"], row["sha256"]), BytesIO(FILE_CONTENT))


def contents() -> FileContents:
    """What searches the files of the tests' world for a person."""
    return FileContents(open_store(Settings()))
