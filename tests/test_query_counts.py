"""How many statements an operation sends to the database: a fixed number, however much there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from fastapi import FastAPI
from sqlalchemy import event
from starlette.testclient import TestClient

from normata.database import Script, Sight
from normata.records.base import Restorable
from normata.records.kinds import Label, Policy
from tests import world
from tests.listing import LISTS, Listing

Listings = Callable[..., Listing]
Add = Callable[[dict[str, list[dict[str, Any]]]], None]
Bearer = Callable[..., dict[str, str]]

# The organization's revision, where pages are kept by it; then for controls the adopted frameworks, the page, and the
# matches and children of all controls of the page; for the others the total and the page.
EXPECTED = {"/controls/": 5, "/frameworks/": 3, "/notifications/": 2}
KEPT = ("/controls/", "/frameworks/")

# Transactions take no statement of their own in the sense of this count, and the last use of tokens is written beside
# the requests, together for all of them.
NOT_COUNTED = ("BEGIN", "SAVEPOINT", "RELEASE", "ROLLBACK", "COMMIT", "UPDATE access_token", "SELECT set_config")


@dataclass
class Sent:
    """What the database was asked: statements, and whose tokens these are, which has a road of its own."""

    statements: list[str] = field(default_factory=list)
    admissions: int = 0


Counting = Callable[[], AbstractContextManager[Sent]]


@pytest.fixture
def counting(application: FastAPI, monkeypatch: pytest.MonkeyPatch) -> Counting:
    """Gathers what the application asks of the database while a block runs."""

    @contextmanager
    def gather() -> Iterator[Sent]:
        sent = Sent()

        def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
            if not statement.startswith(NOT_COUNTED):
                sent.statements.append(statement)

        database = application.state.database
        admit, perform = database.admit, database.perform

        async def counted(digest: str, organization_id: str | None) -> Any:
            sent.admissions += 1
            return await admit(digest, organization_id)

        async def followed(script: Callable[[], Script[Any]], sight: Sight) -> Any:
            return await perform(lambda: noted(script()), sight)

        def noted(script: Script[Any]) -> Script[Any]:
            """The same script, with each of its statements noted: they go past the engine."""
            try:
                step = next(script)
                while True:
                    sent.statements.append(str(step[0]))
                    step = script.send((yield step))
            except StopIteration as end:
                return end.value

        event.listen(database.engine, "before_cursor_execute", note)
        with monkeypatch.context() as patch:
            patch.setattr(database, "admit", counted)
            patch.setattr(database, "perform", followed)
            try:
                yield sent
            finally:
                event.remove(database.engine, "before_cursor_execute", note)

    return gather


@pytest.fixture
def crowd(add: Add) -> None:
    """A hundred and fifty more of everything that is listed, each control with a match, a child and a statement."""
    numbers = range(150)
    add(
        {
            "frameworks": [{"id": f"crowd-{number}", "name": f"Crowd {number}"} for number in numbers],
            "controls": [
                {
                    "id": f"crowd-{number}",
                    "frameworkId": "fw-sun",
                    "name": f"Crowd {number}",
                    "parentId": f"crowd-{number - 1}" if number % 10 else None,
                }
                for number in numbers
            ],
            "controlMatches": [
                {
                    "id": f"crowd-{number}",
                    "sourceControlId": "own.A.1",
                    "targetControlId": f"crowd-{number}",
                    "matchLevel": "FULL",
                }
                for number in numbers
            ],
            "frameworkAdoptions": [
                {"id": f"crowd-{number}", "organizationId": world.ALPHA, "frameworkId": f"crowd-{number}"}
                for number in numbers
            ],
            "controlCoverages": [
                {"id": f"crowd-{number}", "organizationId": world.ALPHA, "controlId": f"crowd-{number}"}
                for number in numbers
            ],
            "notifications": [
                {"id": f"crowd-{number}", "organizationId": world.ALPHA, "userId": "user-editor"} for number in numbers
            ],
            "labels": [
                {"id": f"crowd-{number}", "organizationId": world.ALPHA, "name": f"Crowd {number}"}
                for number in numbers
            ],
        }
    )


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize("limit", [5, 100])
def test_list_of_a_few(path: str, limit: int, listing: Listings, counting: Counting) -> None:
    asked = listing(path, "editor")
    with counting() as sent:
        asked.page(limit=limit)
    assert (len(sent.statements), sent.admissions) == (EXPECTED[path], 1), sent


@pytest.mark.usefixtures("crowd")
@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize(("limit", "page"), [(5, 1), (100, 1), (50, 2)])
def test_list_of_many(path: str, limit: int, page: int, listing: Listings, counting: Counting) -> None:
    asked = listing(path, "editor")
    with counting() as sent:
        assert len(asked.items(limit=limit, page=page)) == limit
    assert (len(sent.statements), sent.admissions) == (EXPECTED[path], 1), sent


@pytest.mark.parametrize(
    ("path", "query", "more"),
    [
        ("/controls/", {"sortColumn": "coverageStatus"}, 1),  # the ids in order, before what they are the ids of
        ("/controls/", {"search": "control 1", "sortDirection": "desc"}, 2),  # and how many there are
        ("/controls/", {"frameworks": ["SUN-2", "own", "x"]}, 0),
        ("/frameworks/", {"search": "standard", "sortColumn": "controls", "adoptedOnly": "true"}, 0),
        ("/notifications/", {"unreadOnly": "true"}, 0),
    ],
)
def test_what_filters_and_orders_take(
    path: str, query: dict[str, Any], more: int, listing: Listings, counting: Counting
) -> None:
    asked = listing(path, "editor")
    with counting() as sent:
        assert asked.items(**query)
    assert (len(sent.statements), sent.admissions) == (EXPECTED[path] + more, 1), sent


@pytest.mark.usefixtures("crowd")
@pytest.mark.parametrize("path", KEPT)
def test_a_kept_page_takes_nothing_but_to_know_who_asks(path: str, listing: Listings, counting: Counting) -> None:
    """Whatever coding it goes out in, and whoever of the organization it is."""
    first, second = listing(path, "editor"), listing(path, "owner")
    first.page(limit=50)
    for asked, coding in ((first, "identity"), (first, "gzip"), (second, "br"), (second, "zstd"), (second, "identity")):
        with counting() as sent:
            assert asked.get({"Accept-Encoding": coding}, limit=50).status_code == 200
        assert sent == Sent([], 1)


def test_notifications_are_asked_for_each_time(listing: Listings, counting: Counting) -> None:
    asked = listing("/notifications/", "editor")
    for _ in range(2):
        with counting() as sent:
            asked.page()
        assert (len(sent.statements), sent.admissions) == (EXPECTED["/notifications/"], 1), sent


@pytest.mark.parametrize("path", KEPT)
def test_a_kept_page_is_made_anew_once_after_a_change(
    path: str, listing: Listings, add: Add, counting: Counting
) -> None:
    asked = listing(path)
    counts = []
    for name in (None, "Sunny", None):
        if name is not None:
            add({"frameworks": [{"id": "fw-sun", "name": name}]})
        with counting() as sent:
            asked.page()
        counts.append(len(sent.statements))
    assert counts == [EXPECTED[path], EXPECTED[path], 0]


@pytest.mark.parametrize("path", LISTS)
def test_a_page_past_the_end_takes_no_more(path: str, listing: Listings, counting: Counting) -> None:
    asked = listing(path, "editor")
    with counting() as sent:
        assert asked.items(page=1_000) == []
    assert len(sent.statements) <= EXPECTED[path], sent
    assert sent.admissions == 1


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize(("query", "status"), [({"organizationId": world.BETA}, 404), ({"organizationId": ""}, 400)])
def test_refusals_of_lists(
    path: str, query: dict[str, str], status: int, listing: Listings, counting: Counting
) -> None:
    """Who asks is all that has to be known."""
    asked = listing(path)
    with counting() as sent:
        assert asked.get(**query).status_code == status
    assert sent == Sent([], 1)


@pytest.mark.parametrize("path", LISTS)
def test_a_malformed_token_is_not_looked_up(path: str, client: TestClient, counting: Counting) -> None:
    with counting() as sent:
        assert client.get(path, headers={"Authorization": "Bearer nrm_nonsense"}).status_code == 401
    assert sent == Sent([], 0)


@pytest.mark.parametrize("kind", Restorable.kinds, ids=lambda kind: kind.path)
def test_restore(kind: type[Restorable], client: TestClient, bearer: Bearer, counting: Counting) -> None:
    """The one statement that decides, and the audit event."""
    headers = bearer("editor")
    with counting() as sent:
        response = client.post(f"/{kind.path}/{world.record_id(kind, 'archived')}/restore/", headers=headers)
    assert response.status_code == 200
    assert (len(sent.statements), sent.admissions) == (2, 1), sent


@pytest.mark.usefixtures("crowd")
def test_restore_among_many(client: TestClient, bearer: Bearer, counting: Counting) -> None:
    headers = bearer("editor")
    with counting() as sent:
        assert client.post(f"/labels/{world.record_id(Label, 'archived')}/restore/", headers=headers).status_code == 200
    assert (len(sent.statements), sent.admissions) == (2, 1), sent


@pytest.mark.parametrize(("approver", "expected"), [("member-owner", 3), ("member-editor", 3), (None, 2)])
def test_restore_with_a_notification(
    *, approver: str | None, expected: int, client: TestClient, bearer: Bearer, add: Add, counting: Counting
) -> None:
    """To tell who answers for the record, unless that is the caller, is one more statement."""
    record = world.record_id(Policy, "archived")
    add({"policies": [{"id": record, "approverId": approver}]})
    headers = bearer("editor")
    with counting() as sent:
        assert client.post(f"/policies/{record}/restore/", headers=headers).status_code == 200
    assert (len(sent.statements), sent.admissions) == (expected, 1), sent


@pytest.mark.parametrize(
    ("state", "user", "status", "expected"),
    [
        ("live", "editor", 409, 2),
        ("taken", "editor", 409, 2),
        ("archived", "viewer", 403, 2),
        ("archived", "nobody", 404, 2),
    ],
)
def test_refusals_of_restore(
    *,
    state: str,
    user: str,
    status: int,
    expected: int,
    client: TestClient,
    bearer: Bearer,
    counting: Counting,
) -> None:
    """One more statement finds out why."""
    headers = bearer(user)
    with counting() as sent:
        response = client.post(f"/labels/{world.record_id(Label, state)}/restore/", headers=headers)
    assert response.status_code == status
    assert (len(sent.statements), sent.admissions) == (expected, 1), sent
