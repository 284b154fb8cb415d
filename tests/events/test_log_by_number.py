"""The log by number over HTTP: followed, proven, and refused to whoever may not read it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from httpx2 import Response
from starlette.types import Message

from normata.core.changes.unit_of_work import Change
from normata.events import log as log_by_number
from normata.events.content import ERASE
from normata.events.erasures import signed_counts
from normata.events.keys import Signer, read_note
from normata.events.log_operations import ConsistencyProof
from normata.events.merkle import is_consistent, leaf_hash
from normata.events.model import AuditEvent
from normata.events.sealing import seal_all_now
from normata.events.verifying import Outcome, verify
from normata.records.kinds import Label
from tests.databases import change, on_both, tamper
from tests.served import Served, refused, served
from tests.stored import rows
from tests.world import ALPHA, BETA

LOG, CONSISTENCY = "/events/log/", "/events/consistency/"
LINES = "application/x-ndjson"


@pytest.fixture
def signer(tmp_path: Path) -> Signer:
    """The key of the log."""
    return Signer(tmp_path / "log.key")


@pytest.fixture
def service(database_url: str, signer: Signer, tmp_path: Path) -> Iterator[Served]:
    """The application over a world of the test's own, in which all events are sealed."""
    with served(database_url, event_key=str(tmp_path / "log.key")) as opened:
        signer.verifier(ALPHA)
        touch(opened, 7)
        yield opened


def touch(service: Served, times: int) -> None:
    """Add events to alpha's log, all sealed."""
    for number in range(times):
        change(service.database, lambda unit: unit.publish(Change("touch", Label, ALPHA, f"x{number}", {"id": "x"})))  # noqa: B023 - called at once
    seal_all_now(service.database)


def ask(service: Served, path: str = LOG, user: str = "auditor", accept: str = "*/*", **query: Any) -> Response:
    """An answer about alpha."""
    headers = service.bearer(user) | {"Accept": accept}
    return service.client.get(path, params={"organizationId": ALPHA} | query, headers=headers)


def lines(service: Served, **query: Any) -> list[dict[str, Any]]:
    """The lines of the log."""
    answer = ask(service, accept=LINES, **query)
    assert (answer.status_code, answer.headers["content-type"]) == (200, LINES), answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


def proven(service: Served, signer: Signer, found: list[dict[str, Any]]) -> Outcome:
    """What `normata events verify` says of lines that were fetched, with a checkpoint that was."""
    note = ask(service, "/events/checkpoint/", "viewer").json()["note"]
    return verify([json.dumps(one) for one in found], read_note(note), [signer.verifier(ALPHA)])


@on_both
def test_a_follower_goes_on_from_where_it_was(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_by_number, "_IN_A_PART", 3)
    page: dict[str, Any] = {"items": [{}]}
    found: list[dict[str, Any]] = []
    after: dict[str, Any] = {}
    while page["items"]:
        page = ask(service, limit=4, **after).json()
        assert page["size"] == len({row["id"] for row in rows(service.database, AuditEvent, organization_id=ALPHA)})
        after = {"after": page["next"]}
        found += page["items"]
    assert [one["number"] for one in found] == list(range(page["size"]))
    assert all(leaf_hash(one["body"]) == one["leafHash"] for one in found)
    assert all(json.loads(one["body"])["id"] == one["id"] for one in found)
    assert lines(service) == found, "the parts in which they are sent leave no trace"
    assert lines(service, after=2, limit=5) == found[3:8]
    assert ask(service, format="ndjson", after=page["size"] + 5).content == b""
    assert ask(service, after=page["size"] + 5).json() == {"items": [], "next": page["size"] + 5, "size": page["size"]}
    change(service.database, lambda unit: unit.publish(Change("touch", Label, ALPHA, "new", {"id": "new"})))
    new = ask(service, "/events/", kind="labels", recordId="new").json()["items"]
    assert (ask(service, **after).json()["items"], [one["number"] for one in new]) == ([], [None])
    seal_all_now(service.database)
    (late,) = ask(service, **after).json()["items"]
    (listed,) = ask(service, "/events/", kind="labels", recordId="new").json()["items"]
    assert (late["number"], late["id"]) == (listed["number"], listed["id"]) == (page["size"], listed["id"])


@on_both
def test_what_was_fetched_is_proven_and_what_was_changed_is_not(service: Served, signer: Signer) -> None:
    found = lines(service)
    outcome = proven(service, signer, found)
    assert (outcome.faults, outcome.lost, outcome.proven) == ([], [], len(found))
    changed = [one | {"body": one["body"].replace("touch", "torch")} for one in found]
    assert proven(service, signer, changed).faults
    assert "leaf 3 is missing" in " ".join(proven(service, signer, [*found[:3], *found[4:]]).faults)
    resealed = [one | {"body": "{}", "leafHash": leaf_hash("{}")} if one["number"] == 2 else one for one in found]
    assert proven(service, signer, resealed).faults


@on_both
def test_an_erased_event_keeps_its_number_and_a_missing_one_is_not_shown(service: Served, signer: Signer) -> None:
    before = lines(service)
    erased, removed = before[-2]["id"], before[-3]["id"]
    counts = signed_counts(signer, ALPHA, [erased])
    change(service.database, lambda unit: unit.publish(Change(ERASE, Label, ALPHA, counts=counts)))
    tamper(service.database, f"UPDATE audit_event SET body = '' WHERE id = '{erased}'")
    seal_all_now(service.database)
    found = lines(service)
    assert found[-3] == before[-2] | {"body": ""}
    assert len(found) == len(before) + 1
    outcome = proven(service, signer, found)
    assert (outcome.faults, outcome.lost, len(outcome.erased)) == ([], [], 1)
    tamper(service.database, f"DELETE FROM audit_event WHERE id = '{removed}'")
    assert [one["id"] for one in lines(service)] == [one["id"] for one in found if one["id"] != removed]
    assert "is missing" in " ".join(proven(service, signer, lines(service)).faults)


@on_both
def test_the_log_has_only_grown(service: Served) -> None:
    sizes = []
    for _ in range(3):
        sizes.append(ask(service, "/events/checkpoint/").json())
        touch(service, 5)
    last = ask(service, "/events/checkpoint/").json()
    for old in (*sizes, last):
        proof = ask(service, CONSISTENCY, "viewer", **{"from": old["size"]}).json()
        ConsistencyProof.model_validate(proof)
        assert (proof["fromRoot"], proof["toRoot"], proof["to"]) == (old["root"], last["root"], last["size"])
        assert is_consistent(old["size"], old["root"], last["size"], last["root"], proof["path"])
    between = ask(service, CONSISTENCY, "viewer", **{"from": 1, "to": sizes[1]["size"]}).json()
    assert between["toRoot"] == sizes[1]["root"]
    changed = f"UPDATE event_leaf SET hash = '{'0' * 64}' WHERE organization_id = '{ALPHA}' AND number > 3"
    tamper(service.database, changed)
    refused(ask(service, CONSISTENCY, **{"from": 1, "to": last["size"] - 1}), 503, "unavailable")


@pytest.mark.parametrize(
    ("path", "query", "status"),
    [
        (LOG, {"after": -1}, 400),
        (LOG, {"limit": 1_001}, 400),
        (LOG, {"limit": 0}, 400),
        (LOG, {"format": "csv"}, 400),
        (LOG, {"organizationId": BETA}, 404),
        (CONSISTENCY, {"from": 3, "to": 2}, 400),
        (CONSISTENCY, {"from": 1, "to": 10**6}, 400),
        (CONSISTENCY, {"from": 10**6}, 400),
        (CONSISTENCY, {}, 400),
    ],
)
def test_what_there_is_not_is_refused(path: str, query: dict[str, Any], status: int, service: Served) -> None:
    assert ask(service, path, **query).status_code == status


def test_nothing_is_read_for_a_client_that_has_gone(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_by_number, "_IN_A_PART", 1)
    sent, taken = list[Message](), asyncio.Event()
    headers = [(name.lower().encode(), value.encode()) for name, value in service.bearer("admin").items()]
    query = f"organizationId={ALPHA}&format=ndjson".encode()
    scope = {"type": "http", "method": "GET", "path": LOG, "query_string": query, "http_version": "1.1"}
    connection = scope | {"headers": [(b"host", b"a"), *headers], "client": ("192.0.2.1", 1), "scheme": "http"}

    async def receive() -> Message:
        await taken.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)
        if len(sent) == 3:
            taken.set()
        await asyncio.sleep(0)

    assert service.client.portal is not None
    service.client.portal.call(service.app, connection, receive, send)
    parts = [message for message in sent if message.get("body")]
    assert 0 < len(parts) < len(lines(service))


def test_only_those_who_may_read_all_events_follow_them(service: Served) -> None:
    for accept in ("application/json", LINES):
        for user in ("viewer", "editor"):
            refused(ask(service, user=user, accept=accept), 403, "forbidden")
        for user in ("auditor", "admin", "owner"):
            assert ask(service, user=user, accept=accept, limit=1).status_code == 200
    refused(ask(service, accept="text/csv"), 406, "not_acceptable")
    query = {"organizationId": ALPHA, "format": "ndjson"}
    head = service.client.head(LOG, params=query, headers=service.bearer("admin"))
    assert (head.status_code, head.content, head.headers["content-type"]) == (200, b"", LINES)
