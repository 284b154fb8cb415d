"""Files next to the key of the events: readable only by their owner, and written completely or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from normata.core.schema.table import new_id


@contextmanager
def written_beside(path: Path, content: bytes) -> Iterator[Path]:
    """A file with this content in the folder of ``path``, safe on disk. It is gone after the block unless it was moved.

    Raises OSError.
    """
    part = path.with_name(f".{path.name}.{new_id()}")
    handle = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        yield part
    finally:
        part.unlink(missing_ok=True)
