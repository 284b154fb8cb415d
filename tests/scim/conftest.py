"""What the tests of SCIM share: the application, and the token of a provider."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import mostly_sqlite
from tests.served import Headers, Served, served
from tests.world import ALPHA

database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url


@pytest.fixture
def service(database_url: str) -> Iterator[Served]:
    """The application over a world of the test's own."""
    with served(database_url) as opened:
        yield opened


@pytest.fixture
def provider(service: Served) -> Headers:
    """The header of the provider's token for alpha, of an admin."""
    return service.bearer("admin", scope="scim", organization=ALPHA)
