"""A dry run says what a change would do, to the last consequence, and does nothing. Each change has one."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select

from normata.core.changes.idempotency import Answer
from normata.core.changes.unit_of_work import Change, Preview
from normata.core.http.dry_run import preview_answer
from normata.core.http.operation import ChangeOperation, Operation
from normata.core.http.roles import ROLES
from normata.core.schema.wire import encode
from normata.identity.last_use import LastUse
from normata.identity.model import AccessToken
from normata.identity.sign_in_model import Password
from normata.notifications.model import Notification
from normata.records.kinds import Asset, Task
from normata.tables import Table
from tests import stored, world
from tests.cells import all_cells
from tests.core.http import documented
from tests.core.http.samples import Sample, about_others, enough, families, sample
from tests.databases import on_both
from tests.served import Served, refused
from tests.world import ALPHA, record_id

each_sort = families(lambda operation: isinstance(operation, ChangeOperation))


def dry(request: Sample, value: str = "true") -> Sample:
    """The same request as a dry run."""
    return request.but(query=request.query | {"dryRun": value})


def whole(served: Served) -> dict[str, list[tuple[Any, ...]]]:
    """Every value of every row of every table, but for what seals the events of tokens meanwhile."""
    return served.database.read_now(
        lambda transaction: {
            table.name: [tuple(row) for row in transaction.rows(select(*table.c).order_by(*table.primary_key.columns))]
            for table in Table.metadata.sorted_tables
            if table.name not in stored.SEALING
        }
    )


@on_both
@each_sort
def test_it_says_what_would_be_done_and_does_nothing(operation: ChangeOperation, service: Served) -> None:
    """Its answer is that of the change itself, which follows; but for what is made anew each time."""
    headers = service.bearer(enough(operation))
    request = sample(operation)
    before = whole(service)
    response = dry(request).send(service.client, headers | {"Idempotency-Key": "k"})
    assert whole(service) == before
    assert response.status_code == 200, response.text[:500]
    assert "location" not in response.headers
    planned = response.json()
    assert documented.faults({"$ref": "#/components/schemas/DryRun"}, planned) == []
    real = request.send(service.client, headers)
    assert planned["status"] == real.status_code
    assert _shape(planned["answer"]) == _shape(_without_secrets(operation, real.json()))
    assert planned["changes"]
    notified = {(row["user_id"], row["type"]) for row in stored.rows(service.database, Notification)}
    assert {(one["userId"], one["type"]) for one in planned["notifications"]} <= notified


def _shape(value: Any) -> Any:
    """What a value is made of; not its texts and numbers."""
    if isinstance(value, dict):
        return {name: _shape(item) for name, item in value.items()}
    return [_shape(item) for item in value] if isinstance(value, list) else type(value)


@each_sort
def test_its_answer_is_as_the_document_says(operation: Operation, service: Served) -> None:
    response = dry(sample(operation), "TRUE").send(service.client, service.bearer(enough(operation)))
    schema = documented.answer(operation, 200)["content"]["application/json"]["schema"]
    assert documented.faults(schema, response.json()) == []


@each_sort
def test_without_it_or_with_false_it_is_done(operation: Operation, service: Served) -> None:
    before = stored.everything(service.database)
    response = dry(sample(operation), "false").send(service.client, service.bearer(enough(operation)))
    assert response.status_code == documented.success(operation)
    assert stored.everything(service.database) != before


@each_sort
def test_it_has_the_same_refusals(operation: ChangeOperation, shared: Served) -> None:
    """Of those who may not, and of what is not there; the rest of a request is read in the same way."""
    roles = ROLES if operation.authority == "operator" else [r for r in ROLES if not operation.admits(r)]
    requests: list[tuple[Sample, str]] = [(sample(operation), role) for role in roles]
    requests += [(other, enough(operation)) for other in about_others(operation)] if operation.about else []
    of_beta = sample(operation, world.BETA)
    is_of_one = operation.authority != "operator" and of_beta != sample(operation)
    requests += [(of_beta, enough(operation))] if is_of_one else []
    for request, user in requests:
        headers = shared.bearer(user) | {"X-Request-Id": "same"}
        first, second = request.send(shared.client, headers), dry(request).send(shared.client, headers)
        assert first.status_code in (403, 404)
        assert (second.status_code, second.json()) == (first.status_code, first.json())


@pytest.mark.parametrize("state", ["live", "taken"])
def test_a_restore_that_is_not_possible_is_refused_alike(state: str, shared: Served) -> None:
    path = f"/tasks/{record_id(Task, state)}/restore/"
    headers = shared.bearer("editor") | {"X-Request-Id": "same"}
    first, second = (shared.client.post(path, params=query, headers=headers) for query in ({}, {"dryRun": "true"}))
    assert first.status_code == 409
    assert second.json() == first.json()


@each_sort
def test_it_must_be_true_or_false(operation: Operation, shared: Served) -> None:
    before = stored.everything(shared.database)
    headers = shared.bearer(enough(operation))
    with all_cells() as at:
        for value in ("yes", "", "1"):
            with at(repr(value)):
                response = dry(sample(operation), value).send(shared.client, headers)
                (fault,) = refused(response, 400, "validation")["errors"]
                assert (fault["in"], fault["name"]) == ("query", "dryRun")
    after = stored.everything(shared.database)
    assert {name: rows for name, rows in after.items() if name != AccessToken.__tablename__} == {
        name: rows for name, rows in before.items() if name != AccessToken.__tablename__
    }


def test_it_is_no_use_of_a_token(shared: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[str] = []
    monkeypatch.setattr(LastUse, "note", lambda _self, token_id, *_: noted.append(token_id))
    path = f"/tasks/{record_id(Task, 'archived')}/restore/"
    headers = shared.bearer("editor")
    assert shared.client.post(path, params={"dryRun": "true"}, headers=headers).status_code == 200
    assert noted == []
    assert shared.client.post(path, params={"dryRun": "false"}, headers=shared.bearer("viewer")).status_code == 403
    assert len(noted) == 1


@on_both
def test_it_tells_whom_it_would_notify(service: Served) -> None:
    wanted = record_id(Asset, "archived")
    service.load({"assets": [{"id": wanted, "ownerId": "member-owner"}]})
    path = f"/assets/{wanted}/restore/"
    planned = service.client.post(path, params={"dryRun": "true"}, headers=service.bearer("editor")).json()
    (one,) = planned["notifications"]
    assert one == {
        "organizationId": ALPHA,
        "userId": "user-owner",
        "type": "record.restored",
        "category": "ASSETS",
    }
    (change,) = planned["changes"]
    assert (change["kind"], change["id"], change["action"]) == ("assets", wanted, "restore")
    assert change["after"]["archivedAt"] is None
    own = service.client.post(path, params={"dryRun": "true"}, headers=service.bearer("owner")).json()
    assert own["notifications"] == [], "never who does it"


def test_nothing_is_told_that_the_service_may_not_know() -> None:
    """Of a table that it may read in part, no more than that part."""
    row = {"user_id": "u", "hash": "secret", "changed_at": "now"}
    change = Change("set", Password, None, "u", row)
    body = encode(preview_answer(Preview(Answer(200, {}, None), [change], [], {})))
    assert b'"after":{"userId":"u","changedAt":"now"}' in body
    assert b"secret" not in body


def _without_secrets(operation: Operation, content: Any) -> Any:
    """An answer as a dry run has it: what is shown once is null."""
    secrets = getattr(operation, "secret_fields", ())
    if not isinstance(content, dict):
        return content
    return {name: None if name in secrets else _without_secrets(operation, value) for name, value in content.items()}
