"""Loading: insert or update by id, all or nothing, and every fault named with its file and place."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from normata.bundle import loading
from normata.core.changes.row_counts import RowCounts
from normata.core.changes.source import Fault, FaultyInput
from normata.core.changes.unit_of_work import Change, UnitOfWork
from normata.core.db.database import Database
from normata.core.schema.table import Table
from normata.frameworks.model import Control, ControlMatch, EffectiveCoverage, Framework
from normata.identity.model import Organization, User
from normata.records.kinds import Label, Policy
from tests import world
from tests.bundle.documents import Document, faults, found, label, notification, policy, task
from tests.databases import change
from tests.world import ALPHA, BETA

# --- Insert and update


def test_tally_tells_new_changed_and_unchanged(database: Database) -> None:
    live, archived = world.record_id(Label, "live"), world.record_id(Label, "archived")
    document = {"labels": [label("new"), {"id": live, "color": "red"}, {"id": archived}]}
    assert world.load(database, document) == {"labels": RowCounts(inserted=1, updated=1, unchanged=1)}


def test_fields_left_out_stay_and_null_sets_null(database: Database) -> None:
    world.load(database, {"labels": [label(scope="RISK", color="red", slug="s", createdAt="2020-01-01")]})
    world.load(database, {"labels": [{"id": "new", "color": None, "name": "Renamed"}]})
    stored = found(database, Label, "new")
    assert (stored["name"], stored["scope"], stored["color"], stored["slug"]) == ("Renamed", "RISK", None, "s")
    assert (stored["createdAt"], stored["archivedAt"]) == ("2020-01-01T00:00:00.000Z", None)


def test_updated_at_moves_only_where_something_changed(database: Database) -> None:
    live, namesake = world.record_id(Label, "live"), world.record_id(Label, "namesake")
    world.load(database, {"labels": [{"id": live, "color": "red"}, {"id": namesake, "name": "label namesake"}]})
    assert found(database, Label, live)["updatedAt"] > world.EARLIER
    assert found(database, Label, namesake)["updatedAt"] == world.EARLIER


def test_updated_at_is_kept_where_the_bundle_states_it(database: Database) -> None:
    live = world.record_id(Label, "live")
    world.load(database, {"labels": [{"id": live, "color": "red", "updatedAt": "2026-05-06T07:08:09+02:00"}]})
    assert found(database, Label, live)["updatedAt"] == "2026-05-06T05:08:09.000Z"


def test_the_same_again_writes_not_a_single_row(database: Database) -> None:
    before = world.contents(database)
    row_counts = world.load(database, world.bundle())
    assert world.contents(database) == before
    assert {(tally.inserted, tally.updated) for tally in row_counts.values()} == {(0, 0)}
    assert sum(tally.unchanged for tally in row_counts.values()) == len(world.rows())


@pytest.mark.parametrize(
    ("first", "second"),
    [(1, True), (0, False), (1, 1.0), ([1], [True]), ({"done": 0}, {"done": False}), ({"a": 1, "b": 2}, {"a": 1})],
)
def test_values_that_only_python_holds_for_equal_are_a_change(database: Database, first: Any, second: Any) -> None:
    world.load(database, {"policies": [policy(content=first)]})
    assert world.load(database, {"policies": [policy(content=second)]})["policies"].updated == 1
    assert repr(found(database, Policy, "new")["content"]) == repr(second)


def test_an_update_may_archive_and_bring_back(database: Database) -> None:
    live = world.record_id(Label, "live")
    world.load(database, {"labels": [{"id": live, "archivedAt": "2026-01-01"}]})
    assert found(database, Label, live)["archivedAt"] == "2026-01-01T00:00:00.000Z"
    world.load(database, {"labels": [{"id": live, "archivedAt": None}]})
    assert found(database, Label, live)["archivedAt"] is None


def test_derived_fields_of_frameworks_and_controls_are_ignored(database: Database) -> None:
    before = world.contents(database)
    derived = {
        "framework": {"id": "fw-star"},
        "parent": 7,
        "coverage": {"coverageStatus": "FULL"},
        "effectiveCoverageStatus": "FULL",
        "isIndirectlyCovered": "perhaps",
        "sourceMatches": None,
        "children": [{}],
    }
    framework = {"isAdopted": False, "_count": {"controls": 99}, "frameworkAdoptions": [], "adoption": None}
    document = {"controls": [{"id": "sun.A.9"} | derived], "frameworks": [{"id": "fw-sun"} | framework]}
    assert {tally.unchanged for tally in world.load(database, document).values()} == {1}
    assert world.contents(database) == before


# --- All faults at once


def test_faults_of_all_files_are_told_together(database: Database) -> None:
    one = {"labels": [label(color=3)], "tasks": [task(status="todo", deadline="soon")]}
    two = {"labels": [label("other", colour="x")]}
    assert [fault.partition(": ")[0] if fault[0] == "/" else fault[:24] for fault in faults(database, one, two)] == [
        "/labels/0/color",
        "/tasks/0/status",
        "/tasks/0/deadline",
        "1.json: /labels/0/colour",
    ]


def test_the_same_id_in_two_files_is_a_fault(database: Database) -> None:
    assert faults(database, {"labels": [label("l")]}, {"labels": [label("l")]}) == [
        "1.json: /labels/0/id: is the same as that of 0.json: /labels/0"
    ]


def test_faults_of_every_sort_are_told_together(database: Database) -> None:
    """A value that is wrong must not hide a reference that is wrong, nor a slug that is taken."""
    document = {
        "labels": [
            label("one", color=3),
            label("two", slug="labels-live"),
            label("three", organizationId="nowhere"),
            label("four", slug="s"),
            label("five", slug="s"),
        ],
        "tasks": [task(assetId="nowhere"), {"id": "tasks-live-org-alpha", "organizationId": BETA}],
        "policies": [{"id": "p", "organizationId": ALPHA}],
    }
    assert {fault.partition(": ")[0] for fault in faults(database, document)} == {
        "/labels/0/color",
        "/labels/1/slug",
        "/labels/2/organizationId",
        "/labels/4/slug",
        "/tasks/0/assetId",
        "/tasks/1/organizationId",
        "/policies/0/title",
    }


def test_a_fault_in_one_row_is_not_blamed_on_those_that_refer_to_it(database: Database) -> None:
    document = {"policies": [policy("p", status="draft")], "tasks": [task(policyId="p")]}
    [fault] = faults(database, document)
    assert fault.startswith("/policies/0/status")


# --- The unit of work


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({}, set()),
        ({"controls": [{"id": "sun.A.1"}]}, set()),
        ({"labels": [label(), label("l", organizationId=BETA)]}, {("load", Label, ALPHA), ("load", Label, BETA)}),
        ({"organizations": [{"id": "o", "name": "O"}]}, {("load", Organization, "o")}),
        ({"users": [{"id": "u", "email": "u@alpha.example"}]}, {("load", User, None)}),
        ({"controls": [{"id": "sun.A.1", "name": "X"}]}, {("load", Control, None)}),
        (
            {"controls": [{"id": "x", "frameworkId": "fw-own", "name": "X"}]},
            {("load", Control, ALPHA), ("count", Framework, ALPHA)},
        ),
        (
            {
                "controlMatches": [
                    {"id": "own.A.1->moon.A.1", "matchLevel": "FULL"},
                    {"id": "sun.A.1->moon.A.1", "matchLevel": "PARTIAL"},
                ]
            },
            # A control is covered less by the second, which is told to those who have to see to it.
            {("load", ControlMatch, ALPHA), ("load", ControlMatch, None), ("lose", EffectiveCoverage, ALPHA)},
        ),
        ({"notifications": [notification()]}, set()),
    ],
)
def test_a_load_publishes_a_change_of_each_row_but_of_bulky_tables(
    database: Database, document: Document, expected: set[tuple[str, type[Table], str | None]]
) -> None:
    def work(unit: UnitOfWork) -> list[Change]:
        loading.load(unit, world.rows(document))
        return unit.published

    published = change(database, work)
    assert {(one.action, one.table, one.organization_id) for one in published} == expected
    assert len(published) == len(expected)
    for one in published:
        assert (one.row is None) == (one.row_id is None) == (one.table.bulky or one.action in ("count", "lose"))
        assert one.row is None or one.row["id"] == one.row_id


def test_faults_of_reading_and_of_rows_are_told_together(database: Database) -> None:
    """Then nothing is written, even where all rows are good."""
    before = world.contents(database)
    known = Fault("0.json", "/colours", "is not an array that a bundle has")
    for rows, more in ((world.rows({"labels": [label()]}), 0), (world.rows({"labels": [label(color=3)]}), 1)):
        with pytest.raises(FaultyInput) as caught:
            change(database, partial(loading.load, rows=rows, faults=[known]))
        assert caught.value.faults[0] == known
        assert len(caught.value.faults) == 1 + more
    assert world.contents(database) == before


def test_a_load_joins_the_transaction_of_its_caller(database: Database) -> None:
    before = world.contents(database)

    def work(unit: UnitOfWork) -> None:
        loading.load(unit, world.rows({"labels": [label()]}))
        raise RuntimeError("nowhere")

    with pytest.raises(RuntimeError, match="nowhere"):
        change(database, work)
    assert world.contents(database) == before


def test_progress_tells_steps_and_never_more_than_there_is(database: Database) -> None:
    told: list[tuple[str, int, int]] = []
    many = [label(f"l{number}", slug=f"l{number}") for number in range(1_200)]
    rows = world.rows({"labels": many, "controlCoverages": [{"id": "say-sun.A.2", "coverageStatus": "FULL"}]})
    change(database, lambda unit: loading.load(unit, rows, lambda *step: told.append(step)))
    assert {step for step, _, _ in told} == {"Checking rows", "Writing rows", "Computing coverage"}
    assert all(0 <= done <= total for _, done, total in told)
    written = [done for step, done, _ in told if step == "Writing rows"]
    assert written == sorted(written)
