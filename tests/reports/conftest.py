"""What the tests of reports share: the application over a world with a framework that is worth reporting on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests import mostly_sqlite
from tests.reports.reported import FRAMEWORK, UNJUSTIFIED, document
from tests.served import Headers, Served, served
from tests.world import ALPHA

# What differs between the databases is in their own packages, and in the tests that ask for both.
database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url

Ask = Callable[..., Any]


@pytest.fixture
def service(database_url: str) -> Iterator[Served]:
    """The application over a world of the test's own."""
    with served(database_url) as opened:
        opened.load(document())
        opened.sql(UNJUSTIFIED)
        yield opened


@pytest.fixture
def viewer(service: Served) -> Headers:
    """The header of a viewer of alpha."""
    return service.bearer("viewer")


@pytest.fixture
def ask(service: Served, viewer: Headers) -> Ask:
    """Asks for a report as a viewer of alpha: ``ask("coverage")``."""

    def one(report: str, framework_id: str = FRAMEWORK, **params: str) -> Any:
        query = {"organizationId": ALPHA} | params
        return service.client.get(f"/frameworks/{framework_id}/{report}/", params=query, headers=viewer)

    return one
