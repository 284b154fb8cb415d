"""Each test of policies has a world of its own, on both databases."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.conftest import normata
from tests.policies.steps import Policies
from tests.served import served

__all__ = ["normata"]


@pytest.fixture
def policies(database_url: str) -> Iterator[Policies]:
    """The policies of alpha, in the application over a world of the test's own."""
    with served(database_url) as opened:
        yield Policies(opened)
