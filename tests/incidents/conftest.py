"""Each test of incidents has a world of its own, on both databases."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.served import Served, served


@pytest.fixture
def service(database_url: str) -> Iterator[Served]:
    """The application over a world of the test's own."""
    with served(database_url) as opened:
        yield opened
