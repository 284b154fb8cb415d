"""The store of files that the settings name."""

from __future__ import annotations

from normata.files.folder_store import FolderStore
from normata.files.store import FileStore
from normata.settings import Settings


def open_store(settings: Settings) -> FileStore:
    """The store of files."""
    return FolderStore(settings.files_folder)
