"""Totals that are kept: as exact as counted ones, whatever has changed, and whoever has changed it.

They are asked for with a page after the first: one that is not full tells the total by itself.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from normata.core.http.operation import ChangeOperation, Operation
from normata.erasure.erasing import erase
from normata.erasure.person import ErasureRequest
from normata.events.cached_totals import CachedTotals
from normata.events.keys import Signer
from normata.events.sealing import seal_all_now
from normata.records.base import Restorable
from normata.records.kinds import Label
from normata.records.listing import list_records, record_query
from tests import mostly_sqlite, stored, world
from tests.core.http.counting import counting
from tests.core.http.samples import enough, families, sample
from tests.databases import change, on_both, open_url
from tests.served import Served, served
from tests.world import ALPHA, ARCHIVED, BETA

database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url

STATES = ("exclude", "only", "include")


@pytest.fixture
def keeping(service: Served) -> Served:
    """The application, which keeps every total, however small."""
    service.app.services.means[CachedTotals]._least = 0
    return service


def totals(service: Served, kind: type[Restorable]) -> list[int]:
    """How many records of a kind there are: live, archived and in all."""
    return [service.listing(f"/{kind.path}/").page(archived=state, page=2)["total"] for state in STATES]


def counts(service: Served, monkeypatch: pytest.MonkeyPatch, path: str = "/labels/") -> int:
    """How many statements count when a list is asked for."""
    listing = service.listing(path)
    with counting(service.app.services.database, monkeypatch) as asked:
        listing.page(page=2)
    return sum(statement.startswith("SELECT count(") for statement in asked.statements)


def label(number: int, **fields: str) -> dict[str, list[dict[str, str]]]:
    """A bundle with a label of alpha."""
    return {"labels": [{"id": f"kept-{number}", "organizationId": ALPHA, "name": "L", **fields}]}


def kinds_of(operation: Operation) -> list[type[Restorable]]:
    """The kinds whose records an operation changes."""
    written = {write.table for write in operation.writes} if isinstance(operation, ChangeOperation) else set()
    return [kind for kind in Restorable.kinds if kind.sql().name in written]


# --- When they hold


def test_what_has_not_changed_is_counted_once(keeping: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [counts(keeping, monkeypatch) for _ in range(3)] == [1, 0, 0]


def test_what_is_few_is_counted_each_time(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [counts(service, monkeypatch) for _ in range(3)] == [1, 1, 1]


def test_a_first_page_that_is_not_full_is_its_own_total(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    service.load({"labels": [label(number)["labels"][0] for number in range(10)]})
    listing = service.listing("/labels/")
    total = len(listing.walk())
    for limit, statements in ((100, 1), (5, 2)):
        with counting(service.app.services.database, monkeypatch) as asked:
            assert listing.page(limit=limit)["total"] == total
        assert len(asked.statements) == statements


def test_sealing_and_other_kinds_change_nothing(keeping: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before events are sealed, when they have been, and when others have followed."""
    counts(keeping, monkeypatch)
    for number in range(4):
        keeping.load({"acronyms": [{"id": f"other-{number}", "organizationId": ALPHA, "acronym": "O"}]})
        if number % 2:
            seal_all_now(keeping.database)
        assert counts(keeping, monkeypatch) == 0
    keeping.load({"labels": [{"id": "theirs", "organizationId": BETA, "name": "Theirs"}]})
    assert counts(keeping, monkeypatch) == 0


def test_every_filter_has_its_own(keeping: Served) -> None:
    every = keeping.listing("/tasks/")
    keeping.load({"tasks": [{"id": "only", "organizationId": ALPHA, "title": "Only", "status": "BLOCKED"}]})
    for _ in range(2):
        assert every.page(page=2, status="BLOCKED")["total"] == 1
        assert every.page(page=2, search="Only")["total"] == 1
        assert every.page(page=2, status=["BLOCKED", "TODO"])["total"] > 1
        assert every.page(page=2, limit=5, sortColumn="title")["total"] == every.page(page=2)["total"] > 1


# --- When they do not


@pytest.mark.parametrize("is_sealed", [False, True])
@on_both
def test_what_another_process_changes_is_counted_again(keeping: Served, is_sealed: bool) -> None:
    live, archived, every = totals(keeping, Label)
    for number in range(1, 4):
        keeping.load(label(number))
        if is_sealed:
            seal_all_now(keeping.database)
        assert totals(keeping, Label) == [live + number, archived, every + number]
    keeping.load(label(1, archivedAt=ARCHIVED))
    assert totals(keeping, Label) == [live + 2, archived + 1, every + 3]


@pytest.mark.parametrize("is_sealed", [False, True])
def test_more_changes_than_are_looked_at(is_sealed: bool, keeping: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of another kind. The service may seal them at any moment; only a seal that is there already is no change."""
    many = [{"id": f"many-{number}", "organizationId": ALPHA, "acronym": f"M{number}"} for number in range(150)]
    counts(keeping, monkeypatch)
    keeping.load({"acronyms": many})
    if is_sealed:
        seal_all_now(keeping.database)
    assert counts(keeping, monkeypatch) == 1
    seal_all_now(keeping.database)
    counts(keeping, monkeypatch)
    assert counts(keeping, monkeypatch) == 0


def test_more_unsealed_events_than_are_looked_at(keeping: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    keeping.sql(
        "INSERT INTO unsealed_event (event_id, owner) WITH RECURSIVE made (n) AS"
        " (SELECT 1 UNION ALL SELECT n + 1 FROM made WHERE n < 1100) SELECT 'event-' || n, 'nobody' FROM made"
    )
    assert [counts(keeping, monkeypatch) for _ in range(2)] == [1, 1]
    keeping.sql("DELETE FROM unsealed_event")
    assert [counts(keeping, monkeypatch) for _ in range(2)] == [1, 0]


@pytest.mark.long
@families(lambda operation: isinstance(operation, ChangeOperation) and kinds_of(operation))
@on_both
def test_every_change_is_seen(operation: Operation, keeping: Served) -> None:
    """Whatever operation makes it; the totals are those that another process counts."""
    change(keeping.database, world.remember)
    kinds = kinds_of(operation)
    for kind in kinds:
        totals(keeping, kind)
    response = sample(operation).send(keeping.client, keeping.bearer(enough(operation)))
    assert response.is_success, response.text[:500]
    with served(keeping.url) as counted:
        assert {kind: totals(keeping, kind) for kind in kinds} == {kind: totals(counted, kind) for kind in kinds}


def test_an_erased_person_is_no_more_found(keeping: Served, tmp_path: Path) -> None:
    """To erase changes texts of every kind, and is one event, about the person."""
    keeping.load(
        {
            "users": [{"id": "nora", "email": "nora@example.org", "name": "Nora Sandwell"}],
            "memberships": [{"id": "member-nora", "organizationId": ALPHA, "userId": "nora", "role": "viewer"}],
            "tasks": [{"id": "ask", "organizationId": ALPHA, "title": "Ask Nora Sandwell"}],
        }
    )
    tasks = keeping.listing("/tasks/")
    assert tasks.page(page=2, search="Sandwell")["total"] == 1
    signer = Signer(tmp_path / "key")
    change(keeping.database, lambda unit: erase(unit, ErasureRequest("nora@example.org"), signer))
    assert tasks.page(page=2, search="Sandwell")["total"] == 0


# --- A database that was restored from a backup


@pytest.mark.parametrize("is_sealed", [False, True])
@pytest.mark.parametrize("events", [0, 1, 2])
def test_a_database_that_goes_another_way_is_counted_again(sqlite_url: str, events: int, is_sealed: bool) -> None:
    """With as many events as before the backup was put back, or with less, or with more."""
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    kept = CachedTotals(least=0)

    def go_on(documents: Sequence[dict[str, Any]]) -> int:
        with closing(open_url(sqlite_url)) as database:
            for document in documents:
                stored.load(database, document)
            if is_sealed:
                seal_all_now(database)
            page: dict[str, Any] = database.read_now(lambda transaction: list_records(transaction, Label, QUERY, kept))
        return int(page["total"])

    before = go_on([label(0)])
    backup = shutil.copy(path, path.with_suffix(".backup"))
    assert go_on([label(1)]) == before + 1
    shutil.copy(backup, path)
    acronym = {"id": "other", "organizationId": ALPHA, "acronym": "O"}
    assert go_on([{"acronyms": [acronym | {"id": f"other-{number}"}]} for number in range(events)]) == before


QUERY = record_query(Label)(organizationId=ALPHA, page=2)
