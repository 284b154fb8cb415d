"""What every operation does when all is well. One that is added tomorrow is tested here without another line."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from normata.core.changes.revisions import ListRevision
from normata.core.db.types import now
from normata.core.http.operation import ChangeOperation, Operation, ReadOperation
from normata.core.http.problems import ERROR_TYPES
from normata.core.http.roles import SCOPES
from normata.history.series import SeriesQuery
from normata.operations import OPERATIONS
from normata.records.base import Restorable
from normata.records.operations import IntegrationCheckRestore, restore_operation
from tests import stored
from tests.core.http import documented
from tests.core.http.samples import all_operations, enough, most, operations, sample, takes_body
from tests.files.rows import FILE_CONTENT
from tests.served import Served

RIGHTS = [
    pytest.param(operation, role, scope, id=f"{operation.operation_id}-{role}-{scope}")
    for operation in OPERATIONS
    for role, scope in (
        (enough(operation), operation.scope),
        (most(operation), SCOPES[-1]),
    )
]


def rights(kind: type[Operation]) -> pytest.MarkDecorator:
    """Run a test once for each operation of a kind and whoever may do it."""
    chosen = [one for one in RIGHTS if isinstance(one.values[0], kind)]
    return pytest.mark.parametrize(("operation", "role", "scope"), chosen)


@rights(ReadOperation)
def test_whoever_may_read_it_can(operation: Operation, role: str, scope: str, shared: Served) -> None:
    assert events_of_answer(operation, role, scope, shared) == set()


@rights(ChangeOperation)
def test_whoever_may_change_it_can(operation: Operation, role: str, scope: str, service: Served) -> None:
    """A change leaves events that name who made it, and in which request."""
    assert events_of_answer(operation, role, scope, service) == {("chain-2", f"user-{role}")}


def events_of_answer(operation: Operation, role: str, scope: str, service: Served) -> set[tuple[object, object]]:
    """The requests and users of the events that it leaves to be answered.

    With the least role and scope, and with the largest; with the slash at the end and without it, and no redirect. It
    is answered as its document says: the status, the headers, and a body that its schema allows.
    """
    wanted = sample(operation, user=role)
    path = wanted.path if role == enough(operation) else wanted.path.rstrip("/")
    headers = service.bearer(role, scope=scope) | {"X-Request-Id": "chain-2"}
    response = wanted.send(service.client, headers, path=path)
    assert response.status_code == documented.success(operation), response.text[:500]
    assert response.headers["content-type"] == "application/json"
    answer = documented.answer(operation, response.status_code)
    assert documented.headers(answer) <= set(response.headers)
    if isinstance(operation, ReadOperation) and operation.sends_file:
        assert response.content == FILE_CONTENT
    else:
        assert documented.faults(answer["content"]["application/json"]["schema"], response.json()) == []
    return {(event["request_id"], event["user_id"]) for event in stored.events(service.database)}


@all_operations(lambda operation: operation.method == "GET")
def test_head_is_get_without_the_body(operation: Operation, shared: Served) -> None:
    """Where there is GET there is HEAD (RFC 9110, section 9.1); monitors use it."""
    headers = shared.bearer(enough(operation)) | {"X-Request-Id": "the-same"}
    request = sample(operation)
    if isinstance(operation, ReadOperation) and issubclass(operation.query, SeriesQuery):
        # Without it, it is until now, which differs each time.
        request = request.but(query=request.query | {"to": now()})
    for _ in range(3):  # within a second the list of tokens shows the last uses of those that other tests made
        before, head, get = (request.send(shared.client, headers, method=method) for method in ("GET", "HEAD", "GET"))
        if before.headers == get.headers:
            break
    assert (head.status_code, head.content) == (documented.success(operation), b"")
    assert head.headers == get.headers
    assert get.content


@all_operations()
def test_the_request_id_is_the_clients_or_a_new_one(operation: Operation, shared: Served) -> None:
    """Whatever comes of the request: nobody asks here with a token."""
    given, *made = (
        sample(operation).send(shared.client, headers).headers.get_list("x-request-id")
        for headers in ({"X-Request-Id": "chain-1"}, {}, {})
    )
    assert given == ["chain-1"]
    assert made[0] != made[1]


@operations(lambda operation: takes_body(operation) and not operation.body_required)  # type: ignore[attr-defined]
def test_a_body_that_is_not_required_may_be_absent(operation: Operation, service: Served) -> None:
    """Also where its media type is told all the same: it is of no interest then."""
    headers = service.bearer(enough(operation)) | {"Content-Type": "text/plain"}
    response = sample(operation).but(body=None).send(service.client, headers)
    assert response.status_code == documented.success(operation), response.text[:500]


# --- What is declared with it


@all_operations()
def test_examples_are_valid(operation: Operation) -> None:
    """By the schemas beside them: of the answer, of the body of the request, and of every error."""
    described = documented.described(operation)
    found = 0
    parts: list[dict[str, Any]] = [described["requestBody"]] if "requestBody" in described else []
    for part in [*parts, *described["responses"].values()]:
        for media in part.get("content", {}).values():
            for example in documented.examples(media):
                found += 1
                assert documented.faults(media["schema"], example) == []
    files = sum("application/octet-stream" in answer.get("content", {}) for answer in described["responses"].values())
    assert found > len(described["responses"]) - files - 2, "an answer without an example"


@all_operations()
def test_every_error_that_it_can_answer_is_documented(operation: Operation) -> None:
    documented_statuses = {int(status) for status in documented.described(operation)["responses"]}
    assert {ERROR_TYPES[error].status for error in operation.every_error} == {
        s for s in documented_statuses if s >= 400
    }


def test_each_has_its_own_name_and_place() -> None:
    names = [operation.operation_id for operation in OPERATIONS]
    places = [(operation.method, operation.path) for operation in OPERATIONS]
    assert len(set(names)) == len(set(places)) == len(OPERATIONS)
    assert all(path.startswith("/") and path.endswith("/") for _, path in places)


def test_an_operation_that_has_no_sample_says_what_is_missing() -> None:
    """So that whoever adds one knows what to do."""
    operation = restore_operation(Restorable.kinds[0])
    cases: dict[str, dict[str, Any]] = {
        "no `about`": {"about": None},
        "names id, other": {"path": "/labels/{id}/{other}/"},
        "no row of ListRevision": {"about": ListRevision},
        "no `body_example`": {"body": IntegrationCheckRestore, "body_required": True, "body_example": None},
    }
    for reason, changes in cases.items():
        with pytest.raises(pytest.fail.Exception, match=reason):
            sample(replace(operation, **changes))
