"""Two clients that change the same coverage at the same time: one comes after the other, whichever that is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from threading import Barrier

import pytest
from httpx2 import Response

from normata.core.db.database import Database
from normata.settings import Settings
from tests import stored
from tests.coverage.assessing import Json, Stating, assert_consistent, done, large
from tests.served import served
from tests.world import ALPHA

SIZE = 500
ROUNDS = 2
TIMEOUT = Settings.model_fields["database_timeout"].default

Pair = tuple[Stating, Stating]


def crossed() -> dict[str, list[Json]]:
    """A framework of 500 controls in ten categories, and another one that each of them lifts, and that lifts back."""
    document = large(SIZE)
    names = [control["id"] for control in document["controls"]]
    categories = [
        {"id": f"large.c{number}", "frameworkId": "fw-large", "identifier": f"C{number}", "name": f"C{number}"}
        for number in range(10)
    ]
    for number, control in enumerate(document["controls"]):
        control["parentId"] = f"large.c{number % 10}"
    document["controls"] = [*categories, *document["controls"]]
    document["controls"] += [
        {"id": f"mirror.{name}", "frameworkId": "fw-mirror", "identifier": name, "name": name} for name in names
    ]
    document["frameworks"].append({"id": "fw-mirror", "identifier": "MIRROR", "name": "Mirror"})
    document["frameworkAdoptions"].append({"id": "adopt-mirror", "organizationId": ALPHA, "frameworkId": "fw-mirror"})
    pairs = [(name, f"mirror.{name}", "FULL") for name in names]
    pairs += [(f"mirror.{name}", following, "PARTIAL") for name, following in pairwise(names)]
    pairs += [(following, f"mirror.{name}", "FULL") for name, following in zip(names[::7], names[1::7], strict=False)]
    document["controlMatches"] = [
        {"id": f"{source}->{target}", "sourceControlId": source, "targetControlId": target, "matchLevel": level}
        for source, target, level in pairs
    ]
    return document


@pytest.fixture(params=["in one process", "in two"])
def pair(
    request: pytest.FixtureRequest, database_url: str, database: Database, bearer: Callable[..., dict[str, str]]
) -> Iterator[Pair]:
    """Two users of alpha, each with a client of the shipped application."""
    stored.load(database, crossed())
    with ExitStack() as stack:
        first = stack.enter_context(served(database_url))
        second = first if request.param == "in one process" else stack.enter_context(served(database_url))
        yield Stating(first.client, bearer("admin")), Stating(second.client, bearer("owner"))


def at_once(*calls: Callable[[], Response]) -> list[Response]:
    """The answers to requests that are sent at the same moment. Nobody waits longer than the time-out."""
    barrier = Barrier(len(calls))

    def send(call: Callable[[], Response]) -> tuple[Response, float]:
        barrier.wait(10)
        began = time.monotonic()
        return call(), time.monotonic() - began

    with ThreadPoolExecutor(len(calls)) as threads:
        found = [future.result(60) for future in [threads.submit(send, call) for call in calls]]
    for response, seconds in found:
        assert response.status_code < 500, response.text[:500]
        assert seconds < TIMEOUT
    return [response for response, _ in found]


def statuses(number: int, turn: int) -> str:
    return ("FULL", "PARTIAL", "NONE")[(number + turn) % 3]


def statements(turn: int, field: str, text: str) -> list[Json]:
    """What a client says of all 500; ``field`` only this one says."""
    return [
        {"controlId": f"large.{number}", "coverageStatus": statuses(number, turn), field: text}
        for number in range(SIZE)
    ]


def effective(items: Sequence[Json]) -> dict[str, str]:
    return {item["control"]["id"]: item["effectiveCoverageStatus"] for item in items}


@pytest.mark.long
def test_the_result_is_one_of_the_two_orders(pair: Pair, database: Database) -> None:
    """All statuses are one client's, the last one's; what only one says, stays."""
    for turn in range(ROUNDS):
        ones = statements(turn, "coverageGap", f"gap {turn}")
        others = statements(turn + 1, "justification", f"why {turn}")[::-1]  # each locks in an order of its own
        answers = at_once(partial(pair[0].patch, *ones), partial(pair[1].patch, *others))
        said = {f"large.{number}": pair[0].said(f"large.{number}") for number in range(0, SIZE, 50)}
        assert {(one["coverageGap"], one["justification"]) for one in said.values()} == {(f"gap {turn}", f"why {turn}")}
        listed = pair[0].listed()
        result = [listed[f"large.{number}"]["coverage"]["coverageStatus"] for number in range(SIZE)]
        orders = [[statuses(number, turn + last) for number in range(SIZE)] for last in (0, 1)]
        assert result in orders
        last = answers[orders.index(result)]
        levels = {name: item["effectiveCoverageStatus"] for name, item in listed.items()}
        assert effective(done(last)["items"]).items() <= levels.items()
        first = effective(done(answers[1 - orders.index(result)])["items"])
        assert not first.items() <= levels.items(), "the first one's answer is as things were before the last"
        assert_consistent(database)


def test_single_statements_of_many_clients_are_all_kept(pair: Pair, database: Database) -> None:
    numbers = range(0, SIZE, 63)
    at_once(*(partial(pair[number % 2].put, f"large.{number}", coverageStatus="FULL") for number in numbers))
    listed = pair[0].effective()
    assert {listed[f"mirror.large.{number}"] for number in numbers} == {"FULL"}
    assert_consistent(database)


def test_stating_while_the_framework_is_left_and_adopted(pair: Pair, database: Database) -> None:
    """Whoever comes after the other finds the framework left; what was stated before is kept."""
    for turn in range(ROUNDS):
        said = statements(turn, "coverageGap", f"gap {turn}")
        stated, left = at_once(partial(pair[0].patch, *said), partial(pair[1].leave, "fw-large"))
        assert (stated.status_code, left.status_code) in {(200, 200), (400, 200)}
        assert_consistent(database)
        done(pair[1].adopt("fw-large"))
        found = pair[0].said("large.7")["coverageGap"]
        assert (found == f"gap {turn}") == (stated.status_code == 200)
        assert_consistent(database)


def test_adopting_and_leaving_at_once(pair: Pair, database: Database) -> None:
    for _ in range(ROUNDS):
        answers = at_once(
            partial(pair[0].adopt, "fw-star"),
            partial(pair[1].adopt, "fw-star"),
            partial(pair[0].leave, "fw-mirror"),
            partial(pair[1].leave, "fw-mirror"),
        )
        assert [answer.status_code for answer in answers] == [200] * 4
        assert answers[0].json()["adoption"] == answers[1].json()["adoption"]
        assert_consistent(database)
        done(pair[0].adopt("fw-mirror"))
        done(pair[0].leave("fw-star"))
        assert_consistent(database)
