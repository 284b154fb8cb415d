"""What the tests of catalogs share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.frameworks.catalogs.oscal_documents import Reader


@pytest.fixture
def read_documents(tmp_path: Path) -> Reader:
    """Reads OSCAL documents from files."""
    return Reader(tmp_path)
