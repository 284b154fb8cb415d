"""What only one row may have: each row that would take it again is blamed, with the holder's name."""

from __future__ import annotations

from typing import Any

import pytest

from normata.core.db.database import Database
from normata.core.schema.table import Table
from normata.records.kinds import Label, Task
from tests import world
from tests.bundle.documents import Document, asset, faults, found, label, task
from tests.world import ALPHA, BETA

UNIQUE: list[Any] = [
    pytest.param(
        {"labels": [label("one", slug="s"), label("two", slug="s")]},
        ["/labels/1/slug: is taken by 0.json: /labels/0"],
        id="slug within the bundle",
    ),
    pytest.param(
        {"labels": [label(slug="labels-live")]},
        ["/labels/0/slug: is taken by the stored row 'labels-live-org-alpha'"],
        id="slug of a stored row",
    ),
    pytest.param(
        {"labels": [{"id": "labels-taken-org-alpha", "archivedAt": None}]},
        ["/labels/0/slug: is taken by the stored row 'labels-namesake-org-alpha'"],
        id="slug of a record that comes back",
    ),
    pytest.param(
        {"users": [{"id": "u", "email": "EDITOR@Alpha.Example"}]},
        ["/users/0/email: is taken by the stored row 'user-editor'"],
        id="email that differs in case",
    ),
    pytest.param(
        {"users": [{"id": "u", "email": "a@ß.example"}, {"id": "v", "email": "A@XN--ZCA.Example"}]},
        ["/users/1/email: is taken by 0.json: /users/0"],
        id="email whose domain has the same A-label",
    ),
    pytest.param(
        {"organizations": [{"id": "o", "name": "O", "slug": "alpha"}]},
        ["/organizations/0/slug: is taken by the stored row 'org-alpha'"],
        id="slug of an organization",
    ),
    pytest.param(
        {"tasks": [task("one", shortId=7), task("two", shortId=7)]},
        ["/tasks/1/shortId: is taken by 0.json: /tasks/0"],
        id="short id within the bundle",
    ),
    pytest.param(
        {"tasks": [task(shortId=1)]},
        ["/tasks/0/shortId: is taken by the stored row 'tasks-archived-org-alpha'"],
        id="short id of an archived stored row",
    ),
    pytest.param(
        {"frameworkAdoptions": [{"id": "a", "organizationId": ALPHA, "frameworkId": "fw-sun"}]},
        ["/frameworkAdoptions/0/frameworkId: is taken by the stored row 'adopt-sun'"],
        id="adoption",
    ),
    pytest.param(
        {"controlCoverages": [{"id": "s", "organizationId": ALPHA, "controlId": "sun.A.1"}]},
        ["/controlCoverages/0/controlId: is taken by the stored row 'say-sun.A.1'"],
        id="statement",
    ),
    pytest.param(
        {"labels": [label("one"), label("one", name="Other")]},
        ["/labels/1/id: is the same as that of 0.json: /labels/0"],
        id="id within the bundle",
    ),
]


@pytest.mark.parametrize(("document", "expected"), UNIQUE)
def test_what_is_taken_is_named_with_its_holder(database: Database, document: Document, expected: list[str]) -> None:
    assert faults(database, document) == expected


def test_a_user_is_a_member_once(database: Database) -> None:
    [fault] = faults(database, {"memberships": [{"id": "m", "organizationId": ALPHA, "userId": "user-editor"}]})
    assert fault.startswith("/memberships/0/")
    assert fault.endswith(": is taken by the stored row 'member-editor'")


@pytest.mark.parametrize(
    "document",
    [
        pytest.param({"labels": [label(slug="labels-archived")]}, id="slug of an archived stored record"),
        pytest.param({"labels": [label(slug="labels-live", archivedAt="2026-01-01")]}, id="archived with a live one's"),
        pytest.param(
            {"labels": [label("a", slug="s", archivedAt="2026-01-01"), label("b", slug="s")]}, id="archived and live"
        ),
        pytest.param({"variables": [label(slug="labels-live")]}, id="another kind"),
        pytest.param(
            {"labels": [label(slug="only-here"), label("b", slug="only-here", organizationId=BETA)]}, id="two"
        ),
        pytest.param({"assets": [asset(shortId=9)], "tasks": [task(shortId=9)]}, id="short id of another kind"),
        pytest.param(
            {"users": [{"id": "u", "email": "a@ß.example"}, {"id": "v", "email": "A@SS.example"}]},
            id="email that only looks the same",
        ),
    ],
)
def test_what_is_free(database: Database, document: Document) -> None:
    row_counts = world.load(database, document)
    assert sum(tally.inserted for tally in row_counts.values()) == sum(map(len, document.values()))


def test_a_slug_is_free_once_its_holder_lets_go_in_the_same_bundle(database: Database) -> None:
    holder = world.record_id(Label, "live")
    world.load(database, {"labels": [label(slug="labels-live"), {"id": holder, "archivedAt": "2026-01-01"}]})
    assert found(database, Label, "new")["slug"] == found(database, Label, holder)["slug"] == "labels-live"


@pytest.mark.parametrize(
    ("table", "field", "ids"),
    [
        (Label, "slug", ("labels-live-org-alpha", "labels-namesake-org-alpha")),
        (Task, "shortId", ("tasks-live-org-alpha", "tasks-archived-org-alpha")),
    ],
)
def test_two_stored_rows_may_swap(database: Database, table: type[Table], field: str, ids: tuple[str, str]) -> None:
    one, two = (found(database, table, row_id)[field] for row_id in ids)
    world.load(database, {table.array: [{"id": ids[0], field: two}, {"id": ids[1], field: one}]})
    assert [found(database, table, row_id)[field] for row_id in ids] == [two, one]
