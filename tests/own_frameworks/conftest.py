"""Asking for one's own frameworks as a user does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from httpx2 import Response

from tests import mostly_sqlite
from tests.client import TestClient
from tests.world import ALPHA, USERS

# What differs between the databases is in their own packages, and in the tests that ask for both.
database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url


@dataclass(frozen=True)
class Asked:
    """A client that asks as one of the world's users; of the organization alpha, unless a call says otherwise."""

    client: TestClient
    headers: dict[str, dict[str, str]]

    def __call__(self, method: str, path: str, body: Any = None, *, user: str = "admin", **query: str) -> Response:
        params = {} if path in ("/frameworks/", "/matches/") and method == "POST" else {"organizationId": ALPHA} | query
        return self.client.request(method, path, json=body, params=params, headers=self.headers[user])

    def done(self, method: str, path: str, body: Any = None, **kwargs: Any) -> Any:
        """The answer, which must be a success."""
        response = self(method, path, body, **kwargs)
        assert response.is_success, response.text[:500]
        return response.json()

    def faults(self, method: str, path: str, body: Any = None, **kwargs: Any) -> list[tuple[str, str]]:
        """Where and what the faults are of a request that must be refused with them."""
        response = self(method, path, body, **kwargs)
        assert (response.status_code, response.json()["code"]) == (400, "validation"), response.text[:500]
        return [(fault["name"], fault["message"]) for fault in response.json()["errors"]]

    def refused(self, method: str, path: str, body: Any = None, **kwargs: Any) -> int:
        """The status of a request that must be refused."""
        response = self(method, path, body, **kwargs)
        assert not response.is_success
        return int(response.status_code)


@pytest.fixture
def ask(client: TestClient, bearer: Callable[..., dict[str, str]]) -> Asked:
    """The application over the test world, asked by any of its users."""
    return Asked(client, {user: bearer(user) for user in USERS})
