"""The store of files that the settings name."""

from __future__ import annotations

from importlib.util import find_spec

from normata.errors import BadSetting
from normata.files.folder_store import FolderStore
from normata.files.store import FileStore
from normata.settings import Settings

_LARGEST = 5 * 2**30  # bytes that an object store copies in one request


def open_store(settings: Settings) -> FileStore:
    """The store of files. Raises BadSetting."""
    bucket = settings.files_bucket
    if bucket is None:
        return FolderStore(settings.files_folder)
    if find_spec("obstore") is None:
        raise BadSetting("NORMATA_FILES_URL needs the extra s3: install normata[s3]")
    if settings.max_file_bytes > _LARGEST:
        raise BadSetting(f"NORMATA_MAX_FILE_BYTES may be at most {_LARGEST} if files are in a bucket")

    from normata.files.object_store import ObjectStore  # noqa: PLC0415 # few need it

    return ObjectStore(*bucket, timeout=settings.files_timeout)
