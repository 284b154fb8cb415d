"""Instances that the tests of a module share: each test has records of its own, or changes what no other looks at."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.console.app.conftest import People
from tests.served import served


@pytest.fixture(scope="module")
def shared(shared_url: str) -> Iterator[People]:
    """People over a world that the tests of a module share and change."""
    with served(shared_url) as instance:
        yield People(instance)
