"""The revision of a kept list advances with whatever the list may show, and with nothing else."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from sqlalchemy import select

from normata.adoption.adoption import adopt
from normata.bundle import loading
from normata.bundle.arrays import ARRAYS
from normata.core.changes.revisions import ListRevision, current_revision
from normata.core.changes.source import FaultyInput
from normata.core.changes.unit_of_work import UnitOfWork
from normata.core.db.database import Database
from normata.core.schema.table import sql_table
from normata.frameworks.choice import NoSuchFramework
from normata.identity.tokens import tokens
from normata.records.base import Restorable
from tests import mostly_sqlite, world
from tests.client import TestClient
from tests.databases import change, on_both, tamper
from tests.world import ALPHA, BETA

database_url, shared_url = mostly_sqlite.database_url, mostly_sqlite.shared_url

Document = dict[str, list[dict[str, Any]]]
Bearer = Callable[..., dict[str, str]]

BOTH = {ALPHA, BETA}
CONTROLS, LISTS = {"controls"}, {"controls", "frameworks"}

Kept = tuple[str, str]  # an organization and a list


def revisions(database: Database) -> dict[Kept, str]:
    statement = select(*sql_table(ListRevision).c)
    rows = database.read_now(lambda transaction: transaction.rows(statement))
    return {(row.organization_id, row.list): row.revision for row in rows if row.list in LISTS}


def advanced(database: Database, act: Callable[[], object]) -> set[Kept]:
    """The lists that have another revision after something was done."""
    before = revisions(database)
    act()
    after = revisions(database)
    return {kept for kept, revision in after.items() if before.get(kept) != revision}


def lists(organizations: set[str], names: set[str]) -> set[Kept]:
    return {(organization_id, name) for organization_id in organizations for name in names}


def control(framework: str = "fw-own", **values: Any) -> Document:
    return {"controls": [{"id": "new", "frameworkId": framework, "name": "New"} | values]}


def match(source: str, target: str, match_id: str = "new") -> Document:
    row = {"id": match_id, "sourceControlId": source, "targetControlId": target, "matchLevel": "FULL"}
    return {"controlMatches": [row]}


def coverage(organization_id: str, control_id: str, row_id: str = "new", status: str = "FULL") -> Document:
    row = {"id": row_id, "organizationId": organization_id, "controlId": control_id, "coverageStatus": status}
    return {"controlCoverages": [row]}


# What is loaded → which lists of whom may be others by that.
LOADS: dict[str, tuple[Document, set[str], set[str]]] = {
    "a new framework": ({"frameworks": [{"id": "new", "name": "New"}]}, BOTH, LISTS),
    "a new framework of one": ({"frameworks": [{"id": "new", "name": "New", "organizationId": ALPHA}]}, {ALPHA}, LISTS),
    "a new inactive framework": ({"frameworks": [{"id": "new", "name": "New", "isActive": False}]}, BOTH, LISTS),
    "a changed framework": ({"frameworks": [{"id": "fw-sun", "name": "Sunny"}]}, BOTH, LISTS),
    "a changed framework of one": ({"frameworks": [{"id": "fw-foreign", "name": "Ours"}]}, {BETA}, LISTS),
    "a framework that becomes inactive": ({"frameworks": [{"id": "fw-star", "isActive": False}]}, BOTH, LISTS),
    "a framework that becomes active": ({"frameworks": [{"id": "fw-old", "isActive": True}]}, BOTH, LISTS),
    "a new control": (control("fw-sun"), BOTH, LISTS),
    "a new control of one": (control("fw-own"), {ALPHA}, LISTS),
    "a changed control": ({"controls": [{"id": "star.A.1", "name": "Changed"}]}, BOTH, LISTS),
    "a changed control of one": ({"controls": [{"id": "own.A.1", "name": "Changed"}]}, {ALPHA}, LISTS),
    "a control with another parent": ({"controls": [{"id": "foreign.A.1", "parentId": None}]}, {BETA}, LISTS),
    "a new match": (match("sun.A.5", "moon.A.5"), BOTH, CONTROLS),
    "a new match from one's own": (match("own.A.5", "moon.A.5"), {ALPHA}, CONTROLS),
    "a new match to one's own": (match("star.A.5", "foreign.A.5"), {BETA}, CONTROLS),
    "a changed match": ({"controlMatches": [{"id": "sun.A.3->moon.A.3", "matchLevel": "FULL"}]}, BOTH, CONTROLS),
    "a changed match of one": (match("own.A.3", "moon.A.3", "own.A.1->moon.A.1"), {ALPHA}, CONTROLS),
    "a new match between everybody's that one makes": (
        {"controlMatches": [match("sun.A.5", "moon.A.5")["controlMatches"][0] | {"organizationId": ALPHA}]},
        {ALPHA}, CONTROLS,
    ),
    "a new adoption": (
        {"frameworkAdoptions": [{"id": "new", "organizationId": ALPHA, "frameworkId": "fw-star"}]},
        {ALPHA}, LISTS,
    ),
    "a changed adoption": ({"frameworkAdoptions": [{"id": "adopt-sun", "adoptedAt": world.ARCHIVED}]}, {ALPHA}, LISTS),
    "an adoption of something else": (
        {"frameworkAdoptions": [{"id": "adopt-sun", "frameworkId": "fw-star"}]}, {ALPHA}, LISTS,
    ),
    "a new statement": (coverage(ALPHA, "moon.A.9"), {ALPHA}, CONTROLS),
    "a new statement of the other": (coverage(BETA, "moon.A.9"), {BETA}, CONTROLS),
    "a statement on what is not adopted": (coverage(ALPHA, "star.A.9"), {ALPHA}, CONTROLS),
    "a changed statement": (coverage(ALPHA, "sun.A.2", "say-sun.A.2"), {ALPHA}, CONTROLS),
    "a statement with another gap": (
        {"controlCoverages": [{"id": "say-sun.A.2", "coverageGap": "One."}]}, {ALPHA}, CONTROLS,
    ),
    "a statement on something else": (
        {"controlCoverages": [{"id": "say-sun.A.2", "controlId": "sun.A.9"}]}, {ALPHA}, CONTROLS,
    ),
    "statements of both": (
        {"controlCoverages": coverage(ALPHA, "moon.A.9", "one")["controlCoverages"]
         + coverage(BETA, "moon.A.9", "two")["controlCoverages"]},
        BOTH, CONTROLS,
    ),
    "nothing": ({}, set(), LISTS),
    "the same as ever": (world.bundle(), set(), LISTS),
    "a part of the same": (
        {"controls": [{"id": "sun.A.1"}], "frameworks": [{"id": "fw-sun", "name": "Sun Standard"}]},
        set(), LISTS,
    ),
    "an organization by another name": (
        {"organizations": [{"id": ALPHA, "name": "Alpha & Co", "slug": "co"}]}, set(), LISTS,
    ),
    "a user, a membership and a notification": (
        {
            "users": [{"id": "user-viewer", "name": "Called otherwise"}],
            "memberships": [{"id": "member-viewer", "role": "admin"}],
            "notifications": [{"id": "new", "organizationId": ALPHA, "userId": "user-viewer"}],
        },
        set(), LISTS,
    ),
    "records of all kinds": (
        {kind.path: [{"id": world.record_id(kind, "archived"), "archivedAt": None}] for kind in Restorable.kinds},
        set(), LISTS,
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", LOADS)
def test_a_load_advances_those_whose_lists_may_be_others(database: Database, what: str) -> None:
    document, organizations, names = LOADS[what]
    assert advanced(database, lambda: world.load(database, document)) == lists(organizations, names)
    assert advanced(database, lambda: world.load(database, document)) == set(), "the second time it is nothing new"


def test_a_new_organization_has_revisions_of_its_own(database: Database) -> None:
    """It has none, and its pages are not kept, until something comes to be in its lists."""
    before = revisions(database)
    assert before.keys() == lists(BOTH, LISTS)
    assert all(before.values())
    world.load(database, {"organizations": [{"id": "org-new", "name": "New", "slug": "new"}]})
    assert revisions(database) == before
    assert database.read_now(lambda transaction: current_revision(transaction, "org-new", "controls")) == ""
    change(database, lambda unit: adopt(unit, "org-new", ["fw-sun"]))
    after = revisions(database)
    for name in LISTS:
        revision = after.pop(("org-new", name))
        assert revision not in ("", *before.values())
        assert database.read_now(partial(current_revision, organization_id="org-new", name=name)) == revision
    assert after == before


def test_an_organization_without_revisions_is_loaded_unchanged(database: Database) -> None:
    """To load the same again is still to change nothing."""
    tamper(database, "DELETE FROM list_revision")
    before = world.contents(database)
    row_counts = world.load(database, world.bundle())
    assert {(tally.inserted, tally.updated) for tally in row_counts.values()} == {(0, 0)}
    assert world.contents(database) == before


@on_both
def test_an_import_advances_the_lists_of_all(database: Database) -> None:
    """An import is a load that remembers when it was."""
    rows = world.rows({"frameworks": [{"id": "fw-sun", "name": "Sunny"}], "controls": control("fw-sun")["controls"]})

    def import_() -> None:
        change(database, lambda unit: loading.load(unit, rows, sync=True))

    assert advanced(database, import_) == lists(BOTH, LISTS)
    assert advanced(database, import_) == set()


@on_both
def test_an_adoption_advances_the_lists_of_its_organization_only(database: Database) -> None:
    def adopting(*names: str) -> Callable[[], object]:
        return lambda: change(database, lambda unit: adopt(unit, ALPHA, names))

    assert advanced(database, adopting("fw-star", "fw-sun")) == lists({ALPHA}, LISTS)
    assert advanced(database, adopting("fw-star", "fw-sun")) == set(), "adopted already"

    def failing() -> None:
        with pytest.raises(NoSuchFramework):
            adopting("fw-star", "nowhere")()

    assert advanced(database, failing) == set()


@on_both
def test_what_fails_advances_nothing(database: Database) -> None:
    def failing() -> None:
        with pytest.raises(FaultyInput):
            world.load(database, coverage(ALPHA, "moon.A.9") | {"labels": [{"id": "x"}]})

    def abandoned() -> None:
        def work(unit: UnitOfWork) -> None:
            loading.load(unit, world.rows(coverage(ALPHA, "moon.A.9")))
            raise RuntimeError

        with pytest.raises(RuntimeError):
            change(database, work)

    assert advanced(database, failing) == set()
    assert advanced(database, abandoned) == set()


def test_restores_and_requests_advance_nothing(client: TestClient, bearer: Bearer, database: Database) -> None:
    """Else all restores of an organization would have to wait for each other at one row."""

    def use() -> None:
        headers = bearer("editor")
        for kind in Restorable.kinds:
            address = f"/{kind.path}/{world.record_id(kind, 'archived')}/restore/"
            assert client.post(address, headers=headers).status_code == 200
        for path in ("/controls/", "/frameworks/", "/notifications/"):
            assert client.get(path, params={"organizationId": ALPHA}, headers=headers).status_code == 200

    assert advanced(database, use) == set()


def test_tokens_advance_nothing(database: Database) -> None:
    def live() -> None:
        email = world.USERS["editor"]
        change(database, lambda unit: tokens.create(unit, email=email, scope="read", lifetime=None))
        row = database.read_now(tokens.listing)[-1]
        change(database, lambda unit: tokens.revoke(unit, row.id))

    assert advanced(database, live) == set()


@on_both
def test_no_revision_ever_comes_back(database: Database) -> None:
    """Not even where the data does: a copy from a backup may have gone another way in between."""
    kept = (ALPHA, "controls")
    seen = [revisions(database)[kept]]
    for status in ("NONE", "FULL") * 10:
        world.load(database, coverage(ALPHA, "sun.A.2", "say-sun.A.2", status))
        seen.append(revisions(database)[kept])
        world.load(database, {"frameworks": [{"id": "fw-sun", "name": status}]})
        seen.append(revisions(database)[kept])
    assert len(set(seen)) == len(seen) == 41


def test_revisions_cannot_be_loaded(database: Database) -> None:
    """They are no part of bundles, in either direction."""
    before = revisions(database)
    with pytest.raises(FaultyInput):
        world.load(database, {"organizations": [{"id": ALPHA, "revision": before[BETA, "controls"]}]})
    assert revisions(database) == before
    assert ListRevision not in ARRAYS.values()
