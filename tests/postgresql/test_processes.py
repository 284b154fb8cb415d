"""Many processes over one PostgreSQL: nothing lives in one of them that another would miss."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from threading import Barrier
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from normata.identity.tokens import digest
from normata.records.kinds import Label
from tests import world
from tests.databases import open_url
from tests.postgres import Server
from tests.postgresql.conftest import new_token, normata, session
from tests.server import serving
from tests.world import ALPHA, ARCHIVED, EARLIER, record_id

WORKERS = 4
CONTROLS = f"/controls/?organizationId={ALPHA}&frameworks=fw-sun"


def requests(base: str, token: str) -> Callable[[], httpx2.Client]:
    """Makes clients: each has connections of its own, which the system gives to any of the workers."""
    return lambda: httpx2.Client(base_url=base, headers={"Authorization": f"Bearer {token}"}, timeout=60)


def crowd(calls: Sequence[Callable[[], httpx2.Response]]) -> list[httpx2.Response]:
    """The answers to calls that start at the same moment, in their order."""
    gate = Barrier(len(calls))

    def run(call: Callable[[], httpx2.Response]) -> httpx2.Response:
        gate.wait(60)
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def with_labels(url: str, count: int) -> list[str]:
    """Load archived labels; their ids."""
    ids = [f"crowd-{count}-{number:03}" for number in range(count)]
    labels = [
        {"id": row_id, "organizationId": ALPHA, "name": row_id, "archivedAt": ARCHIVED, "updatedAt": EARLIER}
        for row_id in ids
    ]
    database = open_url(url)
    world.load(database, {"labels": labels})
    database.close()
    return ids


@pytest.fixture(scope="module")
def url(postgres: Server, postgres_template: str) -> Iterator[str]:
    """The address of the world that these tests share: to start the workers takes longer than all of them."""
    name = f"normata_{uuid4().hex}"
    yield postgres.create(name, template=postgres_template)
    postgres.drop(name)


@pytest.fixture(scope="module")
def base(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of four workers."""
    with serving(url, workers=WORKERS, log=tmp_path_factory.mktemp("workers") / "log") as address:
        yield address


def test_of_two_hundred_restores_of_fifty_records_fifty_succeed(base: str, url: str) -> None:
    ids = with_labels(url, 50)
    new_client = requests(base, new_token(url))
    with ExitStack() as stack:
        clients = [stack.enter_context(new_client()) for _ in range(40)]
        answers = crowd(
            [partial(clients[number % 40].post, f"/labels/{ids[number // 4]}/restore/") for number in range(200)]
        )
    assert Counter(answer.status_code for answer in answers) == {200: 50, 409: 150}
    assert {answer.json()["id"] for answer in answers if answer.status_code == 200} == set(ids)
    assert {answer.json()["code"] for answer in answers if answer.status_code == 409} == {"not_archived"}
    with session(url) as admin:
        events = admin.rows(
            "SELECT entity_id, count(*) FROM audit_event WHERE entity_id = ANY ($1) GROUP BY 1 ORDER BY 1", ids
        )
        assert events == [(row_id, 1) for row_id in ids]
        assert admin.value("SELECT count(*) FROM label WHERE id = ANY ($1) AND archived_at IS NOT NULL", ids) == 0


def test_eight_restores_at_once_across_two_servers_have_one_winner(postgres_url: str) -> None:
    ids = with_labels(postgres_url, 10)
    token = new_token(postgres_url)
    with serving(postgres_url) as first, serving(postgres_url) as second, ExitStack() as stack:
        clients = [stack.enter_context(requests(server, token)()) for server in (first, second) for _ in range(4)]
        for row_id in ids:
            answers = crowd([partial(client.post, f"/labels/{row_id}/restore/") for client in clients])
            assert Counter(answer.status_code for answer in answers) == {200: 1, 409: 7}
    with session(postgres_url) as admin:
        assert admin.value("SELECT count(*) FROM audit_event") == len(ids)


def everywhere(new_client: Callable[[], httpx2.Client], kept: list[httpx2.Client], path: str) -> list[httpx2.Response]:
    """The answers of connections that are open already, and of as many new ones: all workers are among them."""
    answers = [client.get(path) for client in kept]
    for _ in kept:
        with new_client() as client:
            answers.append(client.get(path))
    return answers


def test_a_token_that_another_process_revokes_is_refused_by_all_at_once(base: str, url: str) -> None:
    token, other = new_token(url), new_token(url, "viewer")
    new_client = requests(base, token)
    with ExitStack() as stack:
        kept = [stack.enter_context(new_client()) for _ in range(24)]
        assert {answer.status_code for answer in everywhere(new_client, kept, CONTROLS)} == {200}
        with session(url) as admin:
            token_id = admin.value("SELECT id FROM access_token WHERE digest = $1", digest(token))
        assert normata("token", "revoke", token_id, url=url).returncode == 0
        assert {answer.status_code for answer in everywhere(new_client, kept, CONTROLS)} == {401}
        restore = f"/labels/{record_id(Label, 'archived')}/restore/"
        assert {client.post(restore).status_code for client in kept} == {401}
    with requests(base, other)() as client:
        assert client.get(CONTROLS).status_code == 200


def test_a_token_that_another_process_makes_is_good_at_once(base: str, url: str) -> None:
    done = normata("token", "create", "--user", world.USERS["viewer"], url=url)
    new_client = requests(base, done.stdout.strip())
    with ExitStack() as stack:
        kept = [stack.enter_context(new_client()) for _ in range(24)]
        assert {answer.status_code for answer in everywhere(new_client, kept, CONTROLS)} == {200}


def test_coverage_that_another_process_changes_is_in_the_next_answer_of_all(
    base: str, url: str, tmp_path: Path
) -> None:
    new_client = requests(base, new_token(url))

    def seen(answers: list[httpx2.Response]) -> set[tuple[str, str]]:
        found = set()
        for answer in answers:
            (item,) = [item for item in answer.json()["items"] if item["id"] == "sun.A.5"]
            found.add((item["coverage"]["coverageStatus"], item["effectiveCoverageStatus"]))
        return found

    with ExitStack() as stack:
        kept = [stack.enter_context(new_client()) for _ in range(24)]
        assert seen(everywhere(new_client, kept, CONTROLS)) == {("NONE", "NONE")}
        for status in ("FULL", "PARTIAL", "NONE"):
            statement: dict[str, Any] = {
                "id": "say-sun.A.5", "organizationId": ALPHA, "controlId": "sun.A.5", "coverageStatus": status,
            }  # fmt: skip
            bundle = tmp_path / f"{status}.json"
            bundle.write_text(json.dumps({"controlCoverages": [statement]}))
            assert normata("load", str(bundle), url=url).returncode == 0
            assert seen(everywhere(new_client, kept, CONTROLS)) == {(status, status)}


def test_a_restore_by_one_process_is_seen_by_all(base: str, url: str) -> None:
    new_client = requests(base, new_token(url))
    (row_id,) = with_labels(url, 1)
    restore = f"/labels/{row_id}/restore/"
    with ExitStack() as stack:
        kept = [stack.enter_context(new_client()) for _ in range(24)]
        assert kept[0].post(restore).status_code == 200
        assert {client.post(restore).status_code for client in kept} == {409}
