"""What the tests of catalogs share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.catalogs.oscal_documents import Reader
from tests.coverage.assessing import alpha, beta

__all__ = ["alpha", "beta", "read_documents"]


@pytest.fixture
def read_documents(tmp_path: Path) -> Reader:
    """Reads OSCAL documents from files."""
    return Reader(tmp_path)
