import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def catalogs() -> Path:
    """The folder of published catalogs and mappings. They are too large, and not ours, to be kept with the tests."""
    beside = Path(__file__).parents[3] / "shared" / "data"
    folder = Path(os.environ.get("NORMATA_TEST_DATA") or beside)
    if not folder.is_dir():
        pytest.skip(f"no published catalogs in {folder}: set NORMATA_TEST_DATA")
    return folder
