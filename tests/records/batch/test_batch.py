"""Creating and changing many records of a kind at once, each as alone."""

from __future__ import annotations

from typing import Any

import pytest

from normata.events.model import AuditEvent
from normata.external_ids.model import ExternalId
from normata.notifications.model import Notification
from normata.records.base import Restorable
from normata.records.kinds import Task
from tests import stored
from tests.core.http.counting import counting
from tests.records.batch.sending import Batches, create, update, upsert
from tests.served import refused
from tests.world import ALPHA, record_id


def test_an_upsert_creates_then_changes_then_leaves_alone(batches: Batches) -> None:
    first = batches.done(upsert(1), upsert(2, status="IN_PROGRESS"))
    assert [one["outcome"] for one in first["items"]] == ["created", "created"]
    ids = [one["id"] for one in first["items"]]
    assert [batches.record(one).json()["title"] for one in ids] == ["Task 1", "Task 2"]
    again = batches.done(upsert(1, title="Renamed"), upsert(2), upsert(3))
    assert [one["outcome"] for one in again["items"]] == ["updated", "unchanged", "created"]
    assert [one["id"] for one in again["items"]][:2] == ids
    found = [row for row in stored.rows(batches.service.database, ExternalId) if row["source"] == "tracker"]
    assert sorted((row["external_id"], row["kind"]) for row in found) == [(str(n), "tasks") for n in (1, 2, 3)]
    events = stored.rows(batches.service.database, AuditEvent)
    created = [row for row in events if (row["action"], row["entity_type"]) == ("create", "Task")]
    assert {row["entity_id"] for row in created} == {*ids, again["items"][2]["id"]}


def test_a_second_night_writes_nothing(batches: Batches) -> None:
    night = [upsert(n, description="As yesterday", deadline="2027-01-01", status="TODO") for n in range(500)]
    assert batches.outcomes(*night) == ["created"] * 500
    before = batches.events(), stored.rows(batches.service.database, Task)
    assert batches.outcomes(*night) == ["unchanged"] * 500
    assert (batches.events(), stored.rows(batches.service.database, Task)) == before


def test_every_kind_is_created_and_changed_as_alone(batches: Batches) -> None:
    for kind in Restorable.kinds:
        one, two = ({kind.title_column(): title} for title in ("One", "Two"))
        item = {"action": "upsert", "external": {"source": "x", "id": "1"}, "values": one}
        made = batches.done(item, kind=kind.path)["items"][0]
        body = {"organizationId": ALPHA} | two
        alone = batches.service.client.post(f"/{kind.path}/", json=body, headers=batches.bearer("editor")).json()
        record = batches.record(made["id"], kind.path).json()
        own = {"id", "createdAt", "updatedAt", "slug", "shortId", "order", *one}
        assert {name: value for name, value in record.items() if name not in own} == {
            name: value for name, value in alone.items() if name not in own
        }
        assert batches.outcomes(item, kind=kind.path) == ["unchanged"]
        assert batches.outcomes(item | {"values": two}, kind=kind.path) == ["updated"]


def test_a_record_gets_an_external_id_later(batches: Batches) -> None:
    live = record_id(Task, "live")
    before = batches.record(live).headers["ETag"]
    named = update(live) | {"external": {"source": "tracker", "id": "7"}}
    assert batches.outcomes(named) == ["updated"]
    assert batches.record(live).headers["ETag"] == before
    events = batches.events()
    assert batches.outcomes(named) == ["unchanged"]
    assert batches.events() == events
    (event,) = (row for row in stored.rows(batches.service.database, AuditEvent) if row["entity_id"] == live)
    assert event["action"] == "add_external_id"
    assert batches.outcomes(upsert(7, title="By its new name")) == ["updated"]
    assert batches.record(live).json()["title"] == "By its new name"
    other = update(record_id(Task, "namesake")) | {"external": {"source": "tracker", "id": "7"}}
    taken = batches.done(other, create(title="New") | {"external": other["external"]}, mode="each")
    assert [one["refusal"]["code"] for one in taken["items"]][:1] == ["external_id_taken"]
    assert taken["items"][0]["refusal"]["conflictingId"] == live


def test_all_or_none(batches: Batches) -> None:
    before = batches.events(), stored.rows(batches.service.database, Task)
    good, archived = create(title="Good"), record_id(Task, "archived")
    problem = refused(batches.send(good, update(archived, title="x")), 409, "records_refused")
    assert [(one["name"], one["code"]) for one in problem["errors"]] == [("items/1", "archived")]
    wrong = [good, create(), update(archived, title="x"), update("nothing", title="x"), create(title="a", status="no")]
    assert batches.faults(*wrong) == {
        "items/1/title": "required",
        "items/2": "archived",
        "items/3": "not_found",
        "items/4/status": "malformed",
    }
    assert (batches.events(), stored.rows(batches.service.database, Task)) == before


def test_each_for_itself(batches: Batches) -> None:
    wrong = [create(), update(record_id(Task, "archived"), title="x"), create(title="a", assigneeMemberId="nobody")]
    found = batches.done(create(title="Good"), *wrong, create(title="Good"), mode="each")
    assert (found["done"], found["refused"]) == (2, 3)
    assert [one["done"] for one in found["items"]] == [True, False, False, False, True]
    assert [one["refusal"] and one["refusal"]["code"] for one in found["items"]] == [
        *(None, "validation", "archived", "validation", None)
    ]
    fault = found["items"][3]["refusal"]["errors"][0]
    assert (fault["in"], fault["name"], fault["message"]) == (
        *("body", "items/3/assigneeMemberId"),
        "names no membership that exists",
    )
    slugs = [batches.record(found["items"][place]["id"]).json()["slug"] for place in (0, 4)]
    assert slugs == ["good", "good-2"]


def test_a_dry_run_answers_as_the_run_and_stores_nothing(batches: Batches) -> None:
    items = [
        upsert(1, assigneeMemberId="member-admin"),
        update(record_id(Task, "live"), title="New"),
        update("x", title="y"),
    ]
    before = stored.everything(batches.service.database)
    planned = batches.done(*items, mode="each", params={"dryRun": "true"})
    assert stored.everything(batches.service.database) == before
    run = batches.done(*items, mode="each")
    assert [one | {"id": ""} for one in planned["answer"]["items"]] == [one | {"id": ""} for one in run["items"]]
    assert [(one["kind"], one["action"]) for one in planned["changes"]] == [("tasks", "create"), ("tasks", "update")]
    assert [one["userId"] for one in planned["notifications"]] == ["user-admin"]
    after = stored.rows(batches.service.database, Notification)
    assert len([row for row in after if row["user_id"] == "user-admin" and row["type"] == "record.assigned"]) == 1


def test_a_key_is_answered_again(batches: Batches) -> None:
    send: dict[str, Any] = {"headers": {"Idempotency-Key": "night-1"}}
    once = batches.send(create(title="Once"), **send)
    again = batches.send(create(title="Once"), **send)
    assert (once.status_code, once.json()) == (again.status_code, again.json())
    assert len([row for row in stored.rows(batches.service.database, Task) if row["title"] == "Once"]) == 1
    refused(batches.send(create(title="Twice"), **send), 422, "key_reused")


def test_what_follows_from_a_change_follows_here(batches: Batches) -> None:
    """The next of recurring work is made, as by a single change."""
    made = batches.done(*(upsert(n, frequency="DAILY", deadline="2027-01-01") for n in (1, 2)))
    tasks = len(stored.rows(batches.service.database, Task))
    batches.done(*(update(one["id"], status="DONE") for one in made["items"]))
    assert len(stored.rows(batches.service.database, Task)) == tasks + 2


def test_more_items_take_as_many_reads(batches: Batches, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are looked up, checked and read again in sets."""
    found: dict[str, set[int]] = {}
    for count in (5, 100):
        more = {"source": f"system {count}", "assigneeMemberId": "member-admin"}
        items = [upsert(n, title=f"{count} tasks, {n}", **more) for n in range(count)]
        for state, values in (("new", {}), ("unchanged", {}), ("changed", {"description": "Changed"})):
            sent = [item | {"values": item["values"] | values} for item in items]
            with counting(batches.service.app.services.database, monkeypatch) as asked:
                batches.done(*sent)
            found.setdefault(state, set()).add(sum(one.startswith("SELECT") for one in asked.statements))
    assert {state: len(counts) for state, counts in found.items()} == {"new": 1, "unchanged": 1, "changed": 1}
