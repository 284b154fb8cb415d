"""A store of files: a folder, or a bucket where a test asks for it by ``in_both_stores``."""

from __future__ import annotations

from pathlib import Path

import pytest

from normata.files.store import FileStore
from tests.files import bucket_server
from tests.files.rows import store_at

object_store_server, bucket_url = bucket_server.object_store_server, bucket_server.bucket_url


@pytest.fixture
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store."""
    if getattr(request, "param", "folder") == "folder":
        return f"file://{tmp_path}/store"
    url: str = request.getfixturevalue("bucket_url")
    return url


@pytest.fixture
def store(store_url: str) -> FileStore:
    """The store at that address."""
    return store_at(store_url)
