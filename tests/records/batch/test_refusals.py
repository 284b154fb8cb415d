"""What a batch refuses, with its place, and what it does with archived records."""

from __future__ import annotations

from typing import Any

import pytest

from normata.records.kinds import Asset, Finding, Policy, Task
from tests import stored
from tests.records.batch.sending import Batches, Item, create, update, upsert
from tests.served import refused
from tests.world import BETA, record_id

each = pytest.mark.parametrize

LIVE, ARCHIVED, TAKEN = (record_id(Task, state) for state in ("live", "archived", "taken"))


def named(source: str, foreign_id: str) -> Item:
    return {"action": "upsert", "external": {"source": source, "id": foreign_id}, "values": {"title": "x"}}


@each(
    ("items", "place"),
    [
        ([{"action": "upsert", "values": {"title": "x"}}], "items/0/id"),
        ([{"action": "update", "values": {}}], "items/0/id"),
        ([create(title="x") | {"id": "new"}], "items/0/id"),
        ([create(title="x") | {"ifMatch": '"a"'}], "items/0/ifMatch"),
        ([create(title="x") | {"more": 1}], "items/0/more"),
        ([create(title="x") | {"action": "delete"}], "items/0/action"),
        ([update("a\x00b", title="x")], "items/0/id"),
        ([named("s\x00", "1")], "items/0/external/source"),
        ([named("s", "\n")], "items/0/external/id"),
        ([named("s", "i" * 256)], "items/0/external/id"),
        ([named("s" * 101, "1")], "items/0/external/source"),
        ([named(" ", "1")], "items/0/external/source"),
        ([create(title="x"), create(title="a\x00b")], "items/1/title"),
        ([create(title="x" * 501)], "items/0/title"),
        ([create(title=" ")], "items/0/title"),
        ([create(title=None)], "items/0/title"),
        ([create(title="x", archivedAt="2026-01-01")], "items/0/archivedAt"),
        ([create(title="x", organizationId=BETA)], "items/0/organizationId"),
        ([create(title="x", id="mine")], "items/0/id"),
        ([update(LIVE, title=None)], "items/0/title"),
        ([update(LIVE, assigneeMemberId="member-foreigner")], "items/0/assigneeMemberId"),
        ([upsert(1), upsert(2), upsert(1)], "items/2/external"),
        ([update(LIVE), update(LIVE)], "items/1/id"),
        ([create(title="x", slug="one"), create(title="y", slug="one")], "items/1/slug"),
        ([], "items"),
        ([create(title="x")] * 501, "items"),
    ],
)
def test_faults_have_their_places(batches: Batches, items: list[Item], place: str) -> None:
    before = stored.rows(batches.service.database, Task)
    assert list(batches.faults(*items)) == [place]
    assert stored.rows(batches.service.database, Task) == before


@each(
    ("item", "code"),
    [
        (update("nothing", title="x"), "not_found"),
        (update(record_id(Task, "live", BETA), title="x"), "not_found"),
        (update(record_id(Asset, "live"), title="x"), "not_found"),
        (named("erp", "4711") | {"action": "update"}, "not_found"),  # of a vendor
        (update(LIVE, title="x") | {"ifMatch": '"other"'}, "precondition_failed"),
        (upsert(1) | {"ifMatch": "*"}, "precondition_failed"),
        (update(ARCHIVED, title="x"), "archived"),
        (update(LIVE, slug="tasks-shared"), "slug_taken"),
        (create(title="x", slug="tasks-shared"), "slug_taken"),
    ],
)
def test_records_are_refused(batches: Batches, item: Item, code: str) -> None:
    before = stored.rows(batches.service.database, Task)
    assert batches.faults(create(title="Good"), item, status=409) == {"items/1": code}
    assert stored.rows(batches.service.database, Task) == before
    assert batches.outcomes(create(title="Good"), item, mode="each") == ["created", code]


def test_what_another_organization_has_is_free(batches: Batches) -> None:
    """Its external ids and slugs say nothing here, and nothing of it is answered."""
    body = {"organizationId": BETA, "items": [upsert(1)]}
    headers = batches.bearer("foreigner")
    made = batches.service.client.post("/tasks/batch/", json=body, headers=headers).json()["items"][0]
    assert batches.outcomes(upsert(1)) == ["created"]
    refused(batches.service.client.post("/tasks/batch/", json=body, headers=batches.bearer("editor")), 404, "not_found")
    taking = update(made["id"], title="x") | {"external": {"source": "tracker", "id": "9"}}
    assert batches.outcomes(taking, mode="each") == ["not_found"]


def test_the_state_that_the_caller_knows(batches: Batches) -> None:
    tag = batches.record(LIVE).headers["ETag"]
    item = update(LIVE, title="First") | {"ifMatch": tag}
    assert batches.outcomes(item) == ["updated"]
    assert batches.outcomes(item, mode="each") == ["precondition_failed"]


def test_archived_records_are_skipped_or_restored(batches: Batches) -> None:
    items = [update(ARCHIVED, title="Back"), update(LIVE, title="Here")]
    before = batches.record(ARCHIVED).json()
    assert batches.outcomes(*items, ifArchived="skip") == ["unchanged", "updated"]
    assert batches.record(ARCHIVED).json() == before
    assert batches.outcomes(*items, ifArchived="restore") == ["updated", "unchanged"]
    after = batches.record(ARCHIVED).json()
    assert (after["title"], after["archivedAt"]) == ("Back", None)
    headers = batches.bearer("editor")
    archive = batches.service.client.post(f"/tasks/{ARCHIVED}/archive/", headers=headers)
    assert archive.status_code == 200
    events = batches.events()
    assert batches.outcomes(update(ARCHIVED, title="Back"), ifArchived="restore") == ["updated"]
    assert batches.events() == events + 1  # restored, and nothing else
    assert batches.record(ARCHIVED).json()["title"] == "Back"


def test_a_record_whose_slug_is_taken_is_not_restored(batches: Batches) -> None:
    renamed = update(TAKEN, title="x", slug="another")
    for item in (update(TAKEN, title="x"), renamed):
        assert batches.outcomes(item, mode="each", ifArchived="restore") == ["slug_taken"]
        assert batches.faults(item, status=409, ifArchived="restore") == {"items/0": "slug_taken"}
    assert batches.record(TAKEN).json()["archivedAt"] is not None


def test_a_slug_is_not_handed_over_within_a_batch(batches: Batches) -> None:
    items = [update(LIVE, slug="free"), update(record_id(Task, "namesake"), slug="tasks-live")]
    assert batches.faults(*items, status=409) == {"items/1": "slug_taken"}
    assert batches.outcomes(*items, mode="each") == ["updated", "slug_taken"]
    assert batches.outcomes(items[1]) == ["updated"]


def test_what_refers_to_a_refused_item_is_judged_without_it(batches: Batches) -> None:
    live, namesake = record_id(Asset, "live"), record_id(Asset, "namesake")
    below = update(namesake, parentId=live)
    again: dict[str, Any] = {"mode": "each", "kind": "assets"}
    assert batches.outcomes(update(live, parentId="nothing"), below, **again) == ["validation", "updated"]
    # Who has a slug already has it, though an earlier item wants it.
    assert batches.outcomes(update(live, slug="assets-shared"), below, **again) == ["slug_taken", "unchanged"]


def test_steps_are_taken_by_their_operations_only(batches: Batches) -> None:
    """As by a single change, and of each item alone."""
    finding, policy = record_id(Finding, "live"), record_id(Policy, "live")
    by_hand = update(finding, status="VERIFIED")
    assert batches.faults(by_hand, kind="auditItems") == {"items/0/status": "read_only"}
    naming = [update(policy, approverId="member-owner"), create(title="Mine")]
    assert batches.outcomes(*naming, kind="policies", mode="each") == ["forbidden", "created"]
    assert batches.faults(*naming, kind="policies", status=409) == {"items/0": "forbidden"}
    assert batches.outcomes(*naming, kind="policies", mode="each", user="admin") == ["updated", "created"]


def test_roles_and_size(batches: Batches) -> None:
    refused(batches.send(create(title="x"), user="viewer"), 403, "forbidden")
    refused(batches.send(create(title="x"), user="auditor"), 403, "forbidden")
    refused(batches.send(create(title="x", description="d" * 17 * 2**20)), 413, "too_large")
    large = {"values": {"a": "d" * (4 * 2**20)}}
    assert list(batches.faults(create(title="x", content=large), kind="records")) == ["items/0/content"]


def test_a_flood_of_unknown_fields_is_not_repeated(batches: Batches) -> None:
    found = batches.faults(create(title="", **{f"unknown{number}": 1 for number in range(1_000)}))
    assert len(found) == 100
    assert found["items/0/title"] == "too_short"
