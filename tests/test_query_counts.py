"""How many statements an operation sends to the database: a fixed number, however much there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from fastapi import FastAPI
from sqlalchemy import event
from starlette.testclient import TestClient

from normata.records.base import Restorable
from normata.records.kinds import Label, Policy
from tests import world
from tests.listing import LISTS, Listing

Listings = Callable[..., Listing]
Add = Callable[[dict[str, list[dict[str, Any]]]], None]
Bearer = Callable[..., dict[str, str]]

# Whose token it is, with where its user is a member, takes one; then the total, the page, and for controls the
# matches and the children of all controls of the page.
EXPECTED = {"/controls/": 5, "/frameworks/": 3, "/notifications/": 3}

# Transactions take no statement of their own in the sense of this count, and the last use of tokens is written beside
# the requests, together for all of them.
NOT_COUNTED = ("BEGIN", "SAVEPOINT", "RELEASE", "ROLLBACK", "COMMIT", "UPDATE access_token", "SELECT set_config")


@pytest.fixture
def counting(application: FastAPI) -> Callable[[], Any]:
    """Gathers the statements that the application sends while a block runs."""

    @contextmanager
    def gather() -> Iterator[list[str]]:
        statements: list[str] = []

        def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
            if not statement.startswith(NOT_COUNTED):
                statements.append(statement)

        engine = application.state.database.engine
        event.listen(engine, "before_cursor_execute", note)
        try:
            yield statements
        finally:
            event.remove(engine, "before_cursor_execute", note)

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
def test_list_of_a_few(path: str, limit: int, listing: Listings, counting: Callable[[], Any]) -> None:
    asked = listing(path, "editor")
    with counting() as statements:
        asked.page(limit=limit)
    assert len(statements) == EXPECTED[path], statements


@pytest.mark.usefixtures("crowd")
@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize(("limit", "page"), [(5, 1), (100, 1), (50, 2)])
def test_list_of_many(path: str, limit: int, page: int, listing: Listings, counting: Callable[[], Any]) -> None:
    asked = listing(path, "editor")
    with counting() as statements:
        assert len(asked.items(limit=limit, page=page)) == limit
    assert len(statements) == EXPECTED[path], statements


@pytest.mark.parametrize(
    ("path", "query", "more"),
    [
        ("/controls/", {"search": "control 1", "sortColumn": "coverageStatus"}, 0),
        ("/controls/", {"frameworks": ["SUN-2", "own", "x"]}, 1),  # to find the selected frameworks
        ("/frameworks/", {"search": "standard", "sortColumn": "controls", "adoptedOnly": "true"}, 0),
        ("/notifications/", {"unreadOnly": "true"}, 0),
    ],
)
def test_what_filters_and_orders_take(
    path: str, query: dict[str, Any], more: int, listing: Listings, counting: Callable[[], Any]
) -> None:
    asked = listing(path, "editor")
    with counting() as statements:
        assert asked.items(**query)
    assert len(statements) == EXPECTED[path] + more, statements


@pytest.mark.parametrize("path", LISTS)
def test_a_page_past_the_end_takes_no_more(path: str, listing: Listings, counting: Callable[[], Any]) -> None:
    asked = listing(path, "editor")
    with counting() as statements:
        assert asked.items(page=1_000) == []
    assert len(statements) <= EXPECTED[path], statements


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize(
    ("query", "status", "expected"),
    [({"organizationId": world.BETA}, 404, 1), ({"organizationId": ""}, 400, 1)],
)
def test_refusals_of_lists(
    *,
    path: str,
    query: dict[str, str],
    status: int,
    expected: int,
    listing: Listings,
    counting: Callable[[], Any],
) -> None:
    asked = listing(path)
    with counting() as statements:
        assert asked.get(**query).status_code == status
    assert len(statements) == expected, statements


@pytest.mark.parametrize("path", LISTS)
def test_a_malformed_token_is_not_looked_up(path: str, client: TestClient, counting: Callable[[], Any]) -> None:
    with counting() as statements:
        assert client.get(path, headers={"Authorization": "Bearer nrm_nonsense"}).status_code == 401
    assert statements == []


@pytest.mark.parametrize("kind", Restorable.kinds, ids=lambda kind: kind.path)
def test_restore(kind: type[Restorable], client: TestClient, bearer: Bearer, counting: Callable[[], Any]) -> None:
    """Whose token it is, the one statement that decides, and the audit event."""
    headers = bearer("editor")
    with counting() as statements:
        response = client.post(f"/{kind.path}/{world.record_id(kind, 'archived')}/restore/", headers=headers)
    assert response.status_code == 200
    assert len(statements) == 3, statements


@pytest.mark.usefixtures("crowd")
def test_restore_among_many(client: TestClient, bearer: Bearer, counting: Callable[[], Any]) -> None:
    headers = bearer("editor")
    with counting() as statements:
        assert client.post(f"/labels/{world.record_id(Label, 'archived')}/restore/", headers=headers).status_code == 200
    assert len(statements) == 3, statements


@pytest.mark.parametrize(("approver", "expected"), [("member-owner", 5), ("member-editor", 4), (None, 3)])
def test_restore_with_a_notification(
    *, approver: str | None, expected: int, client: TestClient, bearer: Bearer, add: Add, counting: Callable[[], Any]
) -> None:
    """Who answers for the record is one more statement, and telling them another."""
    record = world.record_id(Policy, "archived")
    add({"policies": [{"id": record, "approverId": approver}]})
    headers = bearer("editor")
    with counting() as statements:
        assert client.post(f"/policies/{record}/restore/", headers=headers).status_code == 200
    assert len(statements) == expected, statements


@pytest.mark.parametrize(
    ("state", "user", "status", "expected"),
    [
        ("live", "editor", 409, 3),
        ("taken", "editor", 409, 3),
        ("archived", "viewer", 403, 3),
        ("archived", "nobody", 404, 3),
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
    counting: Callable[[], Any],
) -> None:
    """One more statement finds out why."""
    headers = bearer(user)
    with counting() as statements:
        response = client.post(f"/labels/{world.record_id(Label, state)}/restore/", headers=headers)
    assert response.status_code == status
    assert len(statements) == expected, statements
