"""What the tests of single sign-on share: the providers, and our client of each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from normata.identity.openid import client
from normata.identity.openid.configuration import Configuration, read_configuration
from tests.identity.openid.forging import CLIENT, SECRET, Forger, running_forger
from tests.identity.openid.mock import Mock, running_mock


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """The providers of the tests answer late where many tests run at once."""
    monkeypatch.setattr(client, "TIMEOUT", 60.0)


@pytest.fixture(scope="session")
def mock() -> Iterator[Mock]:
    """The provider of others, as a process."""
    with running_mock() as running:
        yield running


@pytest.fixture
def forger() -> Iterator[Forger]:
    """The provider that can forge. It knows a person, Ada."""
    with running_forger() as running:
        running.person = {"sub": "ada", "email": "ada@example.org", "email_verified": True}
        yield running


def configured(issuer: str, roles: str = "", **settings: str) -> Configuration:
    """The configuration for a provider."""
    given = {"client_id": CLIENT, "client_secret": SECRET, "name": "", "groups_claim": "groups"} | settings
    found = read_configuration(issuer=issuer, roles=roles, public_url="http://localhost:8000", **given)
    assert found is not None
    return found
