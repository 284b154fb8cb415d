"""Behind a proxy: whose address a request has, and which proxies are believed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import count

import httpx2
import pytest

from normata.identity.tokens import tokens
from tests.client import ADDRESS
from tests.databases import change, open_url
from tests.served import served
from tests.server import PLAIN, serving
from tests.world import ALPHA, USERS


@pytest.fixture(scope="module")
def token(shared_url: str) -> str:
    database = open_url(shared_url)
    user = USERS["admin"]
    made = change(database, lambda unit: tokens.create(unit, email=user, scope="write", lifetime=timedelta(hours=1)))
    database.close()
    return made


@pytest.fixture(scope="module")
def behind_proxy(shared_url: str, token: str) -> Iterator[httpx2.Client]:
    """A client of a server that believes proxies on loopback and in 10.0.0.0/8, two requests a minute an address."""
    settings = {"NORMATA_TRUSTED_PROXIES": "127.0.0.0/8, 10.0.0.0/8", "NORMATA_ADDRESS_RATE_LIMIT": "2"}
    headers = {"Authorization": f"Bearer {token}"}
    with (
        serving(shared_url, settings=settings) as base,
        httpx2.Client(base_url=base, headers=headers, verify=PLAIN) as client,
    ):
        yield client


_READERS = count(1)  # each reads from another address: those of the tests have their two requests to themselves
on_sqlite = pytest.mark.parametrize("shared_url", ["sqlite"], indirect=True, scope="module")


def made_from(client: httpx2.Client, forwarded: list[str]) -> str:
    """The address that the event of a change has, of a request with these header fields."""
    fields = [("X-Forwarded-For", one) for one in forwarded]
    body = {"organizationId": ALPHA, "name": f"From {' and '.join(forwarded)}"}
    made = client.post("/labels/", json=body, headers=fields)
    assert made.status_code == 201, made.text
    path = f"/labels/{made.json()['id']}/events/?organizationId={ALPHA}"
    [event] = client.get(path, headers={"X-Forwarded-For": f"203.0.113.{next(_READERS)}"}).json()["items"]
    address: str = event["address"]
    return address


@pytest.mark.long
@on_sqlite
@pytest.mark.parametrize(
    ("forwarded", "address"),
    [
        (["192.0.2.1"], "192.0.2.1"),
        (["2001:db8::7"], "2001:db8::7"),
        (["192.0.2.99, 192.0.2.2"], "192.0.2.2"),  # what the client itself has sent comes first
        (["192.0.2.99", "192.0.2.3"], "192.0.2.3"),
        (["192.0.2.4, 10.1.2.3"], "192.0.2.4"),  # a proxy behind a proxy
        (["10.1.2.3"], "10.1.2.3"),
    ],
)
def test_the_last_address_that_no_trusted_proxy_has_counts(
    behind_proxy: httpx2.Client, forwarded: list[str], address: str
) -> None:
    assert made_from(behind_proxy, forwarded) == address


@on_sqlite
def test_limits_count_by_the_address_of_the_client(behind_proxy: httpx2.Client) -> None:
    def ask(address: str) -> int:
        return behind_proxy.get("/me/", headers={"X-Forwarded-For": address}).status_code

    assert [ask("198.51.100.1") for _ in range(3)] == [200, 200, 429]
    assert ask("198.51.100.2") == 200


@on_sqlite
@pytest.mark.parametrize("trusted", ["", "192.0.2.1"])
def test_who_is_no_trusted_proxy_is_not_believed(shared_url: str, token: str, trusted: str) -> None:
    with served(shared_url, trusted_proxies=trusted) as service:
        service.client.headers["Authorization"] = f"Bearer {token}"
        assert made_from(service.client, ["198.51.100.7"]) == ADDRESS
