"""Workers over one PostgreSQL: nothing lives in one of them that another would miss.

What holds on both databases is in tests/web/serving.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from tests import world
from tests.databases import open_url
from tests.postgres import Server
from tests.postgresql.conftest import new_token
from tests.server import PLAIN, serving
from tests.world import ALPHA, ARCHIVED

WORKERS = 2
CONNECTIONS = 24  # so many that every worker has some
CONTROLS = f"/controls/?organizationId={ALPHA}&frameworks=fw-sun"

NewClient = Callable[[], httpx2.Client]


def clients(base: str, token: str) -> NewClient:
    """Makes clients: each has connections of its own, which the system gives to any of the workers."""
    return lambda: httpx2.Client(base_url=base, headers={"Authorization": f"Bearer {token}"}, timeout=60, verify=PLAIN)


@pytest.fixture(scope="module")
def url(postgres: Server, postgres_template: str) -> Iterator[str]:
    """The address of the world that these tests share: to start the workers takes longer than all of them."""
    name = f"normata_{uuid4().hex}"
    yield postgres.create(name, template=postgres_template)
    postgres.drop(name)


@pytest.fixture(scope="module")
def base(url: str) -> Iterator[str]:
    """The address of the workers."""
    with serving(url, workers=WORKERS) as address:
        yield address


def everywhere(new_client: NewClient, kept: list[httpx2.Client], path: str) -> list[httpx2.Response]:
    """The answers of connections that are open already, and of as many new ones: all workers are among them."""
    answers = [client.get(path) for client in kept]
    for _ in kept:
        with new_client() as client:
            answers.append(client.get(path))
    return answers


def load(url: str, document: dict[str, list[dict[str, Any]]]) -> None:
    """Load a bundle, in this process."""
    with closing(open_url(url)) as database:
        world.load(database, document)


@pytest.mark.long
def test_a_token_that_another_process_makes_is_good_at_once(base: str, url: str) -> None:
    new_client = clients(base, new_token(url, "viewer"))
    with ExitStack() as stack:
        kept = [stack.enter_context(new_client()) for _ in range(CONNECTIONS)]
        assert {answer.status_code for answer in everywhere(new_client, kept, CONTROLS)} == {200}


def test_coverage_that_another_process_changes_is_in_the_next_answer_of_all(base: str, url: str) -> None:
    new_client = clients(base, new_token(url))

    def seen(answers: list[httpx2.Response]) -> set[tuple[str, str]]:
        found = set()
        for answer in answers:
            (item,) = [item for item in answer.json()["items"] if item["id"] == "sun.A.5"]
            found.add((item["coverage"]["coverageStatus"], item["effectiveCoverageStatus"]))
        return found

    with ExitStack() as stack:
        kept = [stack.enter_context(new_client()) for _ in range(CONNECTIONS)]
        assert seen(everywhere(new_client, kept, CONTROLS)) == {("NONE", "NONE")}
        for status in ("FULL", "PARTIAL", "NONE"):
            statement = {"id": "say-sun.A.5", "organizationId": ALPHA, "controlId": "sun.A.5", "coverageStatus": status}
            load(url, {"controlCoverages": [statement]})
            assert seen(everywhere(new_client, kept, CONTROLS)) == {(status, status)}


def test_a_restore_by_one_process_is_seen_by_all(base: str, url: str) -> None:
    load(url, {"labels": [{"id": "seen", "organizationId": ALPHA, "name": "Seen", "archivedAt": ARCHIVED}]})
    new_client = clients(base, new_token(url))
    with ExitStack() as stack:
        kept = [stack.enter_context(new_client()) for _ in range(CONNECTIONS)]
        assert kept[0].post("/labels/seen/restore/").status_code == 200
        assert {client.post("/labels/seen/restore/").status_code for client in kept} == {409}
