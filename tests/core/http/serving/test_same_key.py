"""Processes that get the same request with the same key at the same moment: one carries it out."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import httpx2
import pytest

from normata.core.db.database import Database
from normata.frameworks.model import Framework
from normata.identity.tokens import tokens
from tests import stored, world
from tests.core.http.serving.processes import Serve
from tests.databases import change, on_both, open_url
from tests.server import PLAIN
from tests.world import ALPHA

ROUNDS = 10
AT_ONCE = 6  # requests


@pytest.fixture
def token(database_url: str) -> str:
    """A token of somebody who may make frameworks."""
    database: Database = open_url(database_url)
    made = change(
        database,
        lambda unit: tokens.create(unit, email=world.USERS["admin"], scope="write", lifetime=timedelta(hours=1)),
    )
    database.close()
    return made


@on_both
def test_of_several_processes_one_carries_it_out(serve: Serve, database_url: str, token: str) -> None:
    """The others give its answer, or say that it is under way. Each connection goes to whichever process takes it."""
    servers = [serve(), serve()]

    def ask(number: int, place: int) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": f"round-{number}"}
        body = {"organizationId": ALPHA, "name": f"Docks {number}"}
        return httpx2.post(
            f"{servers[place % 2].address}/frameworks/", json=body, headers=headers, timeout=30, verify=PLAIN
        )

    with ThreadPoolExecutor(AT_ONCE) as threads:
        for number in range(ROUNDS):
            answers = [one.result() for one in [threads.submit(ask, number, place) for place in range(AT_ONCE)]]
            done = [answer for answer in answers if answer.status_code == 201]
            assert {answer.status_code for answer in answers} <= {201, 409}
            assert len({answer.content for answer in done}) == 1
            assert ask(number, 0).content == ask(number, 1).content == done[0].content
    database = open_url(database_url)
    try:
        assert len(stored.events(database)) == ROUNDS
        made = stored.rows(database, Framework, organization_id=ALPHA)
        assert sorted(row["name"] for row in made if row["name"].startswith("Docks")) == sorted(
            f"Docks {number}" for number in range(ROUNDS)
        )
    finally:
        database.close()
