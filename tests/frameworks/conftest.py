"""What the tests of frameworks share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.client import TestClient
from tests.frameworks.stating import Stating
from tests.world import BETA


@pytest.fixture
def alpha(client: TestClient, bearer: Callable[..., dict[str, str]]) -> Stating:
    """The coverage of the organization alpha, in the hands of its admin."""
    return Stating(client, bearer("admin"))


@pytest.fixture
def beta(client: TestClient, bearer: Callable[..., dict[str, str]]) -> Stating:
    """The coverage of the organization beta, in the hands of its owner."""
    return Stating(client, bearer("foreigner"), BETA)
