"""Many clients that send the same external id at once, to the shipped server with several workers."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import httpx2
import pytest

from normata.core.db.sqlite.database import SQLite
from normata.external_ids.model import ExternalId
from normata.records.kinds import Task
from tests import stored
from tests.records.batch.sending import Item, create, update, upsert
from tests.served import Served
from tests.server import PLAIN, serving
from tests.world import ALPHA, record_id

pytestmark = pytest.mark.long  # each starts a server

_CLIENTS = 50


Sent = tuple[str, dict[str, Any]]  # the path, and the body about alpha


def batch(*items: Item, **more: Any) -> Sent:
    return "/tasks/batch/", {"organizationId": ALPHA, "items": list(items)} | more


def race(service: Served, requests: list[Sent]) -> list[httpx2.Response]:
    """The answers to requests that are all sent at once, each on a connection of its own."""
    workers = 1 if isinstance(service.database, SQLite) else 4
    headers, ready = service.bearer("editor"), Barrier(len(requests))

    def send(request: Sent) -> httpx2.Response:
        with httpx2.Client(base_url=base, headers=headers, timeout=60, verify=PLAIN) as client:
            ready.wait(30)
            return client.post(request[0], json=request[1])

    with serving(service.url, workers=workers) as base, ThreadPoolExecutor(len(requests)) as pool:
        return list(pool.map(send, requests))


def outcomes(answers: list[httpx2.Response]) -> Counter[str]:
    assert {answer.status_code for answer in answers} == {200}, Counter(answer.text for answer in answers)
    items = [item for answer in answers for item in answer.json()["items"]]
    return Counter(item["outcome"] or item["refusal"]["code"] for item in items)


def test_upserts_of_one_external_id_make_one_record(service: Served) -> None:
    """Those after the first leave the record as it is, or change it."""
    found = outcomes(race(service, [batch(upsert(1), upsert(2, title=f"Title {n}")) for n in range(_CLIENTS)]))
    assert found == {"created": 2, "unchanged": _CLIENTS - 1, "updated": _CLIENTS - 1}
    held = [row["record_id"] for row in stored.rows(service.database, ExternalId) if row["source"] == "tracker"]
    assert len(held) == 2
    assert len([row for row in stored.rows(service.database, Task) if row["id"] in held]) == 2


def test_new_records_with_one_title_have_slugs_of_their_own(service: Served) -> None:
    requests = [batch(upsert(n, title="Same"), create(title="Same")) for n in range(20)]
    assert outcomes(race(service, requests)) == {"created": 40}
    same = [row for row in stored.rows(service.database, Task) if row["title"] == "Same"]
    assert len({row["slug"] for row in same}) == len({row["short_id"] for row in same}) == 40


def test_the_same_records_in_other_orders_and_archived_meanwhile(service: Served) -> None:
    """Nobody waits for each other, and each answer says what was so."""
    ids = [record_id(Task, "live"), record_id(Task, "namesake")]
    requests = [
        batch(
            *(update(one, title=f"Title {n}") for one in ids[:: 1 if n % 2 else -1]), mode="each", ifArchived="restore"
        )
        for n in range(30)
    ]
    archiving: list[Sent] = [(f"/tasks/{ids[n % 2]}/archive/", {}) for n in range(20)]
    answers = race(service, requests + archiving)
    assert outcomes(answers[:30]) == {"updated": 60}
    assert {answer.status_code for answer in answers[30:]} <= {200, 409}
