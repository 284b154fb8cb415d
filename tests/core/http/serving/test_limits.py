"""Limits of a server with several workers: each allows its share; attempts to sign in are counted by all together."""

from __future__ import annotations

from collections import Counter

import httpx2
import pytest

from tests.conftest import MakeToken
from tests.core.http.serving.processes import Processes, Serve
from tests.databases import on_both
from tests.server import PLAIN
from tests.world import ALPHA, USERS

PAGE = f"/frameworks/?organizationId={ALPHA}"


def client(headers: dict[str, str]) -> httpx2.Client:
    """Each request has a connection of its own, so that any worker may take it."""
    return httpx2.Client(headers=headers | {"Connection": "close"}, verify=PLAIN)


def ask(server: Processes, count: int, headers: dict[str, str]) -> list[httpx2.Response]:
    with client(headers) as asking:
        return [asking.get(f"{server.address}{PAGE}") for _ in range(count)]


@pytest.mark.long
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_workers_share_a_quota(serve: Serve, make_token: MakeToken) -> None:
    headers = {"Authorization": f"Bearer {make_token('viewer')}"}
    server = serve(3, NORMATA_RATE_LIMIT="31", NORMATA_BAD_TOKEN_LIMIT="4")
    answers = ask(server, 60, headers)
    assert {answer.headers["ratelimit-policy"] for answer in answers} == {'"token";q=11;w=60'}
    found = Counter(answer.status_code for answer in answers)
    assert found.keys() == {200, 429}
    assert 11 <= found[200] <= 33
    bad = Counter(answer.status_code for answer in ask(server, 9, {}))
    assert bad.keys() == {401, 429}
    assert 2 <= bad[401] <= 6


@pytest.mark.long
@on_both
def test_workers_and_servers_count_attempts_to_sign_in_together(serve: Serve) -> None:
    """Whichever process takes an attempt, the fourth within a minute is refused."""
    servers = [serve(2, NORMATA_SIGN_IN_LIMIT="3") for _ in range(2)]
    form = {"email": USERS["editor"], "password": "wrong"}

    def attempt(number: int) -> int:
        server = servers[number % 2]
        with client({"Sec-Fetch-Site": "same-origin"}) as browser:
            return browser.post(f"{server.address}/sign-in/password/", data=form).status_code

    assert [attempt(number) for number in range(6)] == [403] * 3 + [429] * 3
