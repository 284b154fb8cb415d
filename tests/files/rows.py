"""The file that each organization of the tests' world has, as a bundle has it."""

from __future__ import annotations

from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

from normata.files.folder_store import FolderStore
from normata.files.store import place_of

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
    }


def fill(folder: Path, *organizations: str) -> None:
    """Put the files of organizations into a store."""
    for row in map(file_row, organizations):
        FolderStore(folder).put(place_of(row["organizationId"], row["id"], row["sha256"]), BytesIO(FILE_CONTENT))
