"""A request with an Idempotency-Key is carried out once. Each POST heeds one, those of tomorrow too."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import Any

import pytest
from httpx2 import Response
from sqlalchemy.util import await_only

from normata.core.changes import idempotency
from normata.core.changes.idempotency import ForgetKeys, IdempotencyKey
from normata.core.db.types import format_timestamp
from normata.core.http import change_endpoint as changing
from normata.core.http.operation import ChangeOperation, Operation
from normata.core.schema.table import sql_table
from normata.records.kinds import Asset, Label, Task
from tests import stored, world
from tests.cells import all_cells
from tests.core.http import documented
from tests.core.http.counting import counting
from tests.core.http.samples import enough, families, operations, sample
from tests.databases import change, on_both
from tests.served import Headers, Served, refused, served
from tests.world import ALPHA, BETA, record_id

KEY = {"Idempotency-Key": '"5f0c7d9e"'}
TASK = f"/tasks/{record_id(Task, 'archived')}/restore/"
LABEL = f"/labels/{record_id(Label, 'archived')}/restore/"
ASSET = f"/assets/{record_id(Asset, 'archived')}/restore/"
DAY = 24 * 60 * 60


@pytest.fixture
def pair(database_url: str) -> Iterator[tuple[Served, Served]]:
    """The application twice over one database, as two processes have it."""
    with served(database_url) as first, served(database_url) as second:
        change(first.database, world.remember)
        yield first, second


def keys(service: Served) -> list[dict[str, Any]]:
    """The keys that are kept."""
    return stored.everything(service.database)[str(IdempotencyKey.__tablename__)]


def same(first: Response, second: Response) -> bool:
    """Whether two answers are the same but for what each answer has of its own."""
    headers = [
        {name: value for name, value in response.headers.items() if name != "x-request-id"}
        for response in (first, second)
    ]
    return (first.status_code, first.content, headers[0]) == (second.status_code, second.content, headers[1])


# --- Once


def takes_key(operation: Operation) -> bool:
    return isinstance(operation, ChangeOperation) and operation.takes_key


@operations(takes_key)
def test_it_is_done_once_and_answered_twice(operation: ChangeOperation, pair: tuple[Served, Served]) -> None:
    """In quotes or without, by this process or another, and with another token of the same user."""
    send_again(operation, pair)


@pytest.mark.long
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
@families(takes_key)
def test_it_is_done_once_on_postgresql(operation: ChangeOperation, pair: tuple[Served, Served]) -> None:
    send_again(operation, pair)


def send_again(operation: ChangeOperation, pair: tuple[Served, Served]) -> None:
    """Send a request with a key three times more: it has the same answer, and changes nothing."""
    service, other = pair
    request = sample(operation)
    first = request.send(service.client, service.bearer(enough(operation)) | KEY)
    assert first.status_code == documented.success(operation), first.text[:500]
    before = stored.everything(service.database)
    (kept,) = keys(service)
    assert kept["key"] == "5f0c7d9e"
    is_shown_again = operation.authority == "organization" and not operation.answers_secret
    assert kept["organization_id"] == (ALPHA if is_shown_again else None)
    assert (kept["body"] is None) == operation.answers_secret
    bare = {"Idempotency-Key": "5f0c7d9e"}
    with all_cells() as at:
        for number, (asked, headers) in enumerate(((service, KEY), (service, bare), (other, KEY))):
            with at(f"{number}, {headers}"):
                token = asked.bearer(enough(operation))
                again = request.send(asked.client, token | headers)
                if operation.answers_secret:
                    assert "secret" in refused(again, 409, "answer_not_stored")["detail"]
                else:
                    assert same(first, again)
                after = stored.everything(service.database)
                assert after == before | {"access_token": after["access_token"]}


@operations(lambda operation: isinstance(operation, ChangeOperation) and not operation.takes_key)
def test_other_methods_do_not_look_at_it(operation: Operation, service: Served) -> None:
    headers = service.bearer(enough(operation)) | {"Idempotency-Key": ""}
    assert sample(operation).send(service.client, headers).is_success
    assert keys(service) == []


def test_another_request_is_refused(service: Served) -> None:
    """Whatever is different: the path, the query, the body, or its type."""
    admin = service.bearer("admin") | KEY | {"Content-Type": "text/csv"}
    path, query, body = "/imports/", {"organizationId": ALPHA, "name": "Docks"}, b"identifier,name\n1,Berths\n"
    send = service.client.post
    assert send(path, params=query, content=body, headers=admin).status_code == 200
    before = stored.everything(service.database)
    for response in (
        send(path, params=query | {"name": "Locks"}, content=body, headers=admin),
        send(path, params=query, content=body + b"2,Lights\n", headers=admin),
        send(path, params=query, content=body, headers=admin | {"Content-Type": "text/csv; charset=utf-8"}),
        send(TASK, headers=admin),
    ):
        refused(response, 422, "key_reused")
    assert stored.everything(service.database) == before
    assert send(path, params=query, content=body, headers=admin).status_code == 200


@on_both
def test_another_path_alone_makes_it_another_request(service: Served) -> None:
    """Method, query and body are the same, and so is the type of what is restored."""
    headers, other = service.bearer("editor") | KEY, record_id(Task, "live")
    service.load({"tasks": [{"id": other, "archivedAt": world.ARCHIVED}]})
    assert service.client.post(TASK, headers=headers).status_code == 200
    before = stored.everything(service.database)
    for path in (f"/tasks/{other}/restore/", LABEL):
        refused(service.client.post(path, headers=headers), 422, "key_reused")
    assert stored.everything(service.database) == before


def test_a_key_is_its_users_own(service: Served) -> None:
    assert service.client.post(TASK, headers=service.bearer("editor") | KEY).status_code == 200
    refused(service.client.post(TASK, headers=service.bearer("owner") | KEY), 409, "not_archived")
    assert service.client.post(LABEL, headers=service.bearer("owner") | KEY).status_code == 200


def test_what_was_refused_has_not_used_up_its_key(service: Served) -> None:
    headers = service.bearer("editor") | KEY
    live = record_id(Task, "live")
    refused(service.client.post(f"/tasks/{live}/restore/", headers=headers), 409, "not_archived")
    assert keys(service) == []
    service.load({"tasks": [{"id": live, "archivedAt": world.ARCHIVED}]})
    assert service.client.post(f"/tasks/{live}/restore/", headers=headers).status_code == 200


@on_both
def test_what_fails_in_the_end_leaves_no_key(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key is kept with the change, or not at all."""
    headers = service.bearer("editor") | KEY
    before = stored.everything(service.database)
    with monkeypatch.context() as patch:
        patch.setattr("normata.events.recording.RecordEvents.__call__", lambda *_: 1 / 0)
        refused(service.client.post(TASK, headers=headers), 500, "internal")
    assert stored.everything(service.database) == before
    assert service.client.post(TASK, headers=headers).status_code == 200


def test_a_dry_run_uses_up_no_key_and_is_answered_from_none(service: Served) -> None:
    headers = service.bearer("editor") | KEY
    assert service.client.post(f"{TASK}?dryRun=true", headers=headers).json()["dryRun"] is True
    assert service.client.post(TASK, headers=headers).status_code == 200
    refused(service.client.post(f"{TASK}?dryRun=true", headers=headers), 409, "not_archived")


@on_both
def test_who_has_left_the_organization_is_not_shown_the_answer(service: Served) -> None:
    """Nor is the key free: it stands for what was done."""
    headers = service.bearer("admin") | KEY
    assert service.client.post(TASK, headers=headers).status_code == 200
    service.sql(
        f"UPDATE membership SET organization_id = '{BETA}' WHERE user_id = 'user-admin' AND organization_id = '{ALPHA}'"
    )
    refused(service.client.post(TASK, headers=headers), 404, "not_found")
    foreign = f"/labels/{record_id(Label, 'archived', BETA)}/restore/"
    before = stored.everything(service.database)
    refused(service.client.post(foreign, headers=headers), 422, "key_reused")
    assert stored.everything(service.database) == before


def test_an_answer_that_is_too_large_is_not_kept(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was done is not done again all the same."""
    monkeypatch.setattr(idempotency, "MAX_ANSWER", 10)
    headers = service.bearer("editor") | KEY
    assert service.client.post(TASK, headers=headers).status_code == 200
    refused(service.client.post(TASK, headers=headers), 409, "answer_not_stored")
    (kept,) = keys(service)
    assert kept["body"] is None


@pytest.mark.parametrize(
    "key",
    [
        b"",
        b'""',
        b" ",
        b"x" * 256,
        b'"' + b"x" * 256 + b'"',
        b"a\x7fb",
        b"a\x85b",
        b'"a',
        b'"a"b',
        b'"a\\b"',
        b'"\xe9"',
    ],
)
def test_what_is_no_key_is_refused(key: bytes, service: Served) -> None:
    headers: list[tuple[bytes, bytes]] = [(b"Idempotency-Key", key)]
    (fault,) = _invalid(service, headers)
    assert (fault["in"], fault["name"]) == ("header", "Idempotency-Key")


def test_a_key_is_sent_once(service: Served) -> None:
    (fault,) = _invalid(service, [(b"Idempotency-Key", b"a"), (b"Idempotency-Key", b"a")])
    assert fault["code"] == "repeated"


def _invalid(service: Served, headers: list[tuple[bytes, bytes]]) -> list[dict[str, Any]]:
    bearer = [(name.encode(), value.encode()) for name, value in service.bearer("editor").items()]
    before = stored.everything(service.database)
    response = service.client.post(TASK, headers=[*bearer, *headers])
    faults: list[dict[str, Any]] = refused(response, 400, "validation")["errors"]
    assert stored.everything(service.database) == before
    return faults


@pytest.mark.parametrize("key", [b"x" * 255, b'"' + b"x" * 255 + b'"', b'"\\"\\\\"', b"caf\xe9", b"a b"])
def test_any_other_text_is_a_key(key: bytes, service: Served) -> None:
    headers = [(name.encode(), value.encode()) for name, value in service.bearer("editor").items()]
    for _ in range(2):
        response = service.client.post(TASK, headers=[*headers, (b"Idempotency-Key", key)])
        assert response.status_code == 200
    assert len(keys(service)) == 1


def test_without_a_key_nothing_is_asked_for_it(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    headers = service.bearer("editor")
    with counting(service.app.services.database, monkeypatch) as asked:
        assert service.client.post(TASK, headers=headers).status_code == 200
    assert "idempotency_key" not in asked.tables
    with counting(service.app.services.database, monkeypatch) as keyed:
        assert service.client.post(ASSET, headers=headers | KEY).status_code == 200
    assert len(keyed.statements) == len(asked.statements) + 2


# --- At once


@on_both
@pytest.mark.parametrize("elsewhere", [False, True], ids=["the same process", "another process"])
def test_while_the_first_is_under_way_the_second_waits(
    pair: tuple[Served, Served], elsewhere: bool, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told to. Of another process SQLite has it wait by itself, and then gives it the first answer."""
    first, second = pair[0], pair[elsewhere]
    headers = first.bearer("editor") | KEY
    held, go_on = Event(), Event()
    on_sqlite = database_url.startswith("sqlite")
    once = idempotency.once

    def held_open(*args: Any, **options: Any) -> Any:
        answer = once(*args, **options)
        if not held.is_set():
            held.set()
            # On PostgreSQL it runs on the event loop, which goes on with others.
            assert go_on.wait(30) if on_sqlite else await_only(asyncio.to_thread(go_on.wait, 30))
        return answer

    monkeypatch.setattr(changing, "once", held_open)
    with ThreadPoolExecutor(2) as threads:
        asking = threads.submit(first.client.post, TASK, headers=headers)
        try:
            assert held.wait(30)
            again = threads.submit(second.client.post, TASK, headers=headers)
            if elsewhere and on_sqlite:
                assert not again.done()
            else:
                response = again.result(30)
                refused(response, 409, "request_in_progress")
                assert response.headers["retry-after"] == "1"
        finally:
            go_on.set()
        answer = asking.result(30)
        assert answer.status_code == 200
        if elsewhere and on_sqlite:
            assert same(answer, again.result(30))
    assert same(answer, second.client.post(TASK, headers=headers))
    assert len(stored.events(first.database)) == 1


@on_both
def test_of_many_at_once_one_is_carried_out(pair: tuple[Served, Served]) -> None:
    """In each round two processes get the same request several times at once."""
    headers = pair[0].bearer("admin")
    made = 0
    with ThreadPoolExecutor(8) as threads:
        for number in range(5):
            body = {"organizationId": ALPHA, "name": f"Docks {number}"}
            keyed = headers | {"Idempotency-Key": f"round-{number}"}
            asking = [
                threads.submit(pair[place % 2].client.post, "/frameworks/", json=body, headers=keyed)
                for place in range(8)
            ]
            answers = [one.result(30) for one in asking]
            assert {answer.status_code for answer in answers} <= {201, 409}
            done = [answer for answer in answers if answer.status_code == 201]
            made += 1
            assert len({answer.content for answer in done}) == len({answer.headers["location"] for answer in done}) == 1
            assert len(stored.events(pair[0].database)) == made


# --- For a day


@on_both
def test_after_a_day_the_key_is_free_again(service: Served) -> None:
    headers = service.bearer("editor") | KEY
    assert service.client.post(TASK, headers=headers).status_code == 200
    _age(service, "5f0c7d9e", DAY - 60)
    assert service.client.post(TASK, headers=headers).status_code == 200
    _age(service, "5f0c7d9e", DAY + 1)
    refused(service.client.post(TASK, headers=headers), 409, "not_archived")
    assert len(keys(service)) == 1, "what was refused has taken nothing away"
    assert service.client.post(LABEL, headers=headers).status_code == 200
    (kept,) = keys(service)
    assert kept["path"] == LABEL


def _age(service: Served, key: str, seconds: float) -> None:
    moment = format_timestamp(datetime.now(UTC) - timedelta(seconds=seconds))
    service.sql(f"UPDATE idempotency_key SET created_at = '{moment}' WHERE key = '{key}'")


@on_both
def test_keys_that_have_served_their_time_are_removed(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few at a time, of every organization, and no others."""
    monkeypatch.setattr(idempotency, "_PAUSE", 0)
    headers: dict[str, Headers] = {user: service.bearer(user) for user in ("editor", "foreigner")}
    assert service.client.post(TASK, headers=headers["editor"] | {"Idempotency-Key": "old"}).status_code == 200
    assert service.client.post(LABEL, headers=headers["editor"] | {"Idempotency-Key": "new"}).status_code == 200
    foreign = f"/labels/{record_id(Label, 'archived', BETA)}/restore/"
    assert service.client.post(foreign, headers=headers["foreigner"] | {"Idempotency-Key": "old"}).status_code == 200
    _age(service, "old", DAY + 1)
    columns = ", ".join(column.name for column in sql_table(IdempotencyKey).c if column.name != "user_id")
    service.sql(
        *(
            f"INSERT INTO idempotency_key (user_id, {columns}) SELECT user_id || '{number}', {columns}"
            " FROM idempotency_key WHERE key = 'old' AND user_id IN ('user-editor', 'user-foreigner')"
            for number in range(120)
        )
    )
    assert len(keys(service)) == 243
    portal = service.client.portal
    assert portal is not None
    forgetting = ForgetKeys(service.app.services.database)
    steps = 0
    step = forgetting.forget

    async def counted() -> bool:
        nonlocal steps
        steps += 1
        return await step()

    monkeypatch.setattr(forgetting, "forget", counted)
    portal.call(forgetting.forget_all)
    assert [row["key"] for row in keys(service)] == ["new"]
    assert steps >= 2
