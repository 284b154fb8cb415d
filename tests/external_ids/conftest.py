"""The application over a fresh world."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.served import Served, served


@pytest.fixture
def service(database_url: str) -> Iterator[Served]:
    """The application over a fresh copy of the test world."""
    with served(database_url) as opened:
        yield opened
