"""What the tests of erasing share: the application over a world in which Ann is everywhere."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from normata.events.sealing import seal_all_now
from tests import mostly_sqlite
from tests.erasure import people
from tests.served import Served, served

# What differs between the databases is in their own packages, and in the tests that ask for both.
database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url


@pytest.fixture
def service(database_url: str) -> Iterator[Served]:
    """The application over a world of the test's own, in which Ann works."""
    with served(database_url) as opened:
        people.join(opened)
        people.work(opened)
        yield opened


@pytest.fixture
def everywhere(service: Served) -> Served:
    """As above; and she is named in every text column that there is."""
    people.plant(service.database)
    seal_all_now(service.database)
    return service
