"""A review gets its items, records a decision for each, and makes a task for each removal when it is finished."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from httpx2 import Response

from normata.entitlements.model import EntitlementReviewItem
from normata.records.kinds import EntitlementReview, Task
from tests import stored
from tests.entitlements.rows import item_id
from tests.records.living import change, make
from tests.risks.rating import read
from tests.served import Served, refused, served
from tests.world import ALPHA, BETA, record_id

PEOPLE = ("Ana", "Ben", "Cleo")


def _review(service: Served, **values: Any) -> str:
    answer = make(service, EntitlementReview, service.bearer("editor"), **{"title": "Autumn review"} | values)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def _row(person: str, system: str = "Mail", entitlement: str = "User", **more: Any) -> dict[str, Any]:
    return {"person": person, "system": system, "entitlement": entitlement} | more


def _post(service: Served, review: str, step: str, body: Any = None, user: str = "editor", **more: Any) -> Response:
    path = f"/entitlement-reviews/{review}/{step}/"
    return service.client.post(path, json=body, headers=service.bearer(user), params=more)


def _add(service: Served, review: str, *rows: dict[str, Any]) -> list[str]:
    answer = _post(service, review, "items/many", {"items": list(rows) or [_row(one) for one in PEOPLE]})
    assert answer.status_code == 200, answer.text
    return [one["id"] for one in answer.json()["items"]]


def _decide(service: Served, review: str, *decisions: tuple[str, ...], user: str = "editor") -> Response:
    names = ("itemId", "decision", "change")
    body = {"decisions": [dict(zip(names, one, strict=False)) for one in decisions]}
    return _post(service, review, "decisions", body, user)


def _import(service: Served, review: str, table: str, user: str = "editor", **query: Any) -> Response:
    headers = service.bearer(user) | {"content-type": "text/csv"}
    path = f"/entitlement-reviews/{review}/items/import/"
    return service.client.post(path, content=table.encode(), headers=headers, params=query)


def _items(service: Served, review: str, **query: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = read(service, f"/entitlement-reviews/{review}/items/", **query)["items"]
    return found


def _progress(service: Served, review: str) -> dict[str, Any]:
    return read(service, f"/entitlement-reviews/{review}/progress/")


def _faults(answer: Response) -> list[tuple[str, str]]:
    return [(one["name"], one["code"]) for one in refused(answer, 400, "validation")["errors"]]


def test_items_come_one_by_one_many_at_once_and_from_a_table(service: Served) -> None:
    review = _review(service)
    one = _post(service, review, "items", _row("Ana", remark="Left in May."))
    assert one.status_code == 200, one.text
    _add(service, review, _row("Ben", "Wiki"), _row("Cleo", "Wiki"))
    table = "Entitlement;person;SYSTEM\n\nAdmin;Dora;Mail\nUser;Dora;Mail\n"
    preview = _import(service, review, table, dryRun="true")
    assert [row["person"] for row in preview.json()["answer"]["items"]] == ["Dora", "Dora"]
    assert len(_items(service, review)) == 3
    assert _import(service, review, table).status_code == 200
    wrapped = {"table": "person,system,entitlement\nEve,Mail,User\n"}
    assert (
        _post(service, review, "items/import", wrapped, dryRun="true").json()["answer"]["items"][0]["person"] == "Eve"
    )
    assert _faults(_post(service, review, "items/import", {"rows": []})) == [("table", "required")]
    found = _items(service, review)
    assert [(row["person"], row["system"], row["entitlement"], row["remark"]) for row in found] == [
        ("Ana", "Mail", "User", "Left in May."),
        ("Ben", "Wiki", "User", None),
        ("Cleo", "Wiki", "User", None),
        ("Dora", "Mail", "Admin", None),
        ("Dora", "Mail", "User", None),
    ]
    assert {row["decision"] for row in found} == {None}
    events = stored.events(service.database, entity_id=found[3]["id"])
    assert [(event["action"], event["user_id"]) for event in events] == [("create", "user-editor")]
    assert [row["person"] for row in _items(service, review, system="Wiki")] == ["Ben", "Cleo"]
    assert [row["person"] for row in _items(service, review, limit=5, page=1)] == [row["person"] for row in found]


def test_every_fault_of_a_table_has_its_cell(service: Served) -> None:
    review = _review(service)
    _add(service, review)
    table = "person,system,entitlement,email\nAna,Mail,User,a\n,Mail,Admin,\nBen,,,\nDora,Mail,User\nDora,Mail,User\n"
    assert _faults(_import(service, review, table)) == [
        ("rows/1/email", "invalid"),
        ("rows/3/person", "required"),
        ("rows/4/system", "required"),
        ("rows/4/entitlement", "required"),
        ("rows/2/entitlement", "taken"),
        ("rows/6/entitlement", "taken"),
    ]
    assert _faults(_import(service, review, "name,system\nAna,Mail\n")) == [("", "invalid")]
    assert _faults(_import(service, review, "person,system,entitlement\n")) == [("", "invalid")]
    body = {"items": [_row("Eve"), _row("Ana"), _row(" ")]}
    assert _faults(_post(service, review, "items/many", body)) == [("items/2/person", "malformed")]
    assert _faults(_post(service, review, "items/many", {"items": body["items"][:2]})) == [
        ("items/1/entitlement", "taken")
    ]
    assert len(_items(service, review)) == len(PEOPLE)


def test_a_decision_says_who_and_when_and_is_an_event(service: Served) -> None:
    review = _review(service)
    ana, ben, cleo = _add(service, review)
    answer = _decide(service, review, (ana, "KEEP"), (ben, "CHANGE", "Reader"))
    assert answer.status_code == 200, answer.text
    first, second = answer.json()["items"]
    assert (first["decision"], first["change"], first["decidedById"]) == ("KEEP", None, "member-editor")
    assert (second["decision"], second["change"]) == ("CHANGE", "Reader")
    assert first["decidedAt"] == second["decidedAt"] is not None
    # The same again stays as it is, another one takes its place.
    again = _decide(service, review, (ana, "KEEP"), (ben, "REMOVE"), user="owner").json()["items"]
    assert again[0] == first
    assert (again[1]["decision"], again[1]["change"], again[1]["decidedById"]) == ("REMOVE", None, "member-owner")
    events = stored.events(service.database, entity_id=ben)
    assert [(one["action"], one["user_id"]) for one in events] == [
        ("create", "user-editor"), ("decide", "user-editor"), ("decide", "user-owner"),
    ]  # fmt: skip
    assert len(stored.events(service.database, entity_id=ana)) == 2
    assert [one["id"] for one in _items(service, review, isOpen="true")] == [cleo]
    query = "organizationId=" + ALPHA + "&decision=KEEP&decision=REMOVE"
    both = service.client.get(f"/entitlement-reviews/{review}/items/?{query}", headers=service.bearer("viewer"))
    assert [one["id"] for one in both.json()["items"]] == [ana, ben]
    assert _progress(service, review) == {
        "total": 3,
        "open": 1,
        "keep": 1,
        "remove": 1,
        "change": 0,
        "systems": [{"system": "Mail", "total": 3, "open": 1}],
    }


def test_what_it_refuses(service: Served) -> None:
    review = _review(service)
    ana, *_ = _add(service, review)
    for user in ("viewer", "auditor"):
        refused(_post(service, review, "items", _row("Eve"), user), 403, "forbidden")
        refused(_decide(service, review, (ana, "KEEP"), user=user), 403, "forbidden")
        refused(_post(service, review, "finish", user=user), 403, "forbidden")
    decisions = [(ana, "CHANGE"), (ana, "KEEP", "Reader"), (item_id(ALPHA), "KEEP"), (item_id(BETA), "KEEP")]
    wrong = [_faults(_decide(service, review, one)) for one in decisions]
    assert wrong == [
        [("decisions/0/change", "required")],
        [("decisions/0/change", "unknown")],
        *[[("decisions/0/itemId", "invalid")]] * 2,
    ]
    assert _faults(_decide(service, review, (ana, "KEEP"), (ana, "REMOVE"))) == [("decisions/1/itemId", "invalid")]
    assert _faults(_decide(service, review, (ana, "LEAVE"))) == [("decisions/0/decision", "not_allowed")]
    assert _decide(service, review, (ana, "REMOVE")).status_code == 200
    body = {"itemIds": [ana]}
    assert _post(service, review, "items/remove", body).json() is None
    assert stored.events(service.database, entity_id=ana)[-1]["action"] == "delete"
    assert _progress(service, review)["total"] == len(PEOPLE) - 1
    archived = record_id(EntitlementReview, "archived")
    for step, sent in (("items", _row("Eve")), ("finish", None)):
        refused(_post(service, archived, step, sent), 409, "archived")
        refused(_post(service, record_id(EntitlementReview, "live", BETA), step, sent), 404, "not_found")


def test_it_is_finished_once_all_is_decided_and_makes_tasks(service: Served) -> None:
    editor, review = service.bearer("editor"), _review(service, coordinatorId="member-owner")
    ana, ben, cleo = _add(service, review, _row("Ana"), _row("Ben", remark="Has moved."), _row("Cleo"))
    assert _decide(service, review, (ana, "KEEP"), (ben, "CHANGE", "Reader")).status_code == 200
    left = refused(_post(service, review, "finish"), 409, "wrong_state")
    assert (left["state"], left["allowed"]) == ("UNDECIDED", ["DECIDED"])
    assert _decide(service, review, (cleo, "REMOVE")).status_code == 200
    for value in ("2026-01-01", "2030-01-01"):
        found = refused(change(service, EntitlementReview, review, editor, finishedAt=value), 400, "validation")
        assert [(fault["name"], fault["code"]) for fault in found["errors"]] == [("finishedAt", "read_only")]
    assert _faults(_post(service, review, "finish", {"assigneeMemberId": "unknown"})) == [
        ("assigneeMemberId", "invalid")
    ]
    preview = _post(service, review, "finish", {"deadline": "2030-01-01"}, dryRun="true").json()
    assert preview["answer"]["finishedAt"] is not None
    assert stored.rows(service.database, Task, entitlement_review_id=review) == []
    finished = _post(service, review, "finish", {"deadline": "2030-01-01"}).json()
    events = stored.events(service.database, entity_id=review)
    assert (events[-1]["action"], events[-1]["user_id"]) == ("finish", "user-editor")
    tasks = {task["title"]: task for task in stored.rows(service.database, Task, entitlement_review_id=review)}
    assert {title: task["description"] for title, task in tasks.items()} == {
        "Change User in Mail of Ben": "Change to: Reader\n\nRemark: Has moved.",
        "Remove User in Mail from Cleo": None,
    }
    for task in tasks.values():
        assert (task["assignee_member_id"], task["deadline"]) == ("member-owner", "2030-01-01T00:00:00.000Z")
        assert stored.events(service.database, entity_id=task["id"])[0]["action"] == "create"
    task_of = {one["person"]: one["taskId"] for one in _items(service, review)}
    assert task_of == {
        "Ana": None,
        "Ben": tasks["Change User in Mail of Ben"]["id"],
        "Cleo": tasks["Remove User in Mail from Cleo"]["id"],
    }
    # From then on all stays as it is.
    before = _items(service, review)
    body: Any = {"itemIds": [ana]}
    for answer in (
        _post(service, review, "finish"),
        _decide(service, review, (ana, "REMOVE")),
        _post(service, review, "items", _row("Eve")),
        _post(service, review, "items/remove", body),
        _import(service, review, "person,system,entitlement\nEve,Mail,User\n"),
    ):
        refused(answer, 409, "wrong_state")
    refused(change(service, EntitlementReview, review, editor, finishedAt=None), 400, "validation")
    assert change(service, EntitlementReview, review, editor, finishedAt=finished["finishedAt"]).is_success
    assert _items(service, review) == before


@pytest.mark.parametrize("by_step", [True, False])
def test_without_items_it_is_finished_by_hand_or_by_the_step(by_step: bool, service: Served) -> None:
    editor, review = service.bearer("editor"), _review(service)
    if by_step:
        assert _post(service, review, "finish").json()["finishedAt"] is not None
    assert change(service, EntitlementReview, review, editor, finishedAt="2026-01-01").is_success
    refused(_post(service, review, "items", _row("Eve")), 409, "wrong_state")
    assert change(service, EntitlementReview, review, editor, finishedAt=None).is_success
    assert _post(service, review, "items", _row("Eve")).status_code == 200


def test_of_two_who_finish_at_once_one_does(service: Served) -> None:
    review = _review(service)
    items = _add(service, review)
    assert _decide(service, review, *((one, "REMOVE") for one in items)).status_code == 200
    with served(service.url) as other, ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda one: _post(one, review, "finish"), (service, other)))
    assert sorted(one.status_code for one in answers) == [200, 409]
    assert len(stored.rows(service.database, Task, entitlement_review_id=review)) == len(PEOPLE)
    assert len(stored.rows(service.database, EntitlementReviewItem, entitlement_review_id=review)) == len(PEOPLE)


def test_a_recurring_review_is_followed_by_the_next_one(service: Served) -> None:
    """It has no items yet: who has which entitlements is another thing then."""
    editor, review = service.bearer("editor"), _review(service, deadline="2026-01-31")
    path = f"/entitlement-reviews/{review}/recurrence/"
    assert service.client.put(path, json={"frequency": "QUARTERLY"}, headers=editor).status_code == 200
    [item] = _add(service, review, _row("Ana"))
    assert _decide(service, review, (item, "KEEP")).status_code == 200
    assert _post(service, review, "finish").status_code == 200
    following = read(service, path)["nextId"]
    assert following not in (None, review)
    assert _items(service, following) == []
    assert _post(service, following, "items", _row("Ana")).status_code == 200
