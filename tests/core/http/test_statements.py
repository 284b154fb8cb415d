"""How many statements an operation sends to the database: as many among thousands of rows as among a few."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from normata.core.http.operation import ChangeOperation, ListOperation, Operation, ReadOperation
from normata.errors import NotArchived
from normata.events.sealing import seal_all_now
from normata.frameworks.model import Control, Framework
from normata.identity.model import Membership, Organization
from normata.operations import OPERATIONS
from normata.records.assurance import Evidence
from normata.records.base import Restorable
from tests import world
from tests.cells import all_cells
from tests.core.http.counting import Asked, counting
from tests.core.http.crowd import crowd
from tests.core.http.samples import Sample, enough, families, operations, sample
from tests.databases import change
from tests.listing import LISTS
from tests.served import Served, served

KEPT = [one for one in LISTS if one.cached]
CROWD = 150

all_lists = families(lambda operation: operation in LISTS)
kept_lists = operations(lambda operation: operation in KEPT)


@pytest.fixture(scope="module")
def crowded_template(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the test world and the crowd in it, to be copied."""
    path = Path(shutil.copy(sqlite_template, tmp_path_factory.mktemp("crowd") / "crowded.db"))
    with served(f"sqlite:///{path}") as opened:
        opened.load(crowd(CROWD))
        change(opened.database, world.remember)
    return path


@pytest.fixture(scope="module")
def crowded(crowded_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The application among many rows, for tests that change nothing."""
    path = shutil.copy(crowded_template, tmp_path_factory.mktemp("crowd") / "shared.db")
    with served(f"sqlite:///{path}", page_cache_mib=0) as opened:
        opened.load(doubts([f"crowd-{number}" for number in range(CROWD)], source="own.A.1"))
        opened.load(set_aside([f"crowd-{number}" for number in range(0, CROWD, 2)]))
        yield opened


@pytest.fixture(scope="module")
def few(shared_url: str) -> Iterator[Served]:
    """The application among a few rows, for tests that change nothing; it keeps no pages."""
    with served(shared_url, page_cache_mib=0) as opened:
        out = {"id": "out", "organizationId": world.ALPHA, "controlId": "sun.A.8", "isApplicable": False}
        opened.load({"controlCoverages": [out | {"justification": "There is none."}]})  # else a filter finds nothing
        gone = {"id": "gone", "organizationId": world.ALPHA, "userId": "user-nobody", "removedAt": world.EARLIER}
        opened.load({"memberships": [gone]})
        opened.load(doubts(["moon.A.1"], source="sun.A.1"))
        opened.load(set_aside(["moon.A.1->own.A.2"]))
        over = {"id": "over", "organizationId": world.ALPHA, "name": "Over", "ended": world.EARLIER}
        opened.load({"audits": [over]})
        yield opened


def doubts(controls: list[str], *, source: str) -> dict[str, list[dict[str, Any]]]:
    """Assessments of these that are overdue for a review, and in conflict: from ``source`` they have FULL matches."""
    doubted = [
        {"id": control, "organizationId": world.ALPHA, "controlId": control, "coverageStatus": "PARTIAL"}
        | {"coverageGap": "Some is missing.", "reviewBy": world.DUE, "assessedAt": world.EARLIER}
        for control in controls
    ]
    known = {"id": f"say-{source}", "organizationId": world.ALPHA, "controlId": source, "coverageStatus": "FULL"}
    return {"controlCoverages": [known, *doubted]}


def set_aside(matches: list[str]) -> dict[str, list[dict[str, Any]]]:
    """Matches with which the organization does not agree."""
    row = {"organizationId": world.ALPHA, "justification": "They are not alike."}
    return {"setAsideMatches": [row | {"id": f"aside-{match}", "matchId": match} for match in matches]}


def asked_for(request: Sample, service: Served, monkeypatch: pytest.MonkeyPatch, user: str | None = None) -> Asked:
    """What the database is asked for one request, which must succeed."""
    headers = service.bearer(user or enough(request.operation))
    with counting(service.app.services.database, monkeypatch) as asked:
        response = request.send(service.client, headers)
    assert response.is_success, response.text[:500]
    return asked


def settle(service: Served) -> None:
    """Seal and sign all events, which the service else does at a moment of its own: what is signed takes one more."""
    (checkpoint,) = (one for one in OPERATIONS if one.operation_id == "getEventCheckpoint")
    seal_all_now(service.database)
    signed = sample(checkpoint).send(service.client, service.bearer(enough(checkpoint)))
    assert signed.json()["size"] > 0


def uncounted(asked: Asked) -> list[str]:
    """The statements that do more than to count."""
    return [statement for statement in asked.statements if not statement.startswith("SELECT count(")]


def touches(operation: Operation) -> set[str]:
    """The tables whose rows an operation changes."""
    return {write.table for write in operation.writes} if isinstance(operation, ChangeOperation) else set()


@pytest.mark.long
@families(lambda operation: operation not in LISTS)
def test_it_takes_as_many_among_many(
    operation: Operation, service: Served, crowded_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.load({"acronyms": [{"id": "more", "organizationId": world.ALPHA, "acronym": "MORE"}]})  # which is an event
    settle(service)
    among_few = asked_for(sample(operation), service, monkeypatch)
    with served(f"sqlite:///{shutil.copy(crowded_template, tmp_path / 'crowded.db')}") as among:
        settle(among)
        among_many = asked_for(sample(operation), among, monkeypatch)
    assert among_many.lookups == among_few.lookups == 1
    # They read the names of what each step closes, and the events of what has changed.
    stepwise = operation.operation_id in ("getGapPlan", "listCoverageChanges")
    if stepwise or {"control_match", "set_aside_match", "framework_adoption"} & touches(operation):
        # It reads what stands around the control, or all controls of the framework, in steps of so many at once.
        assert len(among_many.statements) <= len(among_few.statements) + 10
        return
    if operation.about is Membership and {kind.sql().name for kind in Restorable.kinds if kind.responsible} <= touches(
        operation
    ):
        return  # a handover is an edit of each record that the member answers for
    if operation.about is Organization and "membership" in touches(operation):
        return  # to remove an organization is to remove each of its members
    # One more counts: a first page that is not full needs no count.
    assert uncounted(among_many) == uncounted(among_few)
    assert len(among_many.statements) <= len(among_few.statements) + isinstance(operation, ReadOperation)
    if "control" in touches(operation) and operation.about is Control:
        # What follows from whether it is mandatory, say, is read from its matches, each of them once.
        assert among_many.rows - among_few.rows <= CROWD
    elif isinstance(operation, ChangeOperation) and operation.about is not Framework:  # it may read all of its controls
        assert among_many.rows == among_few.rows


def queries(operation: ListOperation) -> list[dict[str, str]]:
    """Queries of a list in which each of its parameters has its turn."""
    properties = operation.query.model_json_schema(by_alias=True)["properties"]
    found: list[dict[str, str]] = [{}]
    for name, schema in properties.items():
        if (name == "kind" and "id" in properties) or name == "format":
            continue  # both, or neither; and a file has no pages
        choices = [schema, *schema.get("anyOf", ())]
        values = [value for choice in choices for value in choice.get("enum", ())]
        if any(choice.get("type") == "boolean" for choice in choices):
            values = ["true", "false"]
        found += [{name: value} for value in values]
    found += [{name: "a"} for name in ("search",) if name in properties]
    found += [{name: "fw-sun"} for name in ("frameworks",) if name in properties]
    return found


@pytest.mark.long
@all_lists
def test_a_page_takes_as_many_among_many(
    operation: ListOperation, few: Served, crowded: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it is filtered and ordered by, whichever page it is, and however long."""
    headers = few.bearer("editor")
    start = sample(operation)
    with all_cells() as at:
        for query in queries(operation):
            with at(query):
                request = start.but(query=start.query | query)
                among_few = asked_for(request, few, monkeypatch, "editor")
                assert request.send(few.client, headers).json()["items"], "where nothing is found, less is asked"
                for page in ({"limit": "5"}, {"limit": "100"}, {"limit": "50", "page": "2"}):
                    request = start.but(query=start.query | query | page)
                    among_many = asked_for(request, crowded, monkeypatch, "editor")
                    # One more counts: a page that is not full needs no count. In an order with nulls, which are read
                    # after the others, one more counts these, for where a numbered page begins among the nulls.
                    more = 2 if "sortColumn" in query else 1
                    assert len(among_many.statements) <= len(among_few.statements) + more
                    assert among_many.lookups == among_few.lookups == 1


@all_lists
def test_the_crowd_fills_every_list(operation: ListOperation, crowded: Served) -> None:
    """Where it does not, the test above compares nothing: `crowd` needs rows of what the list shows."""
    headers = crowded.bearer("editor")
    assert sample(operation).send(crowded.client, headers).json()["total"] > CROWD


@all_lists
def test_a_page_past_the_end_takes_one_more_to_count(
    operation: ListOperation, few: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = sample(operation)
    usual = asked_for(start, few, monkeypatch)
    past = asked_for(start.but(query=start.query | {"page": "100"}), few, monkeypatch)
    assert len(past.statements) <= len(usual.statements) + 1
    assert past.lookups == 1


@all_lists
@pytest.mark.parametrize(("query", "status"), [({"organizationId": world.BETA}, 404), ({"organizationId": ""}, 400)])
def test_a_refused_list_takes_nothing_but_to_know_who_asks(
    operation: ListOperation, query: dict[str, str], status: int, few: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = few.bearer(enough(operation))
    with counting(few.app.services.database, monkeypatch) as asked:
        assert sample(operation).but(query=query).send(few.client, headers).status_code == status
    assert asked == Asked(lookups=1)


@families()
def test_a_malformed_token_is_not_looked_up(operation: Operation, few: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    with counting(few.app.services.database, monkeypatch) as asked:
        response = sample(operation).send(few.client, {"Authorization": "Bearer nrm_nonsense"})
    assert response.status_code == 401
    assert asked == Asked()


# --- Pages that are kept


@kept_lists
def test_a_kept_page_takes_nothing_but_to_know_who_asks(
    operation: ListOperation, shared: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever coding it goes out in, and whoever of the organization it is."""
    first, second = shared.bearer("editor"), shared.bearer("owner")
    sample(operation).send(shared.client, first)
    for headers, coding in (
        (first, "identity"),
        (first, "gzip"),
        (second, "gzip"),
        (second, "zstd"),
        (second, "identity"),
    ):
        with counting(shared.app.services.database, monkeypatch) as asked:
            response = sample(operation).send(shared.client, headers | {"Accept-Encoding": coding})
        assert response.status_code == 200
        assert asked == Asked(lookups=1)


@families(lambda operation: operation in LISTS and operation not in KEPT)
def test_a_page_that_is_not_kept_is_asked_for_each_time(
    operation: ListOperation, shared: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (asked_for(sample(operation), shared, monkeypatch) for _ in range(2))
    assert first == second
    assert first.statements


@kept_lists
def test_a_kept_page_is_made_anew_once_after_a_change(
    operation: ListOperation, service: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = []
    for name in (None, "Sunny", None):
        if name is not None:
            service.load({"frameworks": [{"id": "fw-sun", "name": name}]})
        counts.append(len(asked_for(sample(operation), service, monkeypatch).statements))
    assert counts[0] > 0
    assert counts == [counts[0], counts[0], 0]


# --- Restores


# Evidence that is restored may support a control again, which is read, too.
RESPONSIBLE = [kind for kind in Restorable.kinds if kind.responsible and kind is not Evidence]


@pytest.mark.parametrize("kind", RESPONSIBLE, ids=lambda kind: kind.path)
def test_to_notify_somebody_takes_one_more(
    kind: type[Restorable], service: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    (operation,) = (one for one in OPERATIONS if one.about is kind and NotArchived in one.errors)
    assert kind.responsible is not None
    alone = asked_for(sample(operation), service, monkeypatch)
    kinds_id = world.record_id(kind, "live")
    first, *others = kind.responsible.split("_")
    wire_name = first + "".join(word.title() for word in others)
    service.load({kind.path: [{"id": kinds_id, "archivedAt": world.ARCHIVED, wire_name: "member-owner"}]})
    told = asked_for(sample(operation, row_id=kinds_id), service, monkeypatch)
    assert len(told.statements) == len(alone.statements) + 1
