"""Limits hold for all processes of the machine: the workers of a server, and other servers of the same database."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path

import httpx2
import pytest

from normata.core.http.counters import path_of
from tests.conftest import MakeToken
from tests.core.http.serving.processes import Processes, Serve, wait_for
from tests.databases import on_both
from tests.server import PLAIN
from tests.world import ALPHA

PAGE = f"/frameworks/?organizationId={ALPHA}"


def ask(server: Processes, count: int, headers: dict[str, str]) -> list[httpx2.Response]:
    """So many answers, each on a connection of its own, so that any worker may take it."""
    with httpx2.Client(headers=headers | {"Connection": "close"}, verify=PLAIN) as client:
        return [client.get(f"{server.address}{PAGE}") for _ in range(count)]


Outcomes = Counter[tuple[int, bool]]  # by status, and whether the limit of bad tokens was reached


def outcomes(server: Processes, count: int, headers: dict[str, str]) -> Outcomes:
    return Counter((answer.status_code, "bad tokens" in answer.text) for answer in ask(server, count, headers))


@on_both
def test_workers_and_servers_share_the_limits(serve: Serve, make_token: MakeToken, database_url: str) -> None:
    headers = {"Authorization": f"Bearer {make_token('viewer')}"}
    settings = {"NORMATA_RATE_LIMIT": "30", "NORMATA_BAD_TOKEN_LIMIT": "5"}
    first, second = serve(2, **settings), serve(3, **settings)

    good = sum((outcomes(server, 10, headers) for server in (first, second) * 2), Outcomes())
    assert good == {(200, False): 30, (429, False): 10}
    bad = sum((outcomes(server, 2, {}) for server in (first, second) * 2), Outcomes())
    assert bad == {(401, False): 5, (429, True): 3}
    assert path_of(database_url).stat().st_mode & 0o777 == 0o600
    assert "limits_not_shared" not in first.log + second.log


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="workers are found in /proc")
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_workers_that_are_killed_or_stopped_change_nothing(serve: Serve, make_token: MakeToken) -> None:
    """The one that takes the place of a killed one goes on counting where that was."""
    headers = {"Authorization": f"Bearer {make_token('viewer')}"}
    server = serve(2, NORMATA_RATE_LIMIT="1000000", NORMATA_ADDRESS_RATE_LIMIT="1000000")
    used = 0
    for _ in range(3):
        answers = ask(server, 10, headers)
        left = [int(answer.headers["ratelimit"].partition('"token";r=')[2].partition(";")[0]) for answer in answers]
        assert sorted(left, reverse=True) == left
        assert max(left) - min(left) == 9, "each is counted once, whichever worker takes it"
        assert left[0] == 1_000_000 - used - 1
        used += 10
        victim = server.workers()[0]
        os.kill(victim, signal.SIGKILL)
        wait_for(lambda victim=victim: victim not in server.workers() and len(server.workers()) == 2)  # type: ignore[misc]
        wait_for(server.answers)
