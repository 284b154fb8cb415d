"""The application over a fresh world, for batches."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.records.batch.sending import Batches
from tests.served import Served, served


@pytest.fixture
def batches(database_url: str) -> Iterator[Batches]:
    """The application over a fresh copy of the test world."""
    with served(database_url) as opened:
        yield Batches(opened)


@pytest.fixture
def service(database_url: str) -> Iterator[Served]:
    """The same, for what is sent to a server beside it."""
    with served(database_url) as opened:
        yield opened
