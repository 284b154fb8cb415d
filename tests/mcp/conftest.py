"""The fixtures of the tests of MCP: the shipped application over the test world, on both databases."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.served import Served, served


@pytest.fixture
def service(database_url: str) -> Iterator[Served]:
    """The application over a fresh copy of the test world."""
    with served(database_url) as opened:
        yield opened


@pytest.fixture(scope="module")
def shared(shared_url: str) -> Iterator[Served]:
    """The application over a copy of the test world that a module's tests share, since none of them changes it."""
    with served(shared_url) as opened:
        yield opened
