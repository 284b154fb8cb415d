"""A recurring task that is done makes its next one, once; so does a review that is finished. On both databases."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from normata.core.changes.source import FaultyInput
from normata.links.model import Link
from normata.notifications.model import Notification
from normata.records.base import Restorable
from normata.records.kinds import EntitlementReview, RiskReview, Task
from normata.records.writing import set_by_steps
from normata.recurrences.model import Recurrence
from tests import stored, world
from tests.records.living import change, make
from tests.served import Served, refused, served
from tests.world import ALPHA

JANUARY = "2100-01-31T16:30:00.000Z"
NEXT = "2100-02-28T16:30:00.000Z"
VALUES: dict[str, Any] = {
    "title": "Look at the logs",
    "description": "All of them.",
    "deadline": JANUARY,
    "frequency": "MONTHLY",
    "assigneeMemberId": "member-editor",
    "type": "CONTROL",
    "priority": "HIGH",
    "taskTemplateId": "template-of-elsewhere",
    "policyId": f"policies-live-{ALPHA}",
}


def _task(service: Served, **values: Any) -> str:
    answer = make(service, Task, service.bearer("owner"), **VALUES | values)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def _set(service: Served, task: str, status: str = "DONE", user: str = "editor", **more: Any) -> None:
    answer = change(service, Task, task, service.bearer(user), status=status, **more)
    assert answer.status_code == 200, answer.text


def _recurrence(service: Served, record: str, kind: type[Restorable] = Task) -> dict[str, Any]:
    found: dict[str, Any] = service.client.get(
        f"/{kind.path}/{record}/recurrence/", params={"organizationId": ALPHA}, headers=service.bearer("viewer")
    ).json()
    return found


def _next(service: Served, record: str, kind: type[Restorable] = Task) -> dict[str, Any]:
    return stored.row(service.database, kind, _recurrence(service, record, kind)["nextId"])


def _followers(service: Served, record: str) -> list[str]:
    """What follows a record by its links, live or removed."""
    return [row["from_id"] for row in stored.rows(service.database, Link, to_id=record, relation="FOLLOWS")]


def _count(service: Served, kind: type[Restorable] = Task) -> int:
    return len(stored.rows(service.database, kind))


def _link(service: Served, start: tuple[str, str], end: tuple[str, str], relation: str) -> None:
    ends = {"from": dict(zip(("kind", "id"), start, strict=True)), "to": dict(zip(("kind", "id"), end, strict=True))}
    body = {"organizationId": ALPHA, "relation": relation, "note": "A note."} | ends
    assert service.client.post("/links/", json=body, headers=service.bearer("owner")).status_code == 201


def test_the_next_task_is_as_the_one_done(service: Served) -> None:
    task = _task(service)
    for start, end, relation in (
        (("memberships", "member-owner"), ("tasks", task), "OWNS"),
        (("tasks", task), ("controls", "sun.A.1"), "IMPLEMENTS"),
        (("tasks", task), ("risks", f"risks-live-{ALPHA}"), "TREATS"),
        (("tasks", task), ("audits", f"audits-live-{ALPHA}"), "IN_SCOPE"),
        (("tasks", task), ("tasks", f"tasks-live-{ALPHA}"), "FOLLOWS"),
    ):
        _link(service, start, end, relation)
    assert _recurrence(service, task) == {"frequency": "MONTHLY", "nextDeadline": NEXT, "nextId": None}
    _set(service, task, user="owner")
    done, made = stored.row(service.database, Task, task), _next(service, task)
    assert _recurrence(service, task) == {"frequency": "MONTHLY", "nextDeadline": None, "nextId": made["id"]}
    own = ("id", "slug", "short_id", "status", "deadline", "created_at", "updated_at", "search_text")
    assert {name: value for name, value in made.items() if name not in own} == {
        name: value for name, value in done.items() if name not in own
    }
    assert (made["status"], made["deadline"], made["slug"]) == ("TODO", NEXT, "look-at-the-logs-2")
    assert made["short_id"] > done["short_id"]
    assert made["created_at"] == made["updated_at"] == done["updated_at"]
    links = stored.rows(service.database, Link, from_id=made["id"]) + stored.rows(
        service.database, Link, to_id=made["id"]
    )
    assert sorted((one["relation"], one["from_id"], one["to_id"], one["note"]) for one in links) == [
        ("FOLLOWS", made["id"], task, None),
        ("IMPLEMENTS", made["id"], "sun.A.1", "A note."),
        ("OWNS", "member-owner", made["id"], "A note."),
        ("TREATS", made["id"], f"risks-live-{ALPHA}", "A note."),
    ]
    [event] = stored.events(service.database, entity_id=made["id"])
    [of_done] = stored.events(service.database, entity_id=task, action="update")
    assert (event["action"], event["user_id"], event["request_id"]) == ("create", "user-owner", of_done["request_id"])
    body = json.loads(event["body"])
    assert (body["counts"], body["after"]["title"]) == ({"follows": task}, VALUES["title"])
    told = [row for row in stored.rows(service.database, Notification) if row["payload"]["entityId"] == made["id"]]
    assert [row["user_id"] for row in told] == ["user-editor"]


def test_the_day_of_the_first_deadline_and_its_time_are_kept(service: Served) -> None:
    task, found = _task(service), []
    for _ in range(4):
        _set(service, task)
        row = _next(service, task)
        found.append(row["deadline"])
        task = row["id"]
    days = ("2100-02-28", "2100-03-31", "2100-04-30", "2100-05-31")
    assert found == [f"{day}T16:30:00.000Z" for day in days]
    _set(service, task, "DONE", deadline="2100-06-12T09:00:00.000Z")  # which is the first of another day
    assert _next(service, task)["deadline"] == "2100-07-12T09:00:00.000Z"


def test_done_late_it_names_what_was_skipped(service: Served) -> None:
    task = _task(service, deadline="2024-02-29T00:00:00.000Z", frequency="YEARLY")
    _set(service, task)
    made = _next(service, task)
    [event] = stored.events(service.database, entity_id=made["id"])
    counts = json.loads(event["body"])["counts"]
    assert counts["skipped"][0] == "2025-02-28T00:00:00.000Z"
    assert counts["skippedCount"] == len(counts["skipped"])
    passed = [*counts["skipped"], made["deadline"]]
    assert passed == sorted(passed)
    assert passed[-2][:10] <= made["created_at"][:10] < passed[-1][:10]


@pytest.mark.parametrize(
    "values",
    [{"frequency": "Every second Tuesday"}, {"frequency": None}, {"deadline": None}],
    ids=["words", "no frequency", "no deadline"],
)
def test_others_are_the_last_ones(values: dict[str, Any], service: Served) -> None:
    task = _task(service, **values)
    before = _count(service)
    _set(service, task)
    assert _count(service) == before
    assert _recurrence(service, task)["nextId"] is None
    assert stored.rows(service.database, Recurrence, record_id=task) == []


def test_only_what_becomes_done_has_a_next(service: Served) -> None:
    before = _count(service)
    task, done = _task(service), _task(service, status="DONE")
    for status in ("IN_PROGRESS", "CANCELLED", "IN_REVIEW"):
        _set(service, task, status)
    _set(service, done, priority="LOW")
    assert _count(service) == before + 2


def test_each_has_one_next_however_often_it_is_reopened(service: Served) -> None:
    editor, task = service.bearer("editor"), _task(service)
    _set(service, task)
    made = _next(service, task)["id"]
    before = _count(service)
    _set(service, task, "TODO")
    assert _recurrence(service, task)["nextDeadline"] is None
    _set(service, task)
    # Its link may be removed and itself be archived, and others may be done with it.
    [link] = stored.rows(service.database, Link, from_id=made, relation="FOLLOWS")
    assert service.client.delete(f"/links/{link['id']}/", headers=editor).status_code == 200
    assert service.client.post(f"/tasks/{made}/archive/", headers=editor).status_code == 200
    _set(service, task, "TODO")
    many = {"organizationId": ALPHA, "records": [{"kind": "tasks", "id": task}], "values": {"status": "DONE"}}
    assert service.client.post("/changes/", json=many, headers=editor).status_code == 200
    assert service.client.post(f"/tasks/{task}/archive/", headers=editor).status_code == 200
    assert service.client.post(f"/tasks/{task}/restore/", headers=editor).status_code == 200
    assert _count(service) == before
    assert _followers(service, task) == [made]


def test_of_racing_completions_one_makes_the_next(service: Served) -> None:
    task = _task(service)
    before = _count(service)
    with served(service.url) as other, ThreadPoolExecutor(4) as pool:
        bearers = [(one, one.bearer("editor")) for one in (service, other, service, other)]
        answers = list(pool.map(lambda one: change(one[0], Task, task, one[1], status="DONE"), bearers))
    assert {answer.status_code for answer in answers} == {200}
    assert _count(service) == before + 1
    assert len(_followers(service, task)) == 1


def test_many_are_done_and_undone_at_once(service: Served) -> None:
    editor = service.bearer("editor")
    tasks = [_task(service) for _ in range(3)]
    _link(service, ("tasks", tasks[0]), ("tasks", tasks[1]), "SUPPORTS")
    before = _count(service)
    names = [{"kind": "tasks", "id": task} for task in tasks]
    many = {"organizationId": ALPHA, "records": names, "values": {"status": "DONE"}}
    planned = service.client.post("/changes/?dryRun=true", json=many, headers=editor).json()
    assert [one["action"] for one in planned["changes"] if one["kind"] == "tasks"] == ["update"] * 3 + ["create"] * 3
    assert _count(service) == before
    change_id = service.client.post("/changes/", json=many, headers=editor).json()["changeId"]
    nexts = [_next(service, task) for task in tasks]
    assert len({row["slug"] for row in nexts} | {row["short_id"] for row in nexts}) == 6
    [link] = stored.rows(service.database, Link, from_id=nexts[0]["id"], relation="SUPPORTS")
    assert link["to_id"] == nexts[1]["id"]
    _set(service, nexts[2]["id"], "IN_PROGRESS")
    undo = {"organizationId": ALPHA, "changeId": change_id}
    undone = service.client.post("/changes/undo/", json=undo, headers=editor).json()
    # What was made is taken back, unless somebody has gone on with it; then each can have its next one again.
    for number, task in enumerate(tasks):
        made = stored.row(service.database, Task, nexts[number]["id"])
        assert (made["archived_at"] is None) == (number == 2)
        assert (_recurrence(service, task)["nextId"] is None) == (number != 2)
    redo = undo | {"changeId": undone["changeId"]}
    assert service.client.post("/changes/undo/", json=redo, headers=editor).status_code == 200
    again = [_next(service, task) for task in tasks]
    assert [one["archived_at"] for one in again] == [None] * 3
    assert [one["id"] == nexts[number]["id"] for number, one in enumerate(again)] == [False, False, True]
    assert _count(service) == before + 5


def test_neither_a_load_nor_who_left_stands_in_the_way(service: Served) -> None:
    task = _task(service, assigneeMemberId="member-admin")
    before = _count(service)
    world.load(service.database, {"tasks": [{"id": task, "status": "DONE"}]})
    assert _count(service) == before
    _set(service, task, "TODO")
    _link(service, ("memberships", "member-admin"), ("tasks", task), "OWNS")
    service.sql("UPDATE membership SET removed_at = '2026-01-02T03:04:05.678Z' WHERE id = 'member-admin'")
    _set(service, task)
    made = _next(service, task)
    assert (made["assignee_member_id"], made["policy_id"]) == (None, VALUES["policyId"])
    assert stored.rows(service.database, Link, to_id=made["id"]) == []


@pytest.mark.parametrize("kind", [EntitlementReview, RiskReview], ids=lambda kind: kind.path)
def test_a_review_recurs_as_long_as_it_says(kind: type[Restorable], service: Served) -> None:
    editor, path = service.bearer("editor"), f"/{kind.path}"
    values = {"title": "Autumn", "deadline": JANUARY, "coordinatorId": "member-owner"}
    review = make(service, kind, editor, **values).json()["id"]
    nothing = {"frequency": None, "nextDeadline": None, "nextId": None}
    assert _recurrence(service, review, kind) == nothing
    place, body = f"{path}/{review}/recurrence/", {"frequency": "HALF_YEARLY"}
    recurs = {"frequency": "HALF_YEARLY", "nextDeadline": "2100-07-31T16:30:00.000Z", "nextId": None}
    assert service.client.put(place, json=body, params={"dryRun": "true"}, headers=editor).json()["answer"] == recurs
    for _ in range(2):  # the second time it changes nothing
        assert service.client.put(place, json=body, headers=editor).json() == recurs
    assert _recurrence(service, review, kind) == recurs
    [event] = stored.events(service.database, entity_id=review, action="repeat")
    assert json.loads(event["body"])["counts"] == body
    assert service.client.delete(place, headers=editor).json() == nothing
    assert service.client.put(place, json=body, headers=editor).json() == recurs
    _finish(service, kind, review)
    made = _next(service, review, kind)
    assert (made["title"], made["deadline"], made["finished_at"]) == ("Autumn", recurs["nextDeadline"], None)
    assert (made["coordinator_id"], _followers(service, review)) == ("member-owner", [made["id"]])
    assert _recurrence(service, made["id"], kind) == recurs | {"nextDeadline": "2101-01-31T16:30:00.000Z"}
    assert service.client.delete(f"{path}/{made['id']}/recurrence/", headers=editor).json() == nothing
    before = _count(service, kind)
    _finish(service, kind, made["id"])
    assert _count(service, kind) == before


def _finish(service: Served, kind: type[Restorable], review: str) -> None:
    if "finished_at" in set_by_steps(kind):
        answer = service.client.post(f"/{kind.path}/{review}/finish/", headers=service.bearer("editor"))
    else:
        answer = change(service, kind, review, service.bearer("editor"), finishedAt="2100-01-01")
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("kind", [EntitlementReview, RiskReview], ids=lambda kind: kind.path)
def test_what_setting_a_recurrence_refuses(kind: type[Restorable], service: Served) -> None:
    review = make(service, kind, service.bearer("editor"), title="Autumn").json()["id"]
    body = {"frequency": "WEEKLY"}

    def put(record: str, user: str = "editor", **other: Any) -> Any:
        path = f"/{kind.path}/{record}/recurrence/"
        return service.client.put(path, json=body | other, headers=service.bearer(user))

    refused(put(review, frequency="HOURLY"), 400, "validation")
    refused(put(review, "viewer"), 403, "forbidden")
    refused(put("unknown"), 404, "not_found")
    refused(put(review, "foreigner"), 404, "not_found")
    refused(put(f"{kind.path}-archived-{ALPHA}"), 409, "archived")
    assert put(review).json() == {"frequency": "WEEKLY", "nextDeadline": None, "nextId": None}
    before = _count(service, kind)
    _finish(service, kind, review)
    assert _count(service, kind) == before, "it has no deadline to count from"
    problem = refused(put(review), 409, "wrong_state")
    assert (problem["state"], problem["allowed"]) == ("FINISHED", ["RUNNING"])


def test_what_a_load_of_recurrences_refuses(service: Served) -> None:
    task = _task(service)
    row = {"id": "new", "organizationId": ALPHA, "kind": "tasks", "recordId": task}
    for wrong in (
        {"kind": "labels"},
        {"recordId": "unknown"},
        {"nextId": "unknown"},
        {"nextId": "tasks-live-org-beta"},
    ):
        with pytest.raises(FaultyInput):
            world.load(service.database, {"recurrences": [row | wrong]})
    world.load(service.database, {"recurrences": [row | {"nextId": f"tasks-live-{ALPHA}", "day": 31}]})
    before = _count(service)
    _set(service, task)
    assert _count(service) == before, "it has had its next one where it comes from"
